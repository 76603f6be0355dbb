"""Conv over channels-last data, with the element-wise nodes that follow in the store.

    kernel of one element, stride 1                 the product of matrices that MatMul is
    each channel by itself                          depthwise
    no padding, or few channels                     implicit product, taps along the last axis in one run; few channels are copied
                                                    into a border of zeros first
    everything else                                 implicit product, tap by tap, padding read from zeros
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sardonyx.codegen.border import BorderParams, write_border
from sardonyx.codegen.conv import ConvAxis, ConvEpilogue, ConvParams, conv_tiling, pack_filters, write_conv
from sardonyx.codegen.expr import Expr, argument, substitute
from sardonyx.codegen.expr_llvm import write_expressions
from sardonyx.codegen.gemm import GemmParams, pack_columns, tiling, write_gemm
from sardonyx.codegen.module import Kernel
from sardonyx.codegen.types import F32
from sardonyx.codegen.values import Span
from sardonyx.codegen.values import Value as Register
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Value
from sardonyx.ir.shape import product
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise
from sardonyx.providers.cpu.kernels.matmul import COLUMN, WHOLE, access_of, epilogue_of
from sardonyx.providers.cpu.kernels.windows import Place, Window, channels_of, check_window
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["Tail", "check_conv", "joins_conv", "place_epilogue", "tail_of"]

_FEW_CHANNELS = 8
"""Up to so many channels a padded input is copied, so that a run is more than one tap's channels."""

_FIRST_OPERAND = 4
"""Buffers of the epilogue come after the input, the filters, the output and the zeros."""


def check_conv(node: Node) -> str | None:
    """Why a Conv, in either layout, cannot be lowered."""
    data, filters, result = node.inputs[0], node.inputs[1], node.outputs[0]
    if data is None or filters is None or data.shape is None or result.shape is None:
        return "an input is left out"
    if {data.dtype, filters.dtype, result.dtype} != {DataType.FLOAT}:
        return f"a convolution of {data.dtype} with {filters.dtype}"
    if filters.constant is None:
        return "the filters are no constant"
    M, C, *kernel = filters.constant.shape
    group, rank = node.get("group", 1), len(kernel)
    if rank not in (1, 2, 3) or len(data.shape) != rank + 2 or len(result.shape) != rank + 2:
        return f"{rank} spatial axes"
    if node.get("kernel_shape") and tuple(node.get("kernel_shape")) != tuple(kernel):
        return f"kernel_shape {list(node.get('kernel_shape'))} beside filters of {filters.constant.shape}"
    if group < 1 or M % group or M == 0 or C == 0 or channels_of(node, data) != (C * group,) or channels_of(node, result) != (M,):
        return f"{channels_of(node, data)} channels in {group} groups for filters of {filters.constant.shape}"
    bias = node.input(2)
    if bias is not None and (bias.dtype is not DataType.FLOAT or bias.shape != (M,)):
        return "the bias is not one number for each output channel"
    return check_window(node, kernel)


def joins_conv(group: Group, node: Node, value: Value) -> bool:
    """Whether `node` can be computed in the store: what it reads besides is one number, one for each channel, or a whole tensor."""
    if node.output.dtype is not DataType.FLOAT or not joins_elementwise(group, node, value):
        return False
    others = (other for other in node.inputs if other is not None and other is not value)
    return all(
        (other.constant is not None and other.constant.size == 1) or access_of(value.shape, other) in (COLUMN, WHOLE)
        for other in others
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Tail:
    """What is computed in the store of a convolution."""

    expr: Expr
    """Of argument 0, the sum, and the operands' elements."""
    operands: tuple[Value, ...]
    """The tensors that it reads besides."""
    ways: str
    """For each of them how it is read."""


def tail_of(low: Lowering, group: Group, bias: Value | None) -> Tail:
    """The group's tail, after the bias."""
    expr, operands = low.epilogue(group)
    if bias is not None:
        operands = [*operands, bias]
        expr = substitute(expr, {0: argument(0, F32) + argument(len(operands), F32)})
    ways = "".join(access_of(group.result.shape, value) or "?" for value in operands)
    return Tail(expr, tuple(operands), ways)


def place_epilogue(tail: Tail, first: int) -> ConvEpilogue | None:
    """The tail as a kernel writes it that knows the place of what it stores; its operands are the buffers from `first` on."""
    if tail.expr.primitive == "argument":
        return None

    def write(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
        places = [column if way == COLUMN else place for way in tail.ways]
        operands = [b.buffer(first + index, F32).load(place, span) for index, place in enumerate(places)]
        return write_expressions(b, [tail.expr], [sums, *operands])[0]

    return write


@lowers("Conv", check=check_conv, joins=joins_conv, domain=NHWC_DOMAIN)
def lower(low: Lowering, group: Group) -> None:
    """Choose how to compute it, pack the filters and add the step."""
    node = group.anchor
    filters = node.inputs[1]
    if filters is None or filters.constant is None:
        raise ValueError("the check lets only constant filters through")
    weights, groups = filters.constant.numpy(), node.get("group", 1)
    window = Window.of(node, weights.shape[2:])
    tail = tail_of(low, group, node.input(2))
    data = low.of(node.inputs[0])
    if window.is_point and groups == 1:
        _lower_product(low, group, data, weights, tail)
    else:
        _lower_windows(low, group, data, weights, groups, window, tail)


def _lower_product(low: Lowering, group: Group, data: Buffer, weights: Array, tail: Tail) -> None:
    M, K = weights.shape[:2]
    target, result = low.target, low.result(group.result)
    symbol = low.symbol(f"gemm_f32_{tiling(target).name}", [tail.expr], tail.ways)
    low.kernel(symbol, lambda module, name: write_gemm(module, name, epilogue_of(tail.expr, tail.ways)))
    packed = low.constant(pack_columns(weights.reshape(M, K).T, tiling(target).panel))
    rows = product(data.shape[:-1])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = GemmParams.blocked(target, sizes(rows), M, K, threads=low.threads)
        return [*params.words(), M], params.tasks()

    low.step(group, symbol, [data, packed, result, *map(low.of, tail.operands)], writes=[2], plan=plan)


def _lower_windows(low: Lowering, group: Group, data: Buffer, weights: Array, groups: int, window: Window, tail: Tail) -> None:
    rank, channels = len(window.kernel), data.shape[-1]
    given = data.shape[1:-1]
    dense = groups == 1 and window.dilations[-1] == 1
    bordered = window.is_padded and dense and isinstance(channels, int) and channels <= _FEW_CHANNELS
    if bordered:
        data = _add_border(low, group, data, window)
    padded = window.is_padded and not bordered
    merged = dense and not padded
    target, result, inner = low.target, low.result(group.result), data.shape[1:-1]
    M, depth = weights.shape[0], weights.shape[1] * (window.kernel[-1] if merged else 1)
    symbol = low.symbol(f"conv{rank}d_f32_{conv_tiling(target).name}{'_padded' * padded}", [tail.expr], tail.ways)
    epilogue = place_epilogue(tail, _FIRST_OPERAND)
    low.kernel(symbol, lambda module, name: write_conv(module, name, rank, padded=padded, epilogue=epilogue))
    packed = low.constant(pack_filters(weights, groups, conv_tiling(target).panel))
    zeros = low.constant(np.zeros(depth, np.float32))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        batch, *places, _ = sizes.shape(result.shape)
        held, C = sizes.shape(inner), sizes(channels)
        placed = window.place(sizes.shape(given), places)
        axes = conv_axes(window, held, placed, C, M, bordered=bordered)
        if merged:
            axes[-1] = dataclasses.replace(axes[-1], taps=1)
        params = ConvParams.blocked(
            target, batch, M // groups, depth, axes, groups=groups, threads=low.threads, group_step=C // groups,
            image=C * _product(held), out_image=M * _product(places),
        )  # fmt: skip
        return params.words(), params.tasks()

    low.step(group, symbol, [data, packed, result, zeros, *map(low.of, tail.operands)], writes=[2], plan=plan)


def conv_axes(
    window: Window, sizes: Sequence[int], placed: Sequence[Place], C: int, M: int, *, bordered: bool = False
) -> list[ConvAxis]:
    """The axes as the kernel wants them, for an input of `sizes` that holds its border already or not."""
    axes: list[ConvAxis] = []
    in_step, out_step = C, M
    for axis in reversed(range(len(sizes))):
        place = placed[axis]
        begin = 0 if bordered else place.begin
        axes.insert(0, ConvAxis(sizes[axis], place.places, window.strides[axis], window.dilations[axis], begin,
                                window.kernel[axis], in_step, out_step))  # fmt: skip
        in_step, out_step = in_step * sizes[axis], out_step * place.places
    return axes


def _add_border(low: Lowering, group: Group, data: Buffer, window: Window) -> Buffer:
    """Copy the input into a buffer that has room for its padding."""
    batch, *spatial, channels = data.shape
    rank = len(spatial)
    same = window.auto_pad.startswith("SAME")
    room = [extent - 1 if same else begin + end
            for extent, begin, end in zip(window.extents, window.pads[:rank], window.pads[rank:], strict=True)]  # fmt: skip
    held = low.temporary(DataType.FLOAT, (batch, *(size + more for size, more in zip(spatial, room, strict=True)), channels))
    symbol = low.kernel(f"border{rank}d_f32_{low.target.isa}", lambda module, name: write_border(module, name, rank))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, *results, C = sizes.shape(held.shape)
        lengths = sizes.shape(tuple(spatial))
        begins = [window.padding(axis, size)[0] for axis, size in enumerate(lengths)]
        params = BorderParams(images, C, lengths, begins, results)
        return params.words(), params.tasks()

    low.move("Pad", symbol, [data, held], plan)
    return held


def _product(numbers: Sequence[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result
