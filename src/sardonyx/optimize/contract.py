"""What a pass is and what it may use: the interface that a pass in another package implements."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Protocol

from sardonyx.dtypes import Array
from sardonyx.ir import Model, Node, Value
from sardonyx.ops.fact import Fact

__all__ = ["Context", "Evaluate", "Level", "Pass"]


class Level(enum.IntEnum):
    """How far to optimize; numbered as onnxruntime's GraphOptimizationLevel."""

    DISABLE = 0
    BASIC = 1
    EXTENDED = 2
    LAYOUT = 3
    ALL = 99


Evaluate = Callable[[Node, Sequence[Array | None]], list[Array]]
"""Compute the outputs of one node from its inputs (None for one left out); raises a SardonyxError where it cannot."""


@dataclasses.dataclass(slots=True)
class Context:
    """What the passes of one optimization share."""

    evaluate: Evaluate | None = None
    """Computes nodes whose inputs are constants; without it only what shape inference knows is folded."""
    facts: dict[Value, Fact] = dataclasses.field(default_factory=dict)
    """What the last shape inference found. A value never changes what it means, so a fact stays true while the graph changes."""
    fold_seconds: float = 2.0
    """How much longer folding may evaluate nodes; each evaluation counts it down."""


class Pass(Protocol):
    """A change of a whole model that keeps what the model computes."""

    @property
    def name(self) -> str:
        """verb_noun, by which reports list it and a user switches it off."""

    def run(self, model: Model, context: Context) -> bool:
        """Change `model` in place; whether anything changed. Inputs and outputs of the main graph keep name, order and type."""
