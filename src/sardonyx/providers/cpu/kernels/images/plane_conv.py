"""Conv in groups of few channels over data whose channels come first, where nothing around it is computed with the channels last.

Left to the convolution with the channels last, between transpositions: groups of many channels, whose sums are products of
matrices; short rows of many channels; and windows so large that a tile does not see them.
"""

from __future__ import annotations

from math import prod

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.images.plane_conv import (
    MOST_SEEN,
    PlaneConvCode,
    PlaneConvParams,
    makes_at_once,
    pack_plane_filters,
    write_plane_conv,
)
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import joins_alone
from sardonyx.providers.cpu.kernels.windows import Filters, claim_filters, conv_axes, place_window
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.precision import FLOAT32
from sardonyx.providers.cpu.sizes import Sizes

__all__ = ["PlaneConvSpec"]

_MOST_CHANNELS, _MOST_MEMBERS, _MOST_STRIDE = 8, 32, 4
"""Channels of one group that is all, and of one of several: more are faster as products of matrices."""
_SHORT_ROW = 16
"""Rows of fewer places fill no vectors, where as many channels do."""
_LONGEST_CHAIN = 256
"""Most elements of several channels that are added one after another."""
_MOST_TAPS = 1024


@dataclasses.dataclass(frozen=True, slots=True)
class PlaneConvSpec:
    """A convolution in groups of few channels."""

    filters: Filters
    """Where the filters meet the input, and how many groups there are."""
    members: int
    """Channels that a group reads."""
    makes: int
    """Channels that it makes."""


def claim(node: Node) -> PlaneConvSpec | str:
    """Return what a Conv computes plane by plane, or why it does not."""
    found = claim_filters(node, Conv.of(node), lambda M, C, groups: (C * groups, M))
    if isinstance(found, str):
        return found
    M, members, *kernel = (size for size in shape_of(node.inputs[1]) if isinstance(size, int))
    window, makes = found.window, M // found.groups
    if given(node.inputs[0]).dtype is not DataType.FLOAT:
        return f"elements of type {given(node.inputs[0]).dtype}"
    row = shape_of(node.output)[-1]
    if isinstance(row, int) and row < _SHORT_ROW <= M:
        return f"rows of {row} places of {M} channels"
    most = _MOST_CHANNELS if found.groups == 1 else _MOST_MEMBERS
    if members > most or prod(kernel) * members > (_MOST_TAPS if members == 1 else _LONGEST_CHAIN):
        return f"filters of {members} channels and {prod(kernel)} taps"
    if max(window.strides[-2:]) > _MOST_STRIDE or members * _seen_by_one(window) > MOST_SEEN // 4:
        return f"strides {list(window.strides)} and a window of {list(window.extents)} elements"
    if given(node.inputs[1]).constant is None and makes_at_once(makes) > 1:
        return "filters of several channels of a group that are computed when the model runs"
    return PlaneConvSpec(found, members, makes)


def _seen_by_one(window: Window[int]) -> int:
    """Return how many elements of a channel a tile of one place has a copy of, at most."""
    layers = prod(window.kernel[:-2])
    return layers * prod(extent + stride for extent, stride in zip(window.extents[-2:], window.strides[-2:], strict=True))


@dataclasses.dataclass(frozen=True, slots=True)
class PlaneConvKernel:
    """A convolution plane by plane."""

    code: PlaneConvCode
    """What its code depends on."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        code = self.code
        name = f"plane_conv_{code.kind}_s{code.stride}_m{code.at_once}{'_bias' if code.has_bias else ''}"
        return expression_symbol(target, name, [code.after])

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_plane_conv(module, symbol, self.code)


@lowers("Conv", claim=claim, joins=joins_alone, inputs=2)
def lower(low: Lowering, group: Group, spec: PlaneConvSpec) -> None:
    """Pack the filters and add the step."""
    node, window, groups = group.node, spec.filters.window, spec.filters.groups
    data, result, bias = low.of(node.inputs[0]), low.result(group.result), node.input(2)
    at_once, threads, members, makes = makes_at_once(spec.makes), low.threads, spec.members, spec.makes
    code = PlaneConvCode(F32, window.strides[-1], at_once, bias is not None, low.epilogue(group)[0])
    symbol, given_filters = low.kernel(PlaneConvKernel(code)), given(node.inputs[1])
    filters = low.of(given_filters)
    if at_once > 1:
        filters = low.packed(pack_plane_filters, low.elements(given_filters), groups, of=given_filters)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, _, *places = sizes.shape(result.shape)
        held = sizes.shape(data.shape[2:])
        axes = conv_axes(window, held, place_window(window, held, places), 1, 1)
        params = PlaneConvParams.tiled(images, groups, members, makes, axes, threads=threads)
        return params.words(), params.tasks()

    buffers = [data, filters, result] if bias is None else [data, filters, result, low.of(bias)]
    low.step(group, symbol, buffers, writes=[2], plan=plan, precision=FLOAT32)
