"""The steps that Conv and ConvTranspose share, over channels-last data: implicit products, and each channel by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.matrix_tiles import TILE
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.conv import ConvParams, conv_tiling, widths_for, write_conv
from sardonyx.codegen.kernels.conv_narrow import MOST_COLUMNS, write_narrow_conv
from sardonyx.codegen.kernels.depthwise import DepthwiseParams, write_depthwise
from sardonyx.codegen.kernels.gemm_params import chains_over_channels
from sardonyx.codegen.kernels.narrow.tile_conv import write_tile_conv
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.providers.cpu.expressions import expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.conv_tail import Tail, TailCode, place_epilogue
from sardonyx.providers.cpu.kernels.filters import ConstantFilters, FilterSource
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.pairs import as_pairs, convolves_tiles, multiplies_pairs
from sardonyx.providers.cpu.precision import BFLOAT16, FLOAT32
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["DepthwiseLine", "WindowPlacement", "add_depthwise", "add_product", "is_narrow"]

_SHORTEST_RUN = 16
"""Elements of a run that are worth vectors along it."""

_FIRST_OPERAND = 4
"""Buffers of the epilogue come after the input, the filters, the output and the zeros."""

_FIRST_DEPTHWISE = 3
"""The same without zeros."""


@dataclasses.dataclass(frozen=True, slots=True)
class WindowPlacement:
    """Where windows and places lie for one set of sizes."""

    batch: int
    axes: Sequence[WindowAxis]
    image: int
    """Elements of one image of the input."""
    out_image: int
    """Elements of one image of the output."""
    out_begin: int = 0
    """Where the first place lies in the output."""


def is_narrow(columns: int, groups: int, depth: int) -> bool:
    """Return whether vectors along the input's channels serve better than along the output's."""
    return groups == 1 and columns <= MOST_COLUMNS and depth >= _SHORTEST_RUN


@dataclasses.dataclass(frozen=True, slots=True)
class NarrowConvKernel:
    """An implicit product with vectors along the channels of the input."""

    rank: int
    """How many spatial axes."""
    columns: int
    """Output channels."""
    padded: bool
    """Whether a window may lie partly outside of the input."""
    tail: TailCode
    """The epilogue."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(
            target, f"conv{self.rank}d_f32_to{self.columns}{'_padded' * self.padded}", [self.tail.expr], self.tail.ways
        )

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        epilogue = place_epilogue(self.tail, _FIRST_OPERAND)
        write_narrow_conv(module, symbol, self.rank, self.columns, padded=self.padded, epilogue=epilogue)


@dataclasses.dataclass(frozen=True, slots=True)
class ConvKernel:
    """An implicit product with vectors along the channels of the output."""

    rank: int
    """How many spatial axes."""
    widths: tuple[int, ...]
    """The tiles of columns that it is written for."""
    padded: bool
    """Whether a window may lie partly outside of the input."""
    tail: TailCode
    """The epilogue."""
    pairs: bool = False
    """Whether it multiplies pairs of bfloat16."""
    element: Type = F32
    """The type of elements and sums."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        plain = "f32" if self.element == F32 else self.element.text
        kind, widths = "bf16x2" if self.pairs else plain, "_".join(map(str, self.widths))
        name = f"conv{self.rank}d_{kind}_{conv_tiling(target, self.element).name}_{widths}{'_padded' * self.padded}"
        return expression_symbol(target, name, [self.tail.expr], self.tail.ways)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        epilogue = place_epilogue(self.tail, _FIRST_OPERAND)
        write_conv(
            module,
            symbol,
            self.rank,
            padded=self.padded,
            epilogue=epilogue,
            widths=self.widths,
            pairs=self.pairs,
            kind=self.element,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class TileConvKernel:
    """An implicit product of pairs of bfloat16 in matrix tiles."""

    rank: int
    """How many spatial axes."""
    widths: tuple[int, ...]
    """The panels of columns that it is written for."""
    padded: bool
    """Whether a window may lie partly outside of the input."""
    tail: TailCode
    """The epilogue."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        widths = "_".join(map(str, self.widths))
        name = f"conv{self.rank}d_bf16x2_tiles{TILE}x{conv_tiling(target).panel}_{widths}{'_padded' * self.padded}"
        return expression_symbol(target, name, [self.tail.expr], self.tail.ways)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        epilogue = place_epilogue(self.tail, _FIRST_OPERAND)
        write_tile_conv(module, symbol, self.rank, padded=self.padded, epilogue=epilogue, widths=self.widths)


def add_product(
    low: Lowering,
    group: Group,
    data: Buffer,
    result: Buffer,
    weights: FilterSource,
    groups: int,
    depth: int,
    tail: Tail,
    place: Callable[[Sizes], WindowPlacement],
    *,
    padded: bool,
) -> None:
    """Add the step that convolves `data` with `weights`.

    Args:
        low: where to add it.
        group: what it computes.
        data: the input (N, spatial…, C), of float32 or float64, as all others are.
        result: the output (N, spatial…, M).
        weights: the filters (M, C / groups, kernel…).
        groups: groups of channels.
        depth: elements of one run.
        tail: the epilogue.
        place: the placement for given sizes.
        padded: whether a window may lie partly outside of the input.
    """
    target, rank, (M, C) = low.target, len(weights.shape) - 2, weights.shape[:2]
    words, kind = 1, F64 if data.dtype is DataType.DOUBLE else F32
    if kind == F32 and is_narrow(M, groups, depth):
        symbol = low.kernel(NarrowConvKernel(rank, M, padded, tail.code))
        packed = weights.rows(low)
    elif kind == F32 and isinstance(weights, ConstantFilters) and convolves_tiles(low, C, depth):
        symbol = low.kernel(TileConvKernel(rank, tuple(widths_for(target, M // groups)), padded, tail.code))
        packed = weights.tile_pairs(low, groups, conv_tiling(target).panel, depth // 2, TILE)
        data, words = as_pairs(low, group.node, data), 2
    elif kind == F32 and isinstance(weights, ConstantFilters) and multiplies_pairs(low, C, depth):
        symbol = low.kernel(ConvKernel(rank, tuple(widths_for(target, M // groups)), padded, tail.code, pairs=True))
        packed, data, words = weights.pairs(low, groups, conv_tiling(target).panel), as_pairs(low, group.node, data), 2
    else:
        symbol = low.kernel(ConvKernel(rank, tuple(widths_for(target, M // groups, kind)), padded, tail.code, element=kind))
        packed = weights.panels(low, groups, conv_tiling(target, kind).panel)
    zeros = low.constant(np.zeros(max(depth, 1), data.dtype.numpy))
    chains = chains_over_channels(C, prod(weights.shape[2:])) if groups == words == 1 else 1

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        found = place(sizes)
        params = ConvParams.blocked(
            target,
            found.batch,
            M // groups,
            depth // words,
            [dataclasses.replace(axis, in_step=axis.in_step // words) for axis in found.axes],
            groups=groups,
            threads=low.threads,
            kind=kind,
            chains=chains,
            group_step=C // words,
            image=found.image // words,
            out_image=found.out_image,
            out_begin=found.out_begin,
        )
        return params.words(), params.tasks()

    operands = map(low.of, tail.operands)
    buffers = [data, packed, result, zeros, *operands]
    precision = "float64" if kind == F64 else FLOAT32 if words == 1 else BFLOAT16
    low.step(group, symbol, buffers, writes=[2], plan=plan, pitched=tail.may_be_pitched, precision=precision)


_ONE_ROW = WindowAxis(1, 1, 1, 1, 0, 1, 0, 0)
"""The axis around a sequence, which is an image of one row."""


@dataclasses.dataclass(frozen=True, slots=True)
class DepthwiseLine:
    """The window along the last axis, which is baked into the code."""

    taps: int
    """How long it is."""
    stride: int
    """From one place to the next."""
    dilation: int
    """From one tap to the next."""
    groups: tuple[int, int] = (1, 1)
    """Channels that a group reads, and that it makes."""


@dataclasses.dataclass(frozen=True, slots=True)
class DepthwiseKernel:
    """A convolution of each channel by itself, or of small groups."""

    taps: int
    """Taps along the last axis."""
    stride: int
    """From one place to the next there."""
    dilation: int
    """From one tap to the next there."""
    groups: tuple[int, int]
    """Channels that a group reads, and that it makes."""
    tail: TailCode
    """The epilogue."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        name = f"depthwise_f32_{self.taps}s{self.stride}d{self.dilation}g{self.groups[0]}x{self.groups[1]}"
        return expression_symbol(target, name, [self.tail.expr], self.tail.ways)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        epilogue = place_epilogue(self.tail, _FIRST_DEPTHWISE)
        write_depthwise(
            module, symbol, taps=self.taps, stride=self.stride, dilation=self.dilation, groups=self.groups, epilogue=epilogue
        )


def add_depthwise(
    low: Lowering,
    group: Group,
    buffers: tuple[Buffer, Buffer],
    filters: FilterSource,
    line: DepthwiseLine,
    tail: Tail,
    place: Callable[[Sizes], WindowPlacement],
) -> None:
    """Add the step that convolves each channel, or each small group of channels, with its filters.

    Args:
        low: where to add it.
        group: what it computes.
        buffers: the input (N, spatial…, C) and the output (N, spatial…, C), of one spatial axis or two.
        filters: the filters (C, channels of a group, kernel…).
        line: the window along the last axis.
        tail: the epilogue.
        place: the placement for given sizes.
    """
    (data, result), target, C = buffers, low.target, filters.shape[0]
    packed = filters.taps(low, target.lanes(32))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        found = place(sizes)
        *outer, inner = found.axes
        axes = outer[0] if outer else dataclasses.replace(_ONE_ROW, in_step=found.image, out_step=found.out_image), inner
        params = DepthwiseParams.blocked(
            target, found.batch, C, axes, threads=low.threads, out_image=found.out_image, out_begin=found.out_begin
        )
        return params.words(), params.tasks()

    every, pitched = [data, packed, result, *map(low.of, tail.operands)], tail.may_be_pitched
    symbol = low.kernel(DepthwiseKernel(line.taps, line.stride, line.dilation, line.groups, tail.code))
    low.step(group, symbol, every, writes=[2], plan=plan, pitched=pitched, precision=FLOAT32)
