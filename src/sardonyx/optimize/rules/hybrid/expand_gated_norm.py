"""Write root mean square normalizations of groups, of com.microsoft, as RMSNormalization of an axis more.

    GatedRMSNorm(x, scale, gate)      ->      Reshape(RMSNormalization(Reshape(x, (..., H, C)), scale), (..., H x C))
                                              * gate * Sigmoid(gate), or * Sigmoid(gate)
    BranchwiseRMSNorm(x, scale)       ->      RMSNormalization(x, 1) * scale, of (..., C, H)

Left alone:
    types other than float and float16; x whose last dimension is not known
    a scale that is no vector which divides it, a gate of another shape than x
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.ir import Value
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.half_types import in_float, rounded_to
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["EXPAND_BRANCHWISE_NORM", "EXPAND_GATED_NORM"]

_MICROSOFT = "com.microsoft"


def _gated_pattern(op: PatternBuilder, x: Term, scale: Term, gate: Term) -> Term:
    return op.GatedRMSNorm(x, scale, gate, _domain=_MICROSOFT)


def _check_gated(match: Match) -> str | tuple[int, int]:
    """Return how many groups there are and how many elements each has."""
    x, gate, scale = match["x"], match["gate"].shape, match["scale"].shape
    if not x.shape or gate != x.shape:
        return f"x is {x.shape} and the gate {gate}, expected equal shapes"
    size = scale[0] if scale is not None and len(scale) == 1 else None
    width = x.shape[-1]
    if not isinstance(width, int) or not isinstance(size, int) or size < 1 or width % size:
        return f"the scale is {scale}, expected a vector that divides the last dimension of {x.shape}"
    if match.root.text("activation", "silu") not in ("silu", "swish", "sigmoid"):
        return "the activation is neither silu, swish nor sigmoid"
    return fused_type_reason(x) or (width // size, size)


def _replace_gated(op: Builder, match: Match, sizes: tuple[int, int]) -> Value:
    x, scale, gate = (in_float(op, match[name]) for name in ("x", "scale", "gate"))
    normal = _normalized(op, match, x, scale, sizes)
    opening = op.Sigmoid(gate)
    if match.root.text("activation", "silu") != "sigmoid":
        opening = op.Mul(gate, opening)
    return rounded_to(op, op.Mul(normal, opening), match["x"])


def _normalized(op: Builder, match: Match, x: Value, scale: Value, sizes: tuple[int, int]) -> Value:
    """Return x (..., H, C) or (..., H x C) with each C elements divided by their root mean square, times the scale (C,)."""
    shape, epsilon = x.shape or (), attribute_value(match.root, "epsilon")
    count, size = sizes
    if shape[-1] == size:
        return op.RMSNormalization(x, scale, axis=-1, epsilon=epsilon)
    kept = [0] * (len(shape) - 1)
    groups = op.Reshape(x, np.array([*kept, count, size], np.int64))
    return op.Reshape(op.RMSNormalization(groups, scale, axis=-1, epsilon=epsilon), np.array([*kept, count * size], np.int64))


def _branch_pattern(op: PatternBuilder, x: Term) -> Term:
    return op.BranchwiseRMSNorm(x, op.optional("scale"), _domain=_MICROSOFT)


def _check_branches(match: Match) -> str | tuple[int, int]:
    """Return how many branches there are and how many elements each has."""
    x, count = match["x"], match.root.integer("num_branches", 0)
    dims = (x.shape or ())[-1:] if count else (x.shape or ())[-2:]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if len(sizes) != (1 if count else 2) or count < 0 or (count and sizes[0] % count):
        return f"x is {x.shape} with {count} branches, which are of no known size"
    branches, size = (count, sizes[0] // count) if count else (sizes[0], sizes[1])
    scale = match.get("scale")
    if scale is not None and scale.shape not in ((size,), (branches, size), (branches * size,)):
        return f"the scale is {scale.shape}, expected ({size},), ({branches}, {size}) or ({branches * size},)"
    return fused_type_reason(x) or (branches, size)


def _replace_branches(op: Builder, match: Match, sizes: tuple[int, int]) -> Value:
    x, scale, size = in_float(op, match["x"]), match.get("scale"), sizes[1]
    normal = _normalized(op, match, x, op.constant(np.ones(size, np.float32)), sizes)
    if scale is not None:
        shape = scale.shape or ()
        is_short, is_split = shape == (size,), match.root.integer("num_branches", 0) == 0
        target = (size,) if is_short and is_split else (sizes if is_split else (math.prod(sizes),))
        wide = in_float(op, scale)
        if is_short and not is_split:
            wide = op.Tile(wide, np.array([sizes[0]], np.int64))
        normal = op.Mul(normal, op.Reshape(wide, np.array(target, np.int64)))
    return rounded_to(op, normal, match["x"])


EXPAND_GATED_NORM = Rule("expand_gated_norm", _gated_pattern, _replace_gated, _check_gated, takes_apart=microsoft("GatedRMSNorm"))
EXPAND_BRANCHWISE_NORM = Rule(
    "expand_branchwise_norm",
    _branch_pattern,
    _replace_branches,
    _check_branches,
    takes_apart=microsoft("BranchwiseRMSNorm"),
    summary="Write BranchwiseRMSNorm of com.microsoft as RMSNormalization.",
)
