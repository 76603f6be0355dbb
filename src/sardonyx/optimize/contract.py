"""What a pass is and what it may use: the interface that a pass in another package implements."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.config import LIMITS
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.ir import Model, Node, Value
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import InferenceMemory

__all__ = ["Context", "Evaluate", "Level", "Pass", "RunModel"]


class Level(enum.IntEnum):
    """How far to optimize; numbered as onnxruntime's GraphOptimizationLevel."""

    DISABLE = 0
    BASIC = 1
    EXTENDED = 2
    LAYOUT = 3
    ALL = 99


Evaluate = Callable[[Node, Sequence[Array | None]], list[Array]]
"""Compute the outputs of one node from its inputs (None for one left out); raises a SardonyxError where it cannot."""

RunModel = Callable[[Model, Mapping[str, Array]], list[OnnxValue]]
"""Compute the outputs of a model, which stays as it is, from its inputs by name; raises a SardonyxError where it cannot."""


@dataclasses.dataclass(slots=True)
class Context:
    """What the passes of one optimization share."""

    evaluate: Evaluate | None = None
    """Computes nodes whose inputs are constants; without it only what shape inference knows is folded."""
    facts: dict[Value, Fact] = dataclasses.field(default_factory=dict)
    """What the last shape inference found. A value never changes what it means, so a fact stays true while the graph changes."""
    memory: InferenceMemory = dataclasses.field(default_factory=InferenceMemory)
    """By which shape inference infers again only what changed."""
    keeps_patterns: bool = False
    """Whether what other tools look for in a graph stays as it is: level BASIC is all that the model is optimized to."""
    fold_seconds: float = LIMITS.fold_seconds
    """For how much processor time folding may still evaluate nodes; each evaluation counts it down."""
    fold_bytes: int = LIMITS.fold_bytes
    """The largest constant that folding may make from smaller ones, or copy."""
    fold_in_place_bytes: int = LIMITS.fold_in_place_bytes
    """The largest constant that folding may compute from what takes as many bytes."""
    fold_growth_bytes: int = LIMITS.fold_growth_bytes
    """By how much folding may still make the model larger; each constant that is larger than what it is made of counts it down."""
    fold_total_bytes: int | None = None
    """How large folding may make all of the model's constants together; None before it has begun, as that depends on the model."""
    dequantize_again_bytes: int = 64 << 20
    """How many bytes of constants may still be made of quantized weights of which others are made."""


class Pass(Protocol):
    """A change of a whole model that keeps what the model computes.

    One that computes with numbers may have an attribute `tolerance`: by how much results may differ, as of a rule.
    """

    @property
    def name(self) -> str:
        """verb_noun, by which reports list it and a user switches it off."""

    def run(self, model: Model, context: Context) -> bool:
        """Change `model` in place; whether anything changed. Inputs and outputs of the main graph keep name, order and type."""
