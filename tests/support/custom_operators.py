"""Models of operators of the domain `mine`, and sessions that know some."""

from __future__ import annotations

from typing import Any

from sardonyx import InferenceSession, SessionOptions
from sardonyx.custom_ops.definition import OperatorSource
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

__all__ = ["mine_bytes", "mine_session"]


def mine_bytes(graph: str, *, version: int = 1) -> bytes:
    """A model of `graph(...) -> (...) {...}` that imports `version` of the domain `mine`."""
    return to_bytes(parse_model(f"ir_version 10\nopset 21, mine {version}\ngraph main{graph.strip().removeprefix('graph')}"))


def mine_session(graph: str, *operators: OperatorSource, version: int = 1, **others: Any) -> InferenceSession:
    """A session of such a model that knows `operators`; `others` are arguments of InferenceSession."""
    options = SessionOptions()
    for operator in operators:
        options.add_operator(operator)
    return InferenceSession(mine_bytes(graph, version=version), options, **others)
