"""ConvTranspose over channels-last data: one convolution for each phase of its strides.

The places of the output fall into phases, as many along each axis as its stride. A place o of an axis meets tap t of the kernel in
element (o + begin - t * dilation) / stride of the input, where that is whole; so all places of a phase meet the same taps, in
elements that lie as evenly as those of a plain convolution with stride 1, in reverse order:

    kernel 4, stride 2      phase 0: taps 2, 0      phase 1: taps 3, 1      each writes every second place
    kernel 2, stride 2      phase 0: tap 0          phase 1: tap 1          plain products of matrices

No input is spread out, no product is added to memory. Phases are depthwise convolutions where each channel has a filter of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.conv import ConvTranspose
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.conv_tail import joins_conv, tail_of
from sardonyx.providers.cpu.kernels.filters import ComputedFilters, ConstantFilters, FilterSource, filters_of
from sardonyx.providers.cpu.kernels.implicit_product import DepthwiseLine, WindowPlacement, add_depthwise, add_product
from sardonyx.providers.cpu.kernels.windows import claim_filters
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__: list[str] = []

_MOST_PHASES = 64
"""Each phase is a step of its own."""


@dataclasses.dataclass(frozen=True, slots=True)
class SpreadSpec:
    """How the output's places lie over the input's elements."""

    window: Window[int]
    groups: int
    output_padding: tuple[int, ...]
    output_shape: tuple[int, ...]
    """Its spatial sizes where the node states them, else empty."""

    @property
    def is_tiling(self) -> bool:
        """Whether each place meets exactly one element: the kernel is as long as its stride, and nothing is cut off or added."""
        window = self.window
        plain = window.kernel == window.strides and set(window.dilations) == {1} and not any(self.output_padding)
        return plain and not self.output_shape and (window.auto_pad != "NOTSET" or not any(window.pads))

    def begins(self, sizes: Sequence[int], places: Sequence[int]) -> list[int]:
        """Return how many places are cut off before the first; raises InvalidArgument for other places than these sizes make."""
        window, rank = self.window, len(sizes)
        totals = [
            stride * (size - 1) + more + extent
            for stride, size, more, extent in zip(window.strides, sizes, self.output_padding, window.extents, strict=True)
        ]
        if self.output_shape or window.auto_pad.startswith("SAME"):
            expected = self.output_shape or tuple(size * stride for size, stride in zip(sizes, window.strides, strict=True))
            cut = [max(0, total - length) for total, length in zip(totals, expected, strict=True)]
            begins = [half // 2 if window.auto_pad == "SAME_UPPER" else half - half // 2 for half in cut]
        else:
            pads = (0,) * (2 * rank) if window.auto_pad == "VALID" else window.pads
            begins = list(pads[:rank])
            expected = tuple(total - pads[axis] - pads[axis + rank] for axis, total in enumerate(totals))
        if tuple(places) != tuple(expected) or min(expected, default=0) < 0:
            raise InvalidArgument(
                f"a transposed convolution of {list(window.kernel)} taps over {list(sizes)} elements makes {list(expected)} "
                f"places, not {list(places)}: give an input of a size that its attributes suit"
            )
        return begins


@dataclasses.dataclass(frozen=True, slots=True)
class _Phase:
    """One phase of one axis: the taps whose distance from the first is `residue` modulo the stride."""

    residue: int
    stride: int
    dilation: int
    taps: range
    """In the order of the elements that they meet: the last tap first."""

    @staticmethod
    def of(kernel: int, stride: int, dilation: int, residue: int) -> _Phase:
        taps = [tap for tap in range(kernel) if tap * dilation % stride == residue]
        step = stride // math.gcd(stride, dilation)
        return _Phase(residue, stride, dilation, range(taps[-1], taps[0] - 1, -step) if taps else range(0))

    def first_place(self, begin: int) -> int:
        """Return the first place of the phase."""
        return (self.residue - begin) % self.stride

    def axis(self, size: int, places: int, begin: int, in_step: int, out_step: int) -> WindowAxis:
        """Return the phase as an axis of a plain convolution; the output has `places` in all, `out_step` apart."""
        first = self.first_place(begin)
        count = max(-(-(places - first) // self.stride), 0)
        meets = (first + begin - self.taps[0] * self.dilation) // self.stride if self.taps else 0
        return WindowAxis(
            size,
            count,
            1,
            self.dilation // math.gcd(self.stride, self.dilation),
            -meets,
            len(self.taps),
            in_step,
            out_step * self.stride,
        )


def claim(node: Node) -> SpreadSpec | str:
    """Return how a ConvTranspose spreads its filters, or why it cannot be compiled."""
    view = ConvTranspose.of(node)
    filters = claim_filters(node, view, lambda C, part, groups: (C, part * groups))
    if isinstance(filters, str):
        return filters
    window, rank = filters.window, len(filters.window.kernel)
    extra, shape = view.padding(rank), view.output_shape
    if math.prod(window.strides) > _MOST_PHASES:
        return f"strides {list(window.strides)} make more than {_MOST_PHASES} phases"
    if any(more < 0 for more in extra):
        return f"output_padding {list(extra)}, expected no numbers below 0"
    if len(shape) not in (0, rank, rank + 2):
        return f"output_shape {list(shape)} for {rank} spatial axes"
    return SpreadSpec(window, filters.groups, extra, shape[-rank:])


@lowers("ConvTranspose", claim=claim, joins=joins_conv, domain=NHWC_DOMAIN, inputs=2)
def lower(low: Lowering, group: Group, spread: SpreadSpec) -> None:
    """Add one step for each phase."""
    node, groups = group.node, spread.groups
    weights = filters_of(low, node, given(node.inputs[1]))
    C, kernel = weights.shape[0], weights.shape[2:]
    tail = tail_of(low, group, node.input(2))
    data, result = low.of(node.inputs[0]), low.result(group.result)
    window = spread.window
    choices = [
        [_Phase.of(taps, stride, dilation, residue) for residue in range(stride)]
        for taps, stride, dilation in zip(kernel, window.strides, window.dilations, strict=True)
    ]
    is_alone = (C, weights.shape[1]) == (groups, 1) and isinstance(weights, ConstantFilters)
    is_depthwise = (
        is_alone and data.dtype is DataType.FLOAT and len(kernel) <= 2 and all(phase.taps for phases in choices for phase in phases)
    )
    for phases in itertools.product(*choices):
        taken = _taken(weights, groups, [phase.taps for phase in phases])

        def place(sizes: Sizes, phases: Sequence[_Phase] = phases) -> WindowPlacement:
            return _place(spread, phases, sizes.shape(data.shape), sizes.shape(result.shape), sizes(result.row))

        if is_depthwise:
            last = phases[-1]
            line = DepthwiseLine(len(last.taps), 1, last.dilation // math.gcd(last.stride, last.dilation))
            add_depthwise(low, group, (data, result), taken, line, tail, place)
        else:
            add_product(low, group, data, result, taken, groups, C // groups, tail, place, padded=not spread.is_tiling)


def _taken(filters: FilterSource, groups: int, taps: Sequence[range]) -> FilterSource:
    """Return some taps of the filters (C, M / groups, kernel…) as those (M, C / groups, taps…) of a plain convolution."""
    C, part, *kernel = filters.shape
    if isinstance(filters, ConstantFilters):
        parts = filters.weights.reshape(groups, C // groups, part, *kernel)
        taken = np.moveaxis(parts, 1, 2).reshape(groups * part, C // groups, *kernel)
        for axis, chosen in enumerate(taps):
            taken = taken.take(chosen, axis + 2)
        return ConstantFilters(taken, None)
    (_, step), own, source = filters.filters[0], filters.channels, filters.source
    steps = [stride for _, stride in filters.kernel]
    first = sum(chosen.start * stride for chosen, stride in zip(taps, steps, strict=True) if chosen)
    moved = Buffer(source.dtype, source.shape, base=source, offset=first)
    counted = tuple((len(chosen), chosen.step * stride) for chosen, stride in zip(taps, steps, strict=True))
    return ComputedFilters(filters.node, moved, ((groups, step * (C // groups)), own), (C // groups, step), counted)


def _place(spread: SpreadSpec, phases: Sequence[_Phase], given: Sequence[int], made: Sequence[int], row: int) -> WindowPlacement:
    batch, *sizes, C = given
    _, *places, _ = made
    begins = spread.begins(sizes, places)
    axes: list[WindowAxis] = []
    in_step, out_step, out_begin = C, row, 0
    for axis in reversed(range(len(sizes))):
        phase = phases[axis]
        axes.insert(0, phase.axis(sizes[axis], places[axis], begins[axis], in_step, out_step))
        out_begin += phase.first_place(begins[axis]) * out_step
        in_step, out_step = in_step * sizes[axis], out_step * places[axis]
    return WindowPlacement(batch, axes, in_step, out_step, out_begin)
