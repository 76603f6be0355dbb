"""QLinearConv and ConvInteger over channels-last data, with the element-wise nodes that follow in the epilogue.

each channel by itself                          depthwise
few channels with padding                       copied into a border of zero points first, taps along the last axis in one run
everything else                                 implicit product, tap by tap, padding read from zero points

Weights stay 8 bits.
"""

from __future__ import annotations

from math import prod

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.conv import ConvParams
from sardonyx.codegen.kernels.depthwise import DepthwiseParams
from sardonyx.codegen.kernels.dot_conv import (
    FIRST_OPERAND,
    DotConvCode,
    dot_tiling,
    dot_widths,
    write_dot_conv,
)
from sardonyx.codegen.kernels.dot_depthwise import FIRST_OPERAND as FIRST_DEPTHWISE_OPERAND
from sardonyx.codegen.kernels.dot_depthwise import DotDepthwiseCode, pack_dot_depthwise, write_dot_depthwise
from sardonyx.codegen.kernels.quantized.dot_filters import groups_together, merge_groups, pack_dot_filters, spare_bytes
from sardonyx.codegen.kernels.quantized.pairs import cut_lanes
from sardonyx.codegen.kernels.quantized.wide_rows import widens_rows
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Value
from sardonyx.ir.shape import product
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type, expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.conv_border import FEW_CHANNELS, add_border
from sardonyx.providers.cpu.kernels.integer_tail import (
    IntegerTail,
    IntegerTailCode,
    integer_tail,
    joins_integer,
    multipliers,
    place_integer_epilogue,
    requantized,
)
from sardonyx.providers.cpu.kernels.integer_zeros import (
    Stored,
    SumParts,
    correct_sums,
    filters_shape,
    map_to,
    stored_zeros,
)
from sardonyx.providers.cpu.kernels.quantized.computed_filters import pack_computed
from sardonyx.providers.cpu.kernels.windows import claim_sliding, conv_axes, is_padded, is_point, place_window
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of, given
from sardonyx.providers.cpu.precision import BYTES
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__: list[str] = []

_BYTES = frozenset((DataType.INT8, DataType.UINT8))
_ONE_ROW = WindowAxis(1, 1, 1, 1, 0, 1, 0, 0)
"""The axis around a sequence, which is an image of one row."""


@dataclasses.dataclass(frozen=True, slots=True)
class IntegerFilters:
    """What a convolution of 8-bit integers does with its filters."""

    window: Window[int]
    """Where they meet the input."""
    groups: int
    """Groups of channels."""
    filters: int
    """The input that they are."""
    x_zero: int
    """The input that is the zero point of the data."""
    w_zero: int
    """The input that is their zero points."""
    factors: int
    """Whether sums of rows are needed, times one factor (1) or times one for each output channel (2)."""
    is_depthwise: bool
    """Whether each channel goes by itself."""


def claim(node: Node) -> IntegerFilters | str:
    """Return what a QLinearConv does with its filters, or why it cannot be compiled."""
    bias, y_zero = node.input(8), given(node.inputs[7])
    if y_zero.dtype not in _BYTES or node.outputs[0].dtype is not y_zero.dtype:
        return f"results of type {node.outputs[0].dtype}"
    if bias is not None and bias.dtype is not DataType.INT32:
        return f"a bias of type {bias.dtype}"
    if bias is not None and bias.constant is None:
        return "its bias is computed when the model runs"
    if any(given(node.inputs[place]).dtype is not DataType.FLOAT for place in (1, 4, 6)):
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
    operands = (data, weights, bias)
    found = claim_sliding(node, Conv.of(node), operands, lambda M, C, groups: (C * groups, M), may_be_computed=True)
    if isinstance(found, str):
        return found
    zero, zeros = node.input(x_zero), node.input(w_zero)
    if zero is not None and (zero.dtype is not data.dtype or not _is_one(zero)):
        return f"a zero point of type {zero.dtype} and shape {zero.shape} for an input of type {data.dtype}"
    if zeros is not None and zeros.constant is None:
        return "the zero points of its filters are computed when the model runs"
    shape = weights.shape or ()
    wrong = next((each for each in (zeros, scale) if each is not None and not _is_one(each) and each.shape != shape[:1]), None)
    if wrong is not None or (zeros is not None and zeros.dtype is not weights.dtype):
        return f"zero points or scales that are not one, or one for each of {shape[:1]} output channels"
    is_depthwise = shape[:2] == (found.groups, 1) and found.groups > 1 and len(found.window.kernel) <= 2
    numbers = stored_zeros(weights.dtype, constant_of(zeros), signed=is_depthwise or data.dtype is DataType.UINT8)
    factors = 0 if not numbers.any() else 1 if (numbers == numbers[0]).all() else 2
    return IntegerFilters(found.window, found.groups, filters, x_zero, w_zero, factors, is_depthwise)


def _is_one(value: Value | None) -> bool:
    return value is not None and value.shape is not None and all(dim == 1 for dim in value.shape)


@lowers("QLinearConv", claim=claim, joins=joins_integer, domain=NHWC_DOMAIN, inputs=8)
def lower(low: Lowering, group: Group, spec: IntegerFilters) -> None:
    """Requantize the sums in the store."""
    node, (M, *_) = group.node, filters_shape(_parts(group.node, spec))
    kind, zero = element_type(node.outputs[0].dtype), given(node.inputs[7])
    if kind is None:
        raise ValueError(f"{node!r} has no known type")
    multiplier, number = _multiplier(low, node, M), constant_of(zero)
    head = requantized(kind, None if number is None else int(number.reshape(())))
    tail = integer_tail(low, group, head, multiplier, low.of(zero) if number is None else None)
    _lower(low, group, spec, tail, node.input(8))


def _multiplier(low: Lowering, node: Node, M: int) -> Buffer:
    """Return x_scale * w_scale / y_scale for each of M channels, computed now, or by a step where a scale is no constant."""
    scales = [given(node.inputs[place]) for place in (1, 4, 6)]
    if all(scale.constant is not None for scale in scales):
        return low.packed(multipliers, tuple(low.elements(scale) for scale in scales), M, of=None)
    held = [low.of(scale) for scale in scales]
    vectors = [Buffer(buffer.dtype, (product(buffer.shape),), buffer.constant, buffer) for buffer in held]
    x_scale, w_scale, y_scale = (argument(place, F32) for place in range(3))
    return map_to(low, "Scale", x_scale * w_scale / y_scale, vectors, low.temporary(DataType.FLOAT, (M,)))


@lowers("ConvInteger", claim=claim_integer, joins=joins_integer, domain=NHWC_DOMAIN, inputs=2)
def lower_integer(low: Lowering, group: Group, spec: IntegerFilters) -> None:
    """Store the sums, or what the epilogue makes of them."""
    _lower(low, group, spec, integer_tail(low, group), None)


def _lower(low: Lowering, group: Group, spec: IntegerFilters, tail: IntegerTail, bias: Value | None) -> None:
    parts = _parts(group.node, spec, bias)
    if spec.is_depthwise:
        _lower_depthwise(low, group, spec, tail, parts)
    else:
        _lower_windows(low, group, spec, tail, parts)


def _parts(node: Node, spec: IntegerFilters, bias: Value | None = None) -> SumParts:
    return SumParts(given(node.inputs[spec.filters]), node.input(spec.x_zero), node.input(spec.w_zero), bias)


def _lower_depthwise(low: Lowering, group: Group, spec: IntegerFilters, tail: IntegerTail, parts: SumParts) -> None:
    node, window, target, lanes = group.node, spec.window, low.target, low.target.lanes(32)
    data, (C, *_) = low.of(node.inputs[0]), filters_shape(parts)
    spatial, result, signed, sums = data.shape[1:-1], low.result(group.result), data.dtype is DataType.INT8, None
    if parts.filters.constant is None:
        width = -(-C // lanes) * lanes
        packed, sums = pack_computed(low, group, parts, (1, 1), width, window.kernel[-1], signed=True, spare=0)
    else:
        packed = low.packed(pack_dot_depthwise, low.elements(parts.filters), lanes, of=parts.filters)
    fixed = correct_sums(low, parts, data.dtype, Stored(signed=True, lifted=signed), lanes, (1, lanes), sums)
    code = DotDepthwiseCode(window.kernel[-1], window.strides[-1], window.dilations[-1], signed, spec.factors > 0, C % lanes == 0)
    symbol = low.kernel(DotDepthwiseKernel(code, tail.code))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, *places, _ = sizes.shape(result.shape)
        held, row = sizes.shape(spatial), sizes(result.row)
        axes = conv_axes(window, held, place_window(window, held, places), C, row)
        if len(axes) == 1:
            axes.insert(0, dataclasses.replace(_ONE_ROW, in_step=C * held[0], out_step=row * places[0]))
        params = DepthwiseParams.blocked(target, images, C, (axes[0], axes[1]), threads=low.threads)
        return params.words(), params.tasks()

    buffers = [data, packed, result, fixed.border, fixed.offsets, fixed.factors, *tail.operands]
    low.step(group, symbol, buffers, writes=[2], plan=plan, pitched=tail.may_be_pitched, precision=BYTES)


def _lower_windows(low: Lowering, group: Group, spec: IntegerFilters, tail: IntegerTail, parts: SumParts) -> None:
    node, window, target = group.node, spec.window, low.target
    data, (M, each, *_) = low.of(node.inputs[0]), filters_shape(parts)
    channels, given_sizes = data.shape[-1], data.shape[1:-1]
    together = groups_together(spec.groups, M // spec.groups, each, target.lanes(32))
    groups, C = spec.groups // together, each * together
    dense = groups == 1 and window.dilations[-1] == 1
    bordered = is_padded(window) and dense and C <= FEW_CHANNELS
    padded, merged = is_padded(window) and not bordered, dense and (bordered or not is_padded(window))
    depth, width, point = C * (window.kernel[-1] if merged else 1), dot_tiling(target).panel, is_point(window)
    signed, result = data.dtype is DataType.INT8, low.result(group.result)
    packed, sums = _packed_filters(low, group, parts, (spec.groups, together), width, depth // C, signed=not signed)
    fixed = correct_sums(low, parts, data.dtype, Stored(signed=not signed), depth, (groups, width), sums)
    if bordered:
        data = add_border(low, data, window, fixed.zero)
    inner = data.shape[1:-1]
    widths = dot_widths(target, M // groups)
    widens = widens_rows(target, depth, prod(window.kernel) * C // depth)
    code = DotConvCode(1 if point else len(window.kernel), widths, padded, signed, depth % 4, spec.factors, widens)
    symbol = low.kernel(DotConvKernel(code, tail.code))

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
            M // groups,
            depth,
            axes,
            groups=groups,
            threads=low.threads,
            group_step=C,
            image=sizes(channels) * prod(held),
            out_image=row * prod(places),
        )
        return params.words(), params.tasks()

    buffers = [data, packed, result, fixed.border, fixed.offsets, fixed.factors, *tail.operands]
    low.step(group, symbol, buffers, writes=[2], plan=plan, pitched=tail.may_be_pitched, precision=BYTES)


def _packed_filters(
    low: Lowering, group: Group, parts: SumParts, groups: tuple[int, int], width: int, run: int, *, signed: bool
) -> tuple[Buffer, Buffer | None]:
    """Return the filters as the kernel reads them, and their sums where a step makes both."""
    spare, cut = spare_bytes(low.target), cut_lanes(low.target)
    if parts.filters.constant is None:
        return pack_computed(low, group, parts, groups, width, run, signed=signed, spare=spare, cut=cut)
    weights = low.elements(parts.filters)
    depth = weights.shape[1] * groups[1] * run
    layout = (width, depth, signed, spare, cut)
    return low.packed(_packed, weights, (*groups, _fills(parts)), *layout, of=parts.filters), None


def _fills(parts: SumParts) -> tuple[int, ...]:
    """Return what stands for 0 in the filters: their zero points."""
    zeros = constant_of(parts.w_zero)
    return (0,) if zeros is None else tuple(zeros.reshape(-1).tolist())


def _packed(
    filters: Array, groups: tuple[int, int, tuple[int, ...]], width: int, depth: int, signed: bool, spare: int, cut: int
) -> Array:
    count, together, fills = groups
    merged = filters if together == 1 else merge_groups(filters, count, together, fills)
    return pack_dot_filters(merged, count // together, width, depth, signed=signed, spare=spare, cut=cut)


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
class DotDepthwiseKernel:
    """A convolution of 8-bit integers, each channel by itself."""

    code: DotDepthwiseCode
    """What its loops depend on."""
    tail: IntegerTailCode
    """The epilogue."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(target, self.code.name, [self.tail.expr], self.tail.ways)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        epilogue = place_integer_epilogue(self.tail, FIRST_DEPTHWISE_OPERAND)
        write_dot_depthwise(module, symbol, self.code, self.tail.expr.type, epilogue)
