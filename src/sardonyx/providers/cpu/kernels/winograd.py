"""Conv of 3 x 3 taps with stride 1 by minimal filtering: 4 products where the plain sum takes 9."""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.conv import conv_tiling, widths_for
from sardonyx.codegen.kernels.winograd import WinogradParams, pack_winograd, scratch_elements, steps_of, write_winograd
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Shape
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.expressions import expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.conv_tail import Tail, TailCode, place_epilogue
from sardonyx.providers.cpu.kernels.windows import place_window
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.pairs import multiplies_pairs
from sardonyx.providers.cpu.precision import BFLOAT16, FLOAT32
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["lower_winograd", "suits_winograd"]

_FEWEST_CHANNELS, _FEWEST_COLUMNS = 16, 8
"""Below these the transforms cost more than the products that they save."""

_MOST_FILTERS = 512 * 1024
"""Filters take 16 / 9 of their size: beyond so many the memory is worth more than the time."""

_SMALL_PLANE, _MANY_FILTERS = 100, 256 * 256
"""For fewer places than this, more filters than this are read from memory for too little use."""

_FIRST_OPERAND = 5
"""Buffers of the epilogue come after the input, the filters, the output, the zeros and the scratch memory."""


def suits_winograd(window: Window[int], groups: int, weights: Array, places: Shape) -> bool:
    """Return whether a convolution is one that this makes faster: the number of places, where it is known, decides too."""
    if window.kernel != (3, 3) or {*window.strides, *window.dilations, groups} != {1}:
        return False
    M, C = weights.shape[:2]
    if C < _FEWEST_CHANNELS or M < _FEWEST_COLUMNS or C * M > _MOST_FILTERS:
        return False
    high, wide = places
    is_small = isinstance(high, int) and isinstance(wide, int) and high * wide < _SMALL_PLANE
    return not (is_small and C * M > _MANY_FILTERS)


@dataclasses.dataclass(frozen=True, slots=True)
class WinogradKernel:
    """A convolution by minimal filtering."""

    widths: tuple[int, ...]
    """The tiles of columns that it is written for."""
    tail: TailCode
    """The epilogue."""
    pairs: bool = False
    """Whether it multiplies pairs of bfloat16."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(
            target,
            f"winograd_{'bf16x2' if self.pairs else 'f32'}_{conv_tiling(target).name}_{'_'.join(map(str, self.widths))}",
            [self.tail.expr],
            self.tail.ways,
        )

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_winograd(module, symbol, place_epilogue(self.tail, _FIRST_OPERAND), self.widths, pairs=self.pairs)


def lower_winograd(low: Lowering, group: Group, data: Buffer, weights: Array, window: Window[int], tail: Tail) -> None:
    """Transform the filters and add the step."""
    target, result = low.target, low.result(group.result)
    M, C = weights.shape[:2]
    pairs = multiplies_pairs(low, C)
    symbol = low.kernel(WinogradKernel(tuple(widths_for(target, M)), tail.code, pairs))
    pack = _pack_pairs if pairs else pack_winograd
    packed = low.packed(pack, weights, conv_tiling(target).panel, of=group.node.inputs[1])
    zeros = low.constant(np.zeros(C, np.float32))
    together = 1 if low.threads == 1 else 2 * low.threads
    scratch = low.temporary(DataType.FLOAT, (together, scratch_elements(target, steps_of(C, pairs=pairs), M)))
    spatial = data.shape[1:-1]

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, high, wide, _ = sizes.shape(result.shape)
        height, width = sizes.shape(spatial)
        rows, columns = place_window(window, (height, width), (high, wide))
        params = WinogradParams.blocked(
            target,
            images,
            (height, width),
            C,
            (high, wide),
            M,
            (rows.begin, columns.begin),
            together,
            sizes(result.row),
            pairs=pairs,
        )
        return params.words(), params.tasks()

    buffers, precision = [data, packed, result, zeros, scratch, *map(low.of, tail.operands)], BFLOAT16 if pairs else FLOAT32
    low.step(group, symbol, buffers, writes=[2, 4], plan=plan, pitched=tail.may_be_pitched, together=together, precision=precision)


def _pack_pairs(weights: Array, width: int) -> Array:
    return pack_winograd(weights, width, pairs=True)
