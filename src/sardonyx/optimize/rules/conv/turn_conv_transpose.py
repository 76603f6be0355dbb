"""Write a transposed convolution that does not spread its input as a convolution.

    ConvTranspose(x, w, b?) {pads = p, dilations = d}      ->      Conv(x, w', b?) {pads = d * (k - 1) - p, dilations = d}

where each stride is 1. The filters w' (M, C / group, *k) are w (C, M / group, *k) with the channels of each group changed over and
every spatial axis turned around. Convolutions have the faster kernels, those with a group for each channel above all.

Left alone:
    another stride than 1, output_padding, output_shape, auto_pad
    pads beyond d * (k - 1), which cut the result
    filters that are no constant, or of another type than float and double
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Value
from sardonyx.ops.views.conv import ConvTranspose
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["TURN_CONV_TRANSPOSE"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Conv:
    """The attributes of the convolution."""

    group: int
    pads: list[int]
    dilations: list[int]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.ConvTranspose(x, op.constant("w"), op.optional("b"))


def _check(match: Match) -> str | _Conv:
    filters = match.tensor("w")
    if filters is None or filters.dtype not in (DataType.FLOAT, DataType.DOUBLE) or len(filters.shape) < 3:
        return "the filters are no constant of float or double"
    channels, _, *kernel = filters.shape
    try:
        view = ConvTranspose.of(match.root)
        window = view.window(kernel)
        padding = view.padding(len(kernel))
    except InvalidGraph as error:
        return str(error)
    if view.sliding.auto_pad != "NOTSET" or view.output_shape or any(padding) or any(step != 1 for step in window.strides):
        return "a stride is not 1, or the size of the result is given in another way than by pads"
    if channels % view.group:
        return "the groups do not divide the channels"
    reach = [step * (size - 1) for step, size in zip(window.dilations, kernel, strict=True)]
    pads = [whole - own for whole, own in zip([*reach, *reach], window.pads, strict=True)]
    return "the pads cut the result" if min(pads) < 0 else _Conv(view.group, pads, list(window.dilations))


def _replace(op: Builder, match: Match, learned: _Conv) -> Value:
    filters, bias = match.tensor("w"), match.get("b")
    assert filters is not None, "the pattern asks for a constant"
    operands = [match["x"], _turned(filters.numpy(), learned.group), *([] if bias is None else [bias])]
    return op.Conv(*operands, group=learned.group, pads=learned.pads, dilations=learned.dilations)


def _turned(w: Array, group: int) -> Array:
    """Return the filters of the convolution."""
    channels, outputs, *kernel = w.shape
    parts = w.reshape(group, channels // group, outputs, *kernel).swapaxes(1, 2)
    turned = parts.reshape(group * outputs, channels // group, *kernel)
    return np.ascontiguousarray(np.flip(turned, axis=tuple(range(2, turned.ndim))))


TURN_CONV_TRANSPOSE = Rule("turn_conv_transpose", _pattern, _replace, _check)
