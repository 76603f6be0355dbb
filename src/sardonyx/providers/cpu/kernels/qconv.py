"""QLinearConv and ConvInteger over channels-last data, with the element-wise nodes that follow in the epilogue.

Few channels with padding are copied into a border of zero points first; everything else goes tap by tap, and reads zero points in
the padding. Weights stay 8 bits; what zero points and biases add to a sum is computed once, or in a step of its own where the
zero point of the input is known only when the model runs.
"""

from __future__ import annotations

import dataclasses
from math import prod

import numpy as np

from sardonyx.codegen.emit.expr import ElementExpr, argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.conv import ConvParams
from sardonyx.codegen.kernels.dot_conv import (
    FIRST_OPERAND,
    DotConvCode,
    dot_tiling,
    dot_widths,
    offset_places,
    pack_dot_filters,
    write_dot_conv,
)
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.window import Window
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type, expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.conv_border import FEW_CHANNELS, add_border
from sardonyx.providers.cpu.kernels.elementwise import MapKernel, broadcast_walk
from sardonyx.providers.cpu.kernels.integer_tail import (
    IntegerTail,
    IntegerTailCode,
    integer_tail,
    joins_integer,
    multipliers,
    place_integer_epilogue,
    requantized,
)
from sardonyx.providers.cpu.kernels.windows import claim_sliding, conv_axes, is_padded, is_point, place_window
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of, given
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__: list[str] = []

_BYTES = frozenset((DataType.INT8, DataType.UINT8))
_HALF_RANGE = 128


@dataclasses.dataclass(frozen=True, slots=True)
class IntegerFilters:
    """What a convolution of 8-bit integers does with its filters."""

    window: Window[int]
    """Where they meet the input."""
    groups: int
    """Groups of channels."""
    filters: int
    """The input that they are; zero points of the input are `filters` - 1 for QLinearConv."""
    x_zero: int
    """The input that is the zero point of the data."""
    w_zero: int
    """The input that is the zero points of the filters."""
    factors: int
    """Whether sums of rows are needed, times one factor (1) or times one for each output channel (2)."""


def claim(node: Node) -> IntegerFilters | str:
    """Return what a QLinearConv does with its filters, or why it cannot be compiled."""
    bias, y_zero = node.input(8), given(node.inputs[7])
    if y_zero.dtype not in _BYTES or node.outputs[0].dtype is not y_zero.dtype:
        return f"results of type {node.outputs[0].dtype}"
    if bias is not None and bias.dtype is not DataType.INT32:
        return f"a bias of type {bias.dtype}"
    scales = [constant_of(node.inputs[place]) for place in (1, 4, 6, 7)]
    if any(scale is None for scale in scales) or (bias is not None and bias.constant is None):
        return "its scales, its bias or the zero point of its result are computed when the model runs"
    if any(scale is not None and scale.dtype != np.float32 for scale in scales[:3]):
        return "scales of another type than float"
    if not all(_is_one(node.inputs[place]) for place in (1, 6, 7)):
        return "several scales or zero points of the input or of the result"
    return _claim(node, filters=3, x_zero=2, w_zero=5, bias=bias, scale=node.inputs[4])


def claim_integer(node: Node) -> IntegerFilters | str:
    """Return what a ConvInteger does with its filters, or why it cannot be compiled."""
    return _claim(node, filters=1, x_zero=2, w_zero=3, bias=None, scale=None)


def _claim(node: Node, *, filters: int, x_zero: int, w_zero: int, bias: Value | None, scale: Value | None) -> IntegerFilters | str:
    data, weights = given(node.inputs[0]), given(node.inputs[filters])
    if data.dtype not in _BYTES or weights.dtype not in _BYTES:
        return f"a convolution of {data.dtype} with {weights.dtype}"
    found = claim_sliding(node, Conv.of(node), (data, weights, bias), lambda M, C, groups: (C * groups, M))
    if isinstance(found, str):
        return found
    zero, zeros = node.input(x_zero), node.input(w_zero)
    if zero is not None and (zero.dtype is not data.dtype or not _is_one(zero)):
        return f"a zero point of type {zero.dtype} and shape {zero.shape} for an input of type {data.dtype}"
    if zeros is not None and zeros.constant is None:
        return "the zero points of its filters are computed when the model runs"
    filters_shape = weights.shape or ()
    wrong = next(
        (each for each in (zeros, scale) if each is not None and not _is_one(each) and each.shape != filters_shape[:1]), None
    )
    if wrong is not None or (zeros is not None and zeros.dtype is not weights.dtype):
        return f"zero points or scales that are not one, or one for each of {filters_shape[:1]} output channels"
    numbers = _zeros_of(weights.dtype, constant_of(zeros), signed=data.dtype is DataType.INT8)
    factors = 0 if not numbers.any() else 1 if (numbers == numbers[0]).all() else 2
    return IntegerFilters(found.window, found.groups, filters, x_zero, w_zero, factors)


def _is_one(value: Value | None) -> bool:
    return value is not None and value.shape is not None and all(dim == 1 for dim in value.shape)


def _zeros_of(dtype: DataType | None, zeros: Array | None, *, signed: bool) -> Array:
    """Return the zero points (int64) of filters as they are stored: int8 for an unsigned input, uint8 for a signed one."""
    numbers = np.zeros(1, np.int64) if zeros is None else zeros.reshape(-1).astype(np.int64)
    shift = _HALF_RANGE if dtype is DataType.INT8 else 0
    return numbers + shift - (0 if signed else _HALF_RANGE)


@lowers("QLinearConv", claim=claim, joins=joins_integer, domain=NHWC_DOMAIN, inputs=8)
def lower(low: Lowering, group: Group, spec: IntegerFilters) -> None:
    """Requantize the sums in the store."""
    node, M = group.node, low.elements(group.node.inputs[spec.filters]).shape[0]
    scales = tuple(low.elements(node.inputs[place]) for place in (1, 4, 6))
    kind, zero_point = element_type(node.outputs[0].dtype), low.elements(node.inputs[7])
    if kind is None:
        raise ValueError(f"{node!r} has no known type")
    head = requantized(kind, int(zero_point.reshape(())))
    multiplier = low.packed(multipliers, scales, M, of=None)
    _lower(low, group, spec, integer_tail(low, group, head, multiplier), node.input(8))


@lowers("ConvInteger", claim=claim_integer, joins=joins_integer, domain=NHWC_DOMAIN, inputs=2)
def lower_integer(low: Lowering, group: Group, spec: IntegerFilters) -> None:
    """Store the sums, or what the epilogue makes of them."""
    _lower(low, group, spec, integer_tail(low, group), None)


def _lower(low: Lowering, group: Group, spec: IntegerFilters, tail: IntegerTail, bias: Value | None) -> None:
    """Pack the filters and add the step, with the copy into a border before it where there are few channels."""
    node, window, target = group.node, spec.window, low.target
    weights, data = low.elements(node.inputs[spec.filters]), low.of(node.inputs[0])
    M, C, channels, given_sizes = len(weights), weights.shape[1], data.shape[-1], data.shape[1:-1]
    dense = spec.groups == 1 and window.dilations[-1] == 1
    bordered = is_padded(window) and dense and C <= FEW_CHANNELS
    padded, merged = is_padded(window) and not bordered, dense and (bordered or not is_padded(window))
    depth, width, point = C * (window.kernel[-1] if merged else 1), dot_tiling(target).panel, is_point(window)
    parts = _correct(low, node, spec, depth, bias)
    if bordered:
        data = add_border(low, data, window, parts.zero)
    signed, result, inner = data.dtype is DataType.INT8, low.result(group.result), data.shape[1:-1]
    widths = dot_widths(target, M // spec.groups)
    code = DotConvCode(1 if point else len(window.kernel), widths, padded, signed, depth % 4, spec.factors)
    symbol = low.kernel(DotConvKernel(code, tail.code))
    packed = low.packed(_packed, weights, spec.groups, width, depth, signed, of=node.inputs[spec.filters])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        batch, *places, _ = sizes.shape(result.shape)
        held, row = sizes.shape(inner), sizes(result.row)
        axes = conv_axes(
            window, held, place_window(window, sizes.shape(given_sizes), places), sizes(channels), row, bordered=bordered
        )
        if merged:
            axes[-1] = dataclasses.replace(axes[-1], taps=1)
        if point:
            axes = [WindowAxis(prod(held), prod(places), 1, 1, 0, 1, sizes(channels), row)]
        params = ConvParams.blocked(
            target,
            batch,
            M // spec.groups,
            depth,
            axes,
            groups=spec.groups,
            threads=low.threads,
            group_step=C,
            image=sizes(channels) * prod(held),
            out_image=row * prod(places),
        )
        return params.words(), params.tasks()

    buffers = [data, packed, result, parts.border, parts.offsets, parts.factors, *tail.operands]
    low.step(group, symbol, buffers, writes=[2], plan=plan, pitched=tail.may_be_pitched)


def _packed(filters: Array, groups: int, width: int, depth: int, signed: bool) -> Array:
    return pack_dot_filters(filters, groups, width, depth, signed=not signed)


@dataclasses.dataclass(frozen=True, slots=True)
class DotConvKernel:
    """A convolution of 8-bit integers."""

    code: DotConvCode
    """What its loops depend on."""
    tail: IntegerTailCode
    """The epilogue."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(target, f"{self.code.name}_{dot_tiling(target).name}", [self.tail.expr], self.tail.ways)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        epilogue = place_integer_epilogue(self.tail, FIRST_OPERAND)
        write_dot_conv(module, symbol, self.code, self.tail.expr.type, epilogue)


@dataclasses.dataclass(frozen=True, slots=True)
class Corrections:
    """What makes sums of bytes sums of numbers."""

    zero: Buffer
    """The zero point of the input, one element."""
    border: Buffer
    """As many of them as a run has elements."""
    offsets: Buffer
    """What is added to the sums of each column."""
    factors: Buffer
    """What the sum of a row is multiplied by; not read where the kernel needs none."""


def _correct(low: Lowering, node: Node, spec: IntegerFilters, depth: int, bias: Value | None) -> Corrections:
    weights, zeros = low.elements(node.inputs[spec.filters]), constant_of(node.input(spec.w_zero))
    data, zero, width = given(node.inputs[0]), node.input(spec.x_zero), dot_tiling(low.target).panel
    dtype, signed = data.dtype or DataType.UINT8, data.dtype is DataType.INT8
    stored = _zeros_of(given(node.inputs[spec.filters]).dtype, zeros, signed=signed)
    factors = low.constant(-stored[:1].astype(np.int32))
    if spec.factors == 2:
        factors = low.constant(offset_places(-stored, spec.groups, width))
    elements = (weights, stored, None if bias is None else low.elements(bias))
    if zero is None or zero.constant is not None:
        number = np.zeros(1, dtype.numpy) if zero is None else low.elements(zero).reshape(1)
        offsets = low.packed(_offsets, (*elements, int(number[0])), spec.groups, width, signed, of=None)
        return Corrections(low.constant(number), low.constant(np.repeat(number, depth)), offsets, factors)
    buffer = low.of(zero)
    one = Buffer(buffer.dtype, (1,), base=buffer)
    kind = element_type(dtype) or I32
    border = _map(low, argument(0, kind), [one], low.temporary(dtype, (depth,)))
    slopes = low.packed(_offsets, (weights, stored, None, 1), spec.groups, width, signed, of=None)
    starts = low.packed(_offsets, (*elements, 0), spec.groups, width, signed, of=None)
    sloped = argument(0, I32) + argument(1, I32) * argument(2, kind).to(I32)
    offsets = _map(low, sloped, [starts, slopes, one], low.temporary(DataType.INT32, slopes.shape))
    return Corrections(one, border, offsets, factors)


def _map(low: Lowering, expr: ElementExpr, inputs: list[Buffer], result: Buffer) -> Buffer:
    walk = broadcast_walk(result.shape, [buffer.shape for buffer in inputs])
    kinds = tuple(kind for buffer in inputs if (kind := element_type(buffer.dtype)) is not None)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = walk.params(sizes)
        return params.words(), params.tasks()

    symbol = low.kernel(MapKernel("map", kinds, (expr,), tuple(walk.accesses())))
    low.move("ZeroPoint", symbol, [*inputs, result], plan)
    return result


def _offsets(elements: tuple[Array, Array, Array | None, int], groups: int, width: int, signed: bool) -> Array:
    """Return bias + x_zero * (K * w_zero - the sum of the filters) for each column, wrapped to int32; of filters as stored."""
    weights, zeros, bias, x_zero = elements
    shift = (_HALF_RANGE if weights.dtype == np.int8 else 0) - (0 if signed else _HALF_RANGE)
    K = prod(weights.shape[1:])
    sums = weights.reshape(len(weights), K).sum(axis=1, dtype=np.int64) + K * shift
    offsets = x_zero * (K * zeros - sums)
    if bias is not None:
        offsets = offsets + bias
    return offset_places(offsets.astype(np.int32), groups, width)
