"""Make one convolution of those of one value whose results are added.

    Add(Conv(x, w, b?), Conv(x, v, c?))                                    ->      Conv(x, w + v, b + c)
    Add(Conv(x, w, b?), BatchNormalization(x, scale, shift, mean, var))    ->      Conv(x, w + k, b + shift')

The smaller kernel is added where its pads put it in the larger one; a normalization is a kernel with a factor for each channel at
the place of the element itself. So the branches of RepVGG and its like, which are trained apart, run as one.

Left alone:
    weights, bias or statistics that are no constants, or have other users; weights that are no floating-point numbers
    results with other users
    other groups or strides, pads that are computed, dilations that part the elements otherwise
    a kernel that reaches beyond the other
    a normalization beside a convolution of another number of channels, of strides, or that changes the size
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.ir import Node, Value
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.window import Window
from sardonyx.optimize.helpers.channels import normalization, weights_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_PARALLEL_CONVS", "FUSE_PARALLEL_NORMALIZATION"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Added:
    """What is added to the first convolution."""

    place: tuple[slice | Array, ...]
    """To which of its weights."""
    weights: Array
    """What."""
    bias: Array | None
    """And to its bias."""


def _convolution(op: PatternBuilder, x: Term, w: Term) -> Term:
    return op.Conv(x, op.constant(w), op.optional_constant("b"), _as="convolution")


def _pattern(op: PatternBuilder, x: Term, w: Term, v: Term) -> Term:
    return op.Add(_convolution(op, x, w), op.Conv(x, op.constant(v), op.optional_constant("c"), _as="other"))


def _normalization_pattern(op: PatternBuilder, x: Term, w: Term, scale: Term, shift: Term, mean: Term, variance: Term) -> Term:
    statistics = [op.constant(value) for value in (scale, shift, mean, variance)]
    return op.Add(_convolution(op, x, w), op.BatchNormalization(x, *statistics, _as="normalization"))


def _check(match: Match) -> str | _Added:
    weights, added, bias = match.tensor("w"), match.tensor("v"), match.tensor("c")
    reason = weights_reason(match)
    if reason is not None or weights is None or added is None:
        return reason or "the weights are no constants"
    node, other = match.node("convolution"), match.node("other")
    if added.dtype is not weights.dtype or len(added.shape) != len(weights.shape) or added.shape[:2] != weights.shape[:2]:
        return f"the weights are {weights.dtype} {weights.shape} and {added.dtype} {added.shape}"
    if (
        match["v"].use_count > 1
        or (bias is not None and bias.shape != added.shape[:1])
        or Conv.of(node).group != Conv.of(other).group
    ):
        return "the weights have other users, or the convolutions other groups"
    large, small = _window(node, weights.shape[2:]), _window(other, added.shape[2:])
    if large is None or small is None or large.strides != small.strides:
        return "the strides differ, or pads are computed"
    place = _place(large, small)
    if place is None:
        return "the second kernel does not lie within the first"
    return _Added((slice(None), slice(None), *place), added.numpy(), None if bias is None else bias.numpy())


def _check_normalization(match: Match) -> str | _Added:
    weights, node = match.tensor("w"), match.node("convolution")
    reason = weights_reason(match)
    if reason is not None or weights is None:
        return reason or "the weights are no constant"
    channels, inner, *kernel = weights.shape
    window = _window(node, kernel)
    if channels != inner * Conv.of(node).group or window is None or set(window.strides) - {1}:
        return "the convolution changes the number of channels, or the size"
    ones = (1,) * len(kernel)
    place = _place(window, Window(ones, ones, ones, (0,) * 2 * len(kernel)))
    if place is None:
        return "the convolution changes the size"
    learned = normalization(match, channels, match.node("normalization"))
    if isinstance(learned, str):
        return learned
    every = np.arange(channels)
    return _Added((every, every % inner, *(part.start for part in place)), learned.factor, learned.shift)


def _window(node: Node, kernel: Sequence[int]) -> Window[int] | None:
    window = Conv.of(node).window(kernel)
    return None if window.auto_pad != "NOTSET" else window


def _place(large: Window[int], small: Window[int]) -> list[slice] | None:
    """Return where a kernel lies within a larger one; None where it reaches beyond it, or between its elements."""
    kernel, inner = large.kernel, small.kernel
    place = []
    for axis, (size, inner_size) in enumerate(zip(kernel, inner, strict=True)):
        step = large.dilations[axis]
        begin, end = (large.pads[side] - small.pads[side] for side in (axis, axis + len(kernel)))
        is_aligned = begin % step == 0 == end % step and (inner_size == 1 or small.dilations[axis] == step)
        if begin < 0 or end < 0 or not is_aligned or begin // step + inner_size + end // step != size:
            return None
        place.append(slice(begin // step, begin // step + inner_size))
    return place


def _replace(op: Builder, match: Match, learned: _Added) -> Value:
    node, weights, bias = match.node("convolution"), match.tensor("w"), match.tensor("b")
    if weights is None:
        raise ValueError("the weights are no constant")
    name, dtype = match["w"].name, weights.dtype.numpy
    summed = weights.numpy().copy()
    summed[learned.place] = (summed[learned.place].astype(np.float64) + learned.weights).astype(dtype)
    biases = [array.astype(np.float64) for array in (None if bias is None else bias.numpy(), learned.bias) if array is not None]
    constants = [op.constant(summed, f"{name}/summed")]
    if biases:
        constants.append(op.constant(sum(biases[1:], biases[0]).astype(dtype), f"{name}/bias"))
    return op.Conv(match["x"], *constants, _attributes=node.attributes, _version=node.version)


FUSE_PARALLEL_CONVS = Rule(
    "fuse_parallel_convs", _pattern, _replace, _check, summary="Merge two convolutions of one value whose results are added."
)
FUSE_PARALLEL_NORMALIZATION = Rule(
    "fuse_parallel_normalization",
    _normalization_pattern,
    _replace,
    _check_normalization,
    summary="Merge a batch normalization into the convolution of the same value to whose result it is added.",
)
