"""The step that Conv and ConvTranspose share: an implicit product of matrices over channels-last data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.conv import ConvParams, conv_tiling, pack_filters, widths_for, write_conv
from sardonyx.codegen.kernels.conv_narrow import MOST_COLUMNS, pack_narrow, write_narrow_conv
from sardonyx.dtypes import Array
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.conv_tail import Tail, place_epilogue
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["Placement", "add_product", "is_narrow"]

_SHORTEST_RUN = 16
"""Elements of a run that are worth vectors along it."""

_FIRST_OPERAND = 4
"""Buffers of the epilogue come after the input, the filters, the output and the zeros."""


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
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
    """Whether vectors along the input's channels serve better than along the output's."""
    return groups == 1 and columns <= MOST_COLUMNS and depth >= _SHORTEST_RUN


def add_product(
    low: Lowering,
    group: Group,
    data: Buffer,
    result: Buffer,
    weights: Array,
    groups: int,
    depth: int,
    tail: Tail,
    place: Callable[[Sizes], Placement],
    *,
    padded: bool,
) -> None:
    """Add the step that convolves `data` with `weights`.

    Args:
        low: where to add it.
        group: what it computes.
        data: the input (N, spatial…, C).
        result: the output (N, spatial…, M).
        weights: the filters (M, C / groups, kernel…).
        groups: groups of channels.
        depth: elements of one run.
        tail: what is computed in the store.
        place: the placement for given sizes.
        padded: whether a window may lie partly outside of the input.
    """
    target, rank, (M, C) = low.target, weights.ndim - 2, weights.shape[:2]
    epilogue = place_epilogue(tail, _FIRST_OPERAND)
    if is_narrow(M, groups, depth):
        symbol = low.symbol(f"conv{rank}d_f32_to{M}{'_padded' * padded}", [tail.expr], tail.ways)
        low.kernel(symbol, lambda module, name: write_narrow_conv(module, name, rank, M, padded=padded, epilogue=epilogue))
        packed = low.packed(pack_narrow, weights)
    else:
        widths = widths_for(target, M // groups)
        shape = f"{conv_tiling(target).name}_{'_'.join(map(str, widths))}"
        symbol = low.symbol(f"conv{rank}d_f32_{shape}{'_padded' * padded}", [tail.expr], tail.ways)
        low.kernel(symbol, lambda module, name: write_conv(module, name, rank, padded=padded, epilogue=epilogue, widths=widths))
        packed = low.packed(pack_filters, weights, groups, conv_tiling(target).panel)
    zeros = low.constant(np.zeros(max(depth, 1), np.float32))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        found = place(sizes)
        params = ConvParams.blocked(
            target,
            found.batch,
            M // groups,
            depth,
            found.axes,
            groups=groups,
            threads=low.threads,
            group_step=C,
            image=found.image,
            out_image=found.out_image,
            out_begin=found.out_begin,
        )
        return params.words(), params.tasks()

    operands = map(low.of, tail.operands)
    low.step(group, symbol, [data, packed, result, zeros, *operands], writes=[2], plan=plan, pitched=tail.may_be_pitched)
