"""The filters of convolutions of 8-bit integers that a run computes, packed in each run, with their sums."""

from __future__ import annotations

from math import prod

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.quantized.pack_filters import PackFiltersParams, write_pack_filters
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.integer_zeros import SumParts, filters_shape
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["PackFiltersKernel", "pack_computed"]


@dataclasses.dataclass(frozen=True, slots=True)
class PackFiltersKernel:
    """A copy of filters to panels of bytes."""

    width: int
    """Columns of a panel."""
    flips: bool
    """Whether the highest bit of each byte is turned."""
    signed: bool
    """Whether the sums are of int8."""
    cut: int
    """How many words are cut together; 0 for none."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"pack_filters_{self.width}_{self.flips:d}{self.signed:d}_{self.cut}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_pack_filters(module, symbol, self.width, flips=self.flips, signed=self.signed, cut=self.cut)


def pack_computed(
    low: Lowering,
    group: Group,
    parts: SumParts,
    groups: tuple[int, int],
    width: int,
    run: int,
    *,
    signed: bool,
    spare: int,
    cut: int = 0,
) -> tuple[Buffer, Buffer]:
    """Add the step that packs filters which are no constants.

    Args:
        low: the partition.
        group: the convolution.
        parts: its filters, and their zero points.
        groups: groups of channels, and how many neighbours are computed as one.
        width: columns of a panel.
        run: taps that lie in one run.
        signed: whether they are packed as int8, or as uint8.
        spare: zeros behind them.
        cut: how many words are cut together; 0 for none.

    Returns:
        The packed bytes, and the sums of the filters as they are packed, one for each column.
    """
    (M, C, *kernel), (given, together) = filters_shape(parts), groups
    count = given // together
    params = PackFiltersParams(M // count, M // given, C, C * together, prod(kernel), run, width, spare, count)
    panels, depth = params.tasks() // count, run * C * together
    bytes_ = params.tasks() * (prod(kernel) // run) * -(-depth // 4) * width * 4
    flips = signed != (parts.filters.dtype is DataType.INT8)
    zeros = constant_of(parts.w_zero)
    numbers = np.zeros(1, np.uint8) if zeros is None else zeros.reshape(-1).view(np.uint8)
    fills = np.array(np.broadcast_to(numbers, (M,))) ^ np.uint8(0x80 if flips else 0)
    sums, packed = low.temporary(DataType.INT32, (count, panels * width)), low.temporary(DataType.UINT8, (bytes_ + spare,))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return params.words(), params.tasks()

    buffers = [low.of(parts.filters), low.constant(fills), sums, packed]
    low.step(group, low.kernel(PackFiltersKernel(width, flips, signed, cut)), buffers, writes=[2, 3], plan=plan)
    return packed, sums
