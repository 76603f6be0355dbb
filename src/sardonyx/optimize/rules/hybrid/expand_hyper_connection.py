"""Write hyper-connections of com.microsoft, streams of features in place of one residual, as sums and products.

    HyperConnectionPreMix(streams, gates)                 ->      ReduceSum(streams * gates, the axis of streams) * reduction_scale
    HyperConnectionPostMix(streams, block, gates, mix)    ->      MatMul(mix^T, streams) + block * gates
    EngramGate(key, query, value, scales)                 ->      d = ReduceSum(norm(key) * norm(query)) / sqrt(H)
                                                                  value * Sigmoid(sign(d) * Sqrt(max(|d|, 1e-6)))
                                                                  and that, normalized and scaled

with streams (..., C, H), also where they are given as (..., C x H), and RMSNormalization for norm. All is computed in float.

Left alone:
    types other than float and float16
    streams and gates of shapes that are not known to fit, or of a width that is not known
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.ir import Dim, Shape, Value
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.half_types import in_float, rounded_to
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["EXPAND_ENGRAM_GATE", "EXPAND_ENGRAM_GATE_NORM", "EXPAND_STREAM_POST_MIX", "EXPAND_STREAM_PRE_MIX"]

_MICROSOFT = "com.microsoft"
_AXES_ARE_INPUTS = 18
_LEAST = np.float32(1e-6)
"""Of the size of a product of key and query."""


def _pre_pattern(op: PatternBuilder, streams: Term, gates: Term) -> Term:
    return op.HyperConnectionPreMix(streams, gates, _domain=_MICROSOFT)


def _check_pre(match: Match) -> str | Shape:
    """Return the streams' shape (..., C, H)."""
    grouped = _grouped(match)
    if isinstance(grouped, str):
        return grouped
    return _gates_problem(match["gates"], grouped, may_be_flat=True) or fused_type_reason(match["streams"]) or grouped


def _grouped(match: Match) -> str | Shape:
    """Return the shape of streams with axes of streams and of features, both of known sizes."""
    shape, count = match["streams"].shape or (), match.root.integer("num_branches", 0)
    sizes: tuple[Dim, ...] = shape[-2:]
    if count > 0 and shape and isinstance(width := shape[-1], int) and width % count == 0:
        shape, sizes = shape[:-1], (count, width // count)
    elif count:
        return f"streams of shape {shape} are not known to be {count}"
    else:
        shape = shape[:-2]
    if len(sizes) != 2 or not all(isinstance(size, int) and size > 0 for size in sizes):
        return f"streams of {sizes}, which are of no known sizes"
    return (*shape, *sizes)


def _gates_problem(gates: Value, grouped: Shape, *, may_be_flat: bool) -> str | None:
    *leading, count, size = grouped
    flat = [(*leading, count * size)] if may_be_flat else []
    possible = [(*leading, count), (*leading, count, 1), grouped, *flat]
    return None if gates.shape in possible else f"gates of shape {gates.shape} are not known to fit streams {grouped}"


def _replace_pre(op: Builder, match: Match, grouped: Shape) -> Value:
    streams, gates = _in_groups(op, match["streams"], grouped), _gates(op, match["gates"], grouped)
    total = _summed(op, op.Mul(streams, gates), -2, keepdims=0)
    scale = match.root.number("reduction_scale", 1.0)
    return rounded_to(op, total if scale == 1 else op.Mul(total, np.float32(scale)), match["streams"])


def _in_groups(op: Builder, value: Value, grouped: Shape) -> Value:
    """Return a value (..., C x H) as float (..., C, H)."""
    wide = in_float(op, value)
    if len(value.shape or ()) == len(grouped):
        return wide
    return op.Reshape(wide, np.array([*[0] * (len(grouped) - 2), *grouped[-2:]], np.int64))


def _gates(op: Builder, gates: Value, grouped: Shape) -> Value:
    """Return gates as float (..., C, 1) or (..., C, H)."""
    shape = gates.shape or ()
    if len(shape) == len(grouped) - 1 and shape[-1] == grouped[-2]:
        return op.Unsqueeze(in_float(op, gates), np.array([-1], np.int64))
    return _in_groups(op, gates, grouped)


def _summed(op: Builder, x: Value, axis: int, *, keepdims: int) -> Value:
    version = max(op.version(), _AXES_ARE_INPUTS)
    return op.node("ReduceSum", x, np.array([axis], np.int64), keepdims=keepdims, _version=version)


def _post_pattern(op: PatternBuilder, streams: Term, block: Term, gates: Term) -> Term:
    return op.HyperConnectionPostMix(streams, block, gates, op.optional("mix"), _domain=_MICROSOFT)


def _check_post(match: Match) -> str | Shape:
    """Return the streams' shape (..., C, H)."""
    grouped, mix = _grouped(match), match.get("mix")
    if isinstance(grouped, str):
        return grouped
    *leading, count, size = grouped
    if match["block"].shape != (*leading, size) or (mix is not None and mix.shape != (*leading, count, count)):
        return f"a block of shape {match['block'].shape}, or its mix, is not known to fit streams {grouped}"
    return _gates_problem(match["gates"], grouped, may_be_flat=False) or fused_type_reason(match["streams"]) or grouped


def _replace_post(op: Builder, match: Match, grouped: Shape) -> Value:
    streams, mix, rank = match["streams"], match.get("mix"), len(grouped)
    mixed = _in_groups(op, streams, grouped)
    if mix is not None:
        order = [*range(rank - 2), rank - 1, rank - 2]
        mixed = op.MatMul(op.Transpose(in_float(op, mix), perm=order), mixed)
    block = op.Unsqueeze(in_float(op, match["block"]), np.array([rank - 2], np.int64))
    total = op.Add(mixed, op.Mul(_gates(op, match["gates"], grouped), block))
    if len(streams.shape or ()) != rank:
        total = op.Reshape(total, np.array([*[0] * (rank - 2), *(streams.shape or ())[-1:]], np.int64))
    return rounded_to(op, total, streams)


def _engram_node(op: PatternBuilder, key: Term, query: Term, value: Term, key_scale: Term, query_scale: Term) -> Term:
    return op.EngramGate(key, query, value, key_scale, query_scale, op.optional("scale"), _domain=_MICROSOFT)


def _engram_pattern(op: PatternBuilder, key: Term, query: Term, value: Term, key_scale: Term, query_scale: Term) -> Term:
    return _engram_node(op, key, query, value, key_scale, query_scale)


def _engram_norm_pattern(
    op: PatternBuilder, key: Term, query: Term, value: Term, key_scale: Term, query_scale: Term
) -> tuple[Term, ...]:
    return op.outputs(_engram_node(op, key, query, value, key_scale, query_scale), 2)


def _check_engram(match: Match) -> str | int:
    """Return how many features a stream has."""
    key, scale = match["key"].shape, match.get("scale")
    if key is None or len(key) != 4 or not isinstance(size := key[3], int) or size < 1:
        return f"key is {key}, expected four dimensions, the last of a known size"
    if match["query"].shape != key or match["value"].shape != (*key[:2], size):
        return f"query and value are {match['query'].shape} and {match['value'].shape}, which are not known to fit key {key}"
    scales = [match["key_scale"], match["query_scale"], *([] if scale is None else [scale])]
    if any(item.shape != key[2:] for item in scales):
        return f"a scale is not known to be {key[2:]}"
    if len(match.outputs) > 1 and scale is None:
        return "the normalized result has no scale"
    return fused_type_reason(match["key"]) or size


def _replace_engram(op: Builder, match: Match, size: int) -> Value:
    key, query, value = match["key"], match["query"], match["value"]
    factors = op.Mul(in_float(op, match["key_scale"]), in_float(op, match["query_scale"]))
    product = op.Mul(op.Mul(_normal(op, match, key, size), _normal(op, match, query, size)), factors)
    d = op.Mul(_summed(op, product, -1, keepdims=1), np.float32(1 / math.sqrt(size)))
    root = op.Mul(op.Sign(d), op.Sqrt(op.Max(op.Abs(d), _LEAST)))
    gated = op.Mul(op.Unsqueeze(in_float(op, value), np.array([2], np.int64)), op.Sigmoid(root))
    return rounded_to(op, gated, key)


def _normal(op: Builder, match: Match, x: Value, size: int) -> Value:
    """Return X over its root mean square along the last axis, as float."""
    ones = op.constant(np.ones(size, np.float32))
    return op.RMSNormalization(in_float(op, x), ones, axis=-1, epsilon=attribute_value(match.root, "epsilon"))


def _replace_engram_norm(op: Builder, match: Match, size: int) -> tuple[Value, Value]:
    gated = _replace_engram(op, match, size)
    normal = op.Mul(_normal(op, match, gated, size), in_float(op, match["scale"]))
    return gated, rounded_to(op, normal, match["key"])


EXPAND_STREAM_PRE_MIX = Rule(
    "expand_stream_pre_mix",
    _pre_pattern,
    _replace_pre,
    _check_pre,
    takes_apart=microsoft("HyperConnectionPreMix"),
    summary="Write HyperConnectionPreMix of com.microsoft as a sum of products.",
)
EXPAND_STREAM_POST_MIX = Rule(
    "expand_stream_post_mix",
    _post_pattern,
    _replace_post,
    _check_post,
    takes_apart=microsoft("HyperConnectionPostMix"),
    summary="Write HyperConnectionPostMix of com.microsoft as a product of matrices and a sum.",
)
EXPAND_ENGRAM_GATE = Rule(
    "expand_engram_gate",
    _engram_pattern,
    _replace_engram,
    _check_engram,
    takes_apart=microsoft("EngramGate"),
    summary="Write EngramGate of com.microsoft as normalizations and a gate.",
)
EXPAND_ENGRAM_GATE_NORM = Rule(
    "expand_engram_gate_norm",
    _engram_norm_pattern,
    _replace_engram_norm,
    _check_engram,
    takes_apart=microsoft("EngramGate"),
    summary="Write EngramGate of com.microsoft whose normalized result is used as normalizations and a gate.",
)
