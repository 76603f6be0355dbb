"""Activations that operators of com.microsoft compute where they store a result: their names and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.activations import FUSED_ACTIVATIONS
from sardonyx.ops.views.activation import LARGEST_FLOAT, Clip
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["PARAMETERS", "activation_of", "any_activation", "fused_type_reason"]

PARAMETERS: Mapping[str, tuple[str, ...]] = {"Clip": ("min", "max"), **FUSED_ACTIVATIONS}
"""Activation -> what its parameters are, in order: attributes, and the limits of Clip."""


def any_activation(op: PatternBuilder, names: Iterable[str], x: Term) -> Term:
    """Return any of the activations of x; limits of Clip are constants `low` and `high`."""
    low, high = op.optional_constant("low"), op.optional_constant("high")
    return op.any_of(*(op.Clip(x, low, high) if name == "Clip" else op.node(name, x) for name in names))


def activation_of(match: Match) -> tuple[str, list[float]]:
    """Return the name and the parameters of the activation at the root of a match."""
    node = match.root
    if node.op_type == "Clip":
        low, high = Clip.of(node).limits or (-LARGEST_FLOAT, LARGEST_FLOAT)
        return "Clip", [_limit(match, "low", low), _limit(match, "high", high)]
    return node.op_type, [float(attribute_value(node, name)) for name in PARAMETERS[node.op_type]]


def _limit(match: Match, name: str, otherwise: float) -> float:
    """Return a limit of Clip: a constant scalar, or what stands for it where there is none."""
    array = match.constant(name)
    return otherwise if array is None else float(array.reshape(()))


def fused_type_reason(*values: Value) -> str | None:
    """Return why operators of com.microsoft do not take these types: they take float and float16."""
    dtypes = [value.dtype for value in values]
    if any(dtype not in (DataType.FLOAT, DataType.FLOAT16) for dtype in dtypes):
        return f"it is of {', '.join(map(str, dtypes))}, expected float or float16"
    return None
