"""Write CausalConvWithState, of ai.onnx and of com.microsoft, as a depthwise convolution of the past and x.

    y, state = CausalConvWithState(x, w, bias, past)      ->      joined = Concat(past, x)
                                                                  y = Conv(joined, w, bias) {group = channels}
                                                                  state = Slice(joined, last (taps - 1) x dilation)

with x (N, C, T), or transposed where it is (N, T, C); y times its Sigmoid where the activation is silu.

Left alone:
    types other than float and float16; x of other ranks than three, channels or weights of unknown size
    a single tap, which has no state; windows of states; two and three dimensions
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Node, Shape, Value
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.half_types import in_float, rounded_to
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft, standard
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_CAUSAL_CONV", "EXPAND_MICROSOFT_CAUSAL_CONV"]

_RANK = 3


def _pattern(op: PatternBuilder, x: Term, w: Term) -> tuple[Term, ...]:
    return tuple(op.outputs(op.CausalConvWithState(x, w, op.optional("bias"), op.optional("past")), 2))


def _microsoft_pattern(op: PatternBuilder, x: Term, w: Term) -> tuple[Term, ...]:
    called = op.CausalConvWithState(x, w, op.optional("bias"), op.optional("past"), _domain="com.microsoft")
    return tuple(op.outputs(called, 2))


def _check(match: Match) -> str | tuple[int, int]:
    """Return how many channels there are and how long the state is."""
    node, x, w = match.root, match["x"], match["w"].shape
    sizes = _sizes(node, x.shape, w)
    if isinstance(sizes, str):
        return sizes
    channels, taps = sizes
    length = (taps - 1) * node.integer("dilation", 1)
    past, bias = match.get("past"), match.get("bias")
    shape = x.shape or ()
    carried = (shape[0], length, shape[2]) if _is_last(node) else (*shape[:2], length)
    if past is not None and (past.shape != carried or past.dtype is not x.dtype):
        return f"the past is {past.dtype} {past.shape}, expected {x.dtype} {carried}"
    if bias is not None and bias.shape != (w or ())[:1]:
        return f"the bias is {bias.shape}, expected one number for each channel"
    return fused_type_reason(x) or (channels, length)


def _sizes(node: Node, x: Shape | None, w: Shape | None) -> tuple[int, int] | str:
    """Return how many channels and taps there are, or why there are none that the rule takes."""
    if x is None or len(x) != _RANK or w is None or len(w) != _RANK:
        return f"x is {x} and the weights {w}, expected three dimensions"
    channels, taps = x[2] if _is_last(node) else x[1], w[2]
    if not isinstance(channels, int) or w[:2] != (channels, 1) or not isinstance(taps, int) or taps < 2:
        return f"the weights are {w}, expected two taps or more for each channel of {x}"
    if node.integer("state_window", 0) or node.integer("ndim", 1) != 1 or node.integer("dilation", 1) < 1:
        return "a window of states, or further dimensions"
    return (channels, taps) if node.text("activation", "none") in ("none", "silu", "swish") else "an unknown activation"


def _is_last(node: Node) -> bool:
    return bool(node.integer("channels_last", 0))


def _replace(op: Builder, match: Match, sizes: tuple[int, int]) -> tuple[Value, Value]:
    node, x, past, bias = match.root, match["x"], match.get("past"), match.get("bias")
    axis, (channels, length) = 1 if _is_last(node) else 2, sizes
    if past is None:
        joined = op.Pad(x, np.array([length if place == axis else 0 for place in range(2 * _RANK)], np.int64))
    else:
        joined = op.Concat(past, x, axis=axis)
    bounds = [np.array([number], np.int64) for number in (-length, np.iinfo(np.int64).max, axis)]
    state = op.Slice(joined, *bounds)
    wide, weights = in_float(op, joined), in_float(op, match["w"])
    first = op.Transpose(wide, perm=[0, 2, 1]) if _is_last(node) else wide
    further = [] if bias is None else [in_float(op, bias)]
    y = op.Conv(first, weights, *further, group=channels, dilations=[node.integer("dilation", 1)])
    if node.text("activation", "none") != "none":
        y = op.Mul(y, op.Sigmoid(y))
    return rounded_to(op, op.Transpose(y, perm=[0, 2, 1]) if _is_last(node) else y, x), state


EXPAND_CAUSAL_CONV = Rule("expand_causal_conv", _pattern, _replace, _check, takes_apart=standard("CausalConvWithState"))
EXPAND_MICROSOFT_CAUSAL_CONV = Rule(
    "expand_microsoft_causal_conv",
    _microsoft_pattern,
    _replace,
    _check,
    takes_apart=microsoft("CausalConvWithState"),
    summary="Write CausalConvWithState of com.microsoft as a depthwise convolution of the past and x.",
)
