"""The filters of convolutions, packed for their kernels: constants once, others in each run.

[group][filter][channel][tap…], however it lies in memory
    -> rows       [filter][tap…][channel]                      for vectors along the input's channels, or
    -> panels     [group][panel][tap…][channel][width]         of rows, for vectors along the output's
    -> taps       [tap…][channel, filled up to vectors]        of filters that have a channel each
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.types import of_dtype
from sardonyx.codegen.kernels.conv import pack_filters
from sardonyx.codegen.kernels.conv_narrow import pack_narrow
from sardonyx.codegen.kernels.depthwise import pack_depthwise
from sardonyx.codegen.kernels.narrow.pairs import pack_filter_pairs, pack_filter_tiles
from sardonyx.codegen.kernels.pack import PackParams
from sardonyx.dtypes import Array
from sardonyx.ir import Node, Value
from sardonyx.providers.cpu.kernels.matmul import PackKernel
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import StridedDim, copy_region, dense_strides

__all__ = ["ComputedFilters", "ConstantFilters", "FilterSource", "filters_of"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ConstantFilters:
    """Filters that the model has."""

    weights: Array
    """The filters (M, C / groups, kernel…)."""
    of: Value | None
    """The constant that `weights` are, where they are all of it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape (M, C / groups, kernel…)."""
        return tuple(map(int, self.weights.shape))

    def rows(self, low: Lowering) -> Buffer:
        """Return them as [filter][tap…][channel]."""
        return low.packed(pack_narrow, self.weights, of=self.of)

    def panels(self, low: Lowering, groups: int, width: int) -> Buffer:
        """Return them as [group][panel][tap…][channel][width]."""
        return low.packed(pack_filters, self.weights, groups, width, of=self.of)

    def pairs(self, low: Lowering, groups: int, width: int) -> Buffer:
        """Return them as [group][panel][tap…][channel / 2][width], pairs of bfloat16 in uint32."""
        return low.packed(pack_filter_pairs, self.weights, groups, width, of=self.of)

    def tile_pairs(self, low: Lowering, groups: int, width: int, words: int, unit: int) -> Buffer:
        """Return them as pairs in runs of `words`, each filled up with zeros to a multiple of `unit`."""
        return low.packed(pack_filter_tiles, self.weights, groups, width, words, unit, of=self.of)

    def taps(self, low: Lowering, lanes: int) -> Buffer:
        """Return them as [tap…][channel], filled up to a multiple of `lanes` channels."""
        return low.packed(pack_depthwise, self.weights, lanes, of=self.of)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ComputedFilters:
    """Filters that the run makes."""

    node: Node
    """The convolution."""
    source: Buffer
    """Their elements."""
    filters: tuple[tuple[int, int], ...]
    """The dimensions that count filters, outermost first: how long each is, and how far its elements lie apart."""
    channels: tuple[int, int]
    """The same of the channels of a filter."""
    kernel: tuple[tuple[int, int], ...]
    """The same of the taps along each axis; they may lie backwards."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape (M, C / groups, kernel…)."""
        return prod(size for size, _ in self.filters), self.channels[0], *(size for size, _ in self.kernel)

    def rows(self, low: Lowering) -> Buffer:
        """Copy them to [filter][tap…][channel]."""
        return self._copy(low, (*self.filters, *self.kernel, self.channels))

    def panels(self, low: Lowering, groups: int, width: int) -> Buffer:
        """Copy them to [group][panel][tap…][channel][width]."""
        rows, K, N = self.rows(low), prod(self.shape[1:]), self.shape[0] // groups
        panels = low.temporary(rows.dtype, (groups, -(-N // width), K, width))
        params = PackParams(K=K, N=N, stride_k=1, stride_n=K, stride_batch=K * N)

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            return params.words(), params.parts(width, groups)

        low.move("Pack", low.kernel(PackKernel(width, of_dtype(rows.dtype.numpy))), [rows, panels], plan, self.node)
        return panels

    def taps(self, low: Lowering, lanes: int) -> Buffer:
        """Copy them to [tap…][channel], with any numbers behind the last channel."""
        return self._copy(low, (*self.kernel, *self.filters), -(-self.shape[0] // lanes) * lanes)

    def _copy(self, low: Lowering, dims: Sequence[tuple[int, int]], row: int | None = None) -> Buffer:
        """Return a copy of these dimensions, in this order; the last one has `row` elements, of which only its own are copied."""
        sizes = [size for size, _ in dims]
        result = low.temporary(self.source.dtype, (*sizes[:-1], sizes[-1] if row is None else row))
        strides = dense_strides(result.shape)
        region = [StridedDim(size, step, stride) for (size, step), stride in zip(dims, strides, strict=True)]
        copy_region(low, "Pack", self.source, result, region, self.node)
        return result


FilterSource: TypeAlias = ConstantFilters | ComputedFilters
"""Filters, wherever they come from."""


def filters_of(low: Lowering, node: Node, value: Value) -> FilterSource:
    """Return the filters (M, C / groups, kernel…) of a plain convolution, whose shape is known."""
    if value.constant is not None:
        return ConstantFilters(low.elements(value), value)
    source = low.of(value)
    shape = [size for size in source.shape if isinstance(size, int)]
    strides = [step for step in dense_strides(tuple(shape)) if isinstance(step, int)]
    first, second, *rest = zip(shape, strides, strict=True)
    return ComputedFilters(node, source, (first,), second, tuple(rest))
