"""What the table of operators says of each: which inputs carry the layout, and how a transpose is pushed through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Node, Value
from sardonyx.optimize.transposes.edit import Edit
from sardonyx.optimize.transposes.permutation import Permutation

__all__ = ["Carriers", "Handler", "Push", "all_inputs", "first_input"]

Push: TypeAlias = Callable[[Edit, Node, Permutation], bool]
"""Compute a node on what the transposes in front of it read, and put transposes behind; or change nothing and return False."""
Carriers: TypeAlias = Callable[[Node], Sequence[Value | None]]
"""The inputs of a node whose dimensions are those that a transpose moves."""


def first_input(node: Node) -> Sequence[Value | None]:
    """Return the first input alone."""
    return node.inputs[:1]


def all_inputs(node: Node) -> Sequence[Value | None]:
    """Return every input."""
    return node.inputs


@dataclasses.dataclass(frozen=True, slots=True)
class Handler:
    """One row."""

    push: Push
    """How a transpose is pushed through."""
    carriers: Carriers = first_input
    """Which inputs carry the layout."""
    grows: bool = False
    """Whether results are larger than inputs, so that a transpose behind costs more than in front, unless another undoes it."""
