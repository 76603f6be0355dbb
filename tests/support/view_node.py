"""Nodes for tests of views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.ir import Node, Tensor, Value

__all__ = ["node"]


def node(op_type: str, version: int, inputs: Sequence[Any] = (), domain: str = "", **attributes: Any) -> Node:
    """A node whose inputs are None, a name (computed in the run), or numbers (a constant)."""
    return Node(op_type, [_value(given) for given in inputs], 1, attributes, domain=domain, version=version, name="n")


def _value(given: Any) -> Value | None:
    if given is None or isinstance(given, str):
        return None if given is None else Value(given)
    return Value("c", None, Tensor.from_array(np.asarray(given)))
