"""Conv of an image that lies plane by plane, read where it is: the transposition before it is not made."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.conv import conv_tiling, widths_for
from sardonyx.codegen.kernels.images.planes import MOST_RUNS, MOST_STRIDE, MOST_TAPS, PlanesParams, pack_planes, write_planes_conv
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.expressions import expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.conv_border import FEW_CHANNELS
from sardonyx.providers.cpu.kernels.conv_tail import Tail, TailCode, place_epilogue
from sardonyx.providers.cpu.kernels.implicit_product import is_narrow
from sardonyx.providers.cpu.kernels.windows import place_window
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given
from sardonyx.providers.cpu.precision import FLOAT32
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.views import View, view_of

__all__ = ["PlanesConvKernel", "lower_planes", "planes_of"]

_MOST_FILTERS = 1 << 15
"""Elements of filters that stay in the caches beside a row of the output."""

_FIRST_OPERAND = 3
"""Buffers of the epilogue come after the input, the filters and the output."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlanesConvKernel:
    """A convolution of planes."""

    taps: int
    """Taps along the last axis."""
    stride: int
    """From one place to the next there."""
    widths: tuple[int, ...]
    """The tiles of columns that it is written for."""
    tail: TailCode
    """The epilogue."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        widths = "_".join(map(str, self.widths))
        name = f"planes_f32_{conv_tiling(target).name}_{self.taps}s{self.stride}_{widths}"
        return expression_symbol(target, name, [self.tail.expr], self.tail.ways)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        epilogue = place_epilogue(self.tail, _FIRST_OPERAND)
        write_planes_conv(module, symbol, taps=self.taps, stride=self.stride, epilogue=epilogue, widths=self.widths)


def planes_of(low: Lowering, group: Group, window: Window[int], groups: int, weights: Array) -> View | None:
    """Return the input (N, spatial…, C) of a convolution where it lies as planes and is read so fastest; else None."""
    M, C, *kernel = weights.shape
    rank, taps, stride = len(kernel), window.kernel[-1], window.strides[-1]
    runs = C * (kernel[0] if rank == 2 else 1)
    is_short = runs <= MOST_RUNS and taps <= MOST_TAPS and stride <= MOST_STRIDE
    is_small = C <= FEW_CHANNELS and weights.size <= _MOST_FILTERS and not is_narrow(M, groups, C * taps)
    if rank > 2 or groups != 1 or {*window.dilations} != {1} or not is_short or not is_small:
        return None
    view = view_of(low, given(group.node.inputs[0]))
    return view if view.strides[-2] == 1 else None


def lower_planes(low: Lowering, group: Group, view: View, weights: Array, window: Window[int], tail: Tail) -> None:
    """Pack the filters and add the step."""
    target, result, shape = low.target, low.result(group.result), view.buffer.shape
    M, rank = len(weights), len(window.kernel)
    symbol = low.kernel(PlanesConvKernel(window.kernel[-1], window.strides[-1], widths_for(target, M), tail.code))
    packed = low.packed(pack_planes, weights, conv_tiling(target).panel, of=group.node.inputs[1])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, *places, _ = sizes.shape(result.shape)
        held, steps, row = sizes.shape(shape[1:-1]), [sizes(step) for step in view.strides], sizes(result.row)
        axes = [
            WindowAxis(size, place.places, stride, 1, place.begin, taps, step, out_step)
            for size, place, stride, taps, step, out_step in zip(
                held,
                place_window(window, held, places),
                window.strides,
                window.kernel,
                steps[1:-1],
                (row * places[-1], row)[-rank:],
                strict=True,
            )
        ]
        outer = axes[0] if rank > 1 else WindowAxis(1, 1, 1, 1, 0, 1, 0, row * places[-1])
        params = PlanesParams.blocked(
            images, M, sizes(shape[-1]), (outer, axes[-1]), image=steps[0], plane=steps[-1], threads=low.threads
        )
        return params.words(), params.tasks()

    buffers, pitched = [view.buffer, packed, result, *map(low.of, tail.operands)], tail.may_be_pitched
    low.step(group, symbol, buffers, writes=[2], plan=plan, pitched=pitched, precision=FLOAT32)
