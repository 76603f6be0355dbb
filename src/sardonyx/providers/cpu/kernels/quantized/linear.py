"""QuantizeLinear and DequantizeLinear, with the element-wise nodes that follow.

one scale              element by element, as any other element-wise node
scales by axis         read as (n, 1, …, 1)
scales by block        x (…, D, …) walked as (…, D / block, block, …), scales standing still along a block; what is left of D
                       by a step of its own
2 and 4 bits           integers that have a byte each in memory, of which the lower bits count
floats of 8 and 4 bits bytes too (`small_floats`); zero points are added before the quotient is rounded, once
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument, constant, substitute
from sardonyx.codegen.emit.small_floats import SMALL_FLOATS
from sardonyx.codegen.emit.types import E2M1, E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, F32, I8, U8, Type
from sardonyx.codegen.kernels.elementwise import Access, MapParams
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.ops.schema import place_of
from sardonyx.ops.views.quantize import Quantization
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import ElementwiseSpec, element_type
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels import elementwise
from sardonyx.providers.cpu.kernels.elementwise import MapKernel, broadcast_walk, can_broadcast, joins_elementwise, others_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.quantization import dequantized, is_one, quantized, require_float_quotient
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Plan

__all__: list[str] = []


@dataclasses.dataclass(frozen=True, slots=True)
class ScaledSpec:
    """A quantization or dequantization that is no element-wise matter."""

    expr: ElementExpr
    """One element of the result: of x, argument 0, the scale, 1, and the zero point, 2."""
    kinds: tuple[Type, ...]
    """The types of these arguments, without the last where there is no zero point."""
    scales: tuple[Shape, ...]
    """The shapes as which scales and zero points are broadcast to x; as they are where they go by block."""
    axis: int
    """The axis that blocks divide, counted from the front."""
    block: int
    """Elements of a block; 0 where scales do not go by block."""


_FEW_BITS = {DataType.INT2: 2, DataType.UINT2: 2, DataType.INT4: 4, DataType.UINT4: 4}
_SIGNED = (DataType.INT2, DataType.INT4)
_FLOATS: Mapping[DataType | None, Type] = {
    DataType.FLOAT8E4M3FN: E4M3FN,
    DataType.FLOAT8E4M3FNUZ: E4M3FNUZ,
    DataType.FLOAT8E5M2: E5M2,
    DataType.FLOAT8E5M2FNUZ: E5M2FNUZ,
    DataType.FLOAT4E2M1: E2M1,
}
_QUANTIZED = frozenset((DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, *_FEW_BITS, *_FLOATS))


def claim(node: Node) -> object | str:
    """Return what a node computes, an ElementwiseSpec or a ScaledSpec, or why it cannot be compiled."""
    x, scale, zero = given(node.inputs[0]), given(node.inputs[1]), node.input(2)
    numbers = x if node.op_type == "DequantizeLinear" else node.outputs[0]
    parts = [scale] if zero is None else [scale, zero]
    if all(map(is_one, parts)) and numbers.dtype not in _FEW_BITS and numbers.dtype not in _FLOATS:
        return elementwise.claim(node)
    wider = (DataType.INT32,) if node.op_type == "DequantizeLinear" else ()
    if numbers.dtype not in _QUANTIZED and numbers.dtype not in wider:
        return f"quantized elements of type {numbers.dtype}"
    if scale.dtype is not DataType.FLOAT or (zero is not None and zero.dtype is not numbers.dtype):
        return f"a scale of type {scale.dtype} and a zero point of type {None if zero is None else zero.dtype}"
    try:
        expr = _expression(node, x, zero)
    except TypeError as error:
        return str(error)
    return _claim_scales(node, parts, expr, tuple(_stored(value.dtype) for value in (x, *parts)))


def _expression(node: Node, x: Value, zero: Value | None) -> ElementExpr:
    """Return an element of the result; raises TypeError for types that are not computed with."""
    scale, point = argument(1, F32), None if zero is None else _unpacked(argument(2, _stored(zero.dtype)), zero.dtype)
    if node.op_type == "DequantizeLinear":
        if node.outputs[0].dtype is not DataType.FLOAT:
            raise TypeError(f"dequantization to {node.outputs[0].dtype}")
        return dequantized(_unpacked(argument(0, _stored(x.dtype)), x.dtype), scale, point)
    if x.dtype is not DataType.FLOAT:
        raise TypeError(f"quantization of {x.dtype}")
    require_float_quotient(node, argument(0, F32))
    made = node.outputs[0].dtype
    if made in _FLOATS:
        return _rounded(argument(0, F32) / scale, point, _FLOATS[made], saturates=node.flag("saturate", default=True))
    return _packed(quantized(argument(0, F32), scale, point, _stored(made)), made)


def _stored(dtype: DataType | None) -> Type:
    """Return the type as which elements lie in memory."""
    if dtype in _FEW_BITS:
        return I8 if dtype in _SIGNED else U8
    return _FLOATS.get(dtype) or element_type(dtype) or F32


def _rounded(quotient: ElementExpr, zero_point: ElementExpr | None, kind: Type, *, saturates: bool) -> ElementExpr:
    """Return a quotient plus the zero point as a float of few bits; types of 4 bits always saturate."""
    found = quotient if zero_point is None else quotient + zero_point.to(F32)
    form = SMALL_FLOATS[kind.kind]
    if saturates:
        found = OPERATORS["clip"](found, constant(-form.largest, F32), constant(form.largest, F32))
    return found.to(kind)


def _unpacked(x: ElementExpr, dtype: DataType | None) -> ElementExpr:
    """Return the number of which `x` is the byte."""
    if dtype not in _FEW_BITS:
        return x
    bits = _FEW_BITS[dtype]
    low, half = x & constant((1 << bits) - 1, x.type), constant(1 << (bits - 1), x.type)
    return (low ^ half) - half if dtype in _SIGNED else low


def _packed(x: ElementExpr, dtype: DataType | None) -> ElementExpr:
    """Return the byte of a number that was saturated to 8 bits, saturated to fewer."""
    if dtype not in _FEW_BITS:
        return x
    bits = _FEW_BITS[dtype]
    least = -(1 << (bits - 1)) if dtype in _SIGNED else 0
    clipped = OPERATORS["clip"](x, constant(least, x.type), constant(least + (1 << bits) - 1, x.type))
    return clipped & constant((1 << bits) - 1, x.type)


def _claim_scales(node: Node, parts: Sequence[Value], expr: ElementExpr, kinds: tuple[Type, ...]) -> ScaledSpec | str:
    view, shape = Quantization.of(node), shape_of(node.inputs[0])
    axis = 0 if len(shape) <= 1 else view.place(len(shape))
    shapes = [shape_of(part) for part in parts]
    if view.block and not all(map(is_one, parts)):
        wanted = (*shape[:axis], -(-shape[axis] // view.block) if shape else 1, *shape[axis + 1 :])
        if view.block < 1 or any(not _may_be(found, wanted) for found in shapes):
            return f"scales or zero points of shapes {shapes}, expected {wanted} for blocks of {view.block}"
        return ScaledSpec(expr, kinds, tuple(shapes), axis, view.block)
    broadcast = [
        () if is_one(part) else (*found, *(1,) * (len(shape) - 1 - axis)) for part, found in zip(parts, shapes, strict=True)
    ]
    if any(len(found) > 1 and not is_one(part) for part, found in zip(parts, shapes, strict=True)):
        return f"scales or zero points of shapes {shapes}, expected one number or a vector"
    if any(not can_broadcast(shape, found) for found in broadcast):
        return f"scales or zero points of shapes {shapes}, expected {shape[axis] if shape else 1} along axis {axis}"
    return ScaledSpec(expr, kinds, tuple(broadcast), axis, 0)


def _may_be(found: Shape, wanted: Shape) -> bool:
    """Return whether two shapes may turn out to be equal."""
    return len(found) == len(wanted) and all(
        one == other or not (isinstance(one, int) and isinstance(other, int)) for one, other in zip(found, wanted, strict=True)
    )


def _joins(group: Group, spec: object, member: Member, value: Value) -> bool:
    if not joins_elementwise(group, spec, member, value):
        return False
    if not isinstance(spec, ScaledSpec) or not spec.block:
        return True
    return all(other.shape == value.shape for other in others_of(member, value))


@lowers("DequantizeLinear", "QuantizeLinear", claim=claim, joins=_joins, domain="com.microsoft", inputs=2)
@lowers("DequantizeLinear", "QuantizeLinear", claim=claim, joins=_joins, inputs=2)
def lower(low: Lowering, group: Group, spec: object) -> None:
    """Lower a node and its tail to one map, or two where the last block is shorter."""
    if isinstance(spec, ElementwiseSpec):
        elementwise.lower(low, group, spec)
    elif isinstance(spec, ScaledSpec):
        _lower_scaled(low, group, spec)


def _lower_scaled(low: Lowering, group: Group, spec: ScaledSpec) -> None:
    node, hidden = group.node, {place: argument(-1 - place, kind) for place, kind in enumerate(spec.kinds)}
    expr, values = low.epilogue(group, substitute(spec.expr, hidden))
    scales = [low.of(value) for value in node.inputs[1:3] if value is not None]
    reads = [low.of(node.inputs[0]), *(low.of(value) for value in values)]
    places = [0, *range(len(reads), len(reads) + len(scales))]
    expr = substitute(expr, {-1 - k: argument(place, kind) for k, (place, kind) in enumerate(zip(places, spec.kinds, strict=True))})
    kinds = (spec.kinds[0], *(_stored(buffer.dtype) for buffer in reads[1:]), *spec.kinds[1:])
    result = low.result(group.result)
    if spec.block:
        _map_blocks(low, group, spec, MapOver(expr, kinds, reads, scales, result))
        return
    walk = broadcast_walk(result.shape, [*(buffer.shape for buffer in reads), *spec.scales])
    symbol = low.kernel(MapKernel("map", kinds, (expr,), tuple(walk.accesses())))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = walk.params(sizes)
        return params.words(), params.tasks()

    low.step(group, symbol, [*reads, *scales, result], writes=[len(kinds)], plan=plan)


@dataclasses.dataclass(frozen=True, slots=True)
class MapOver:
    """A map over x by blocks."""

    expr: ElementExpr
    """What is computed."""
    kinds: tuple[Type, ...]
    """The types of what is read."""
    reads: list[Buffer]
    """What is read in order: x first."""
    scales: list[Buffer]
    """What stands still along a block."""
    result: Buffer
    """What is written."""


def _map_blocks(low: Lowering, group: Group, spec: ScaledSpec, over: MapOver) -> None:
    """Add the step for whole blocks, and one for the shorter blocks at the end unless there are none."""
    shape, block = over.result.shape, spec.block
    outer, length, inner = product(shape[: spec.axis]), shape[spec.axis], product(shape[spec.axis + 1 :])
    still = Access.FIXED if inner == 1 else Access.ORDERED
    accesses = [*[Access.ORDERED] * len(over.reads), *[still] * len(over.scales), Access.ORDERED]
    symbol = low.kernel(MapKernel("map", over.kinds, (over.expr,), tuple(accesses)))

    def plan_of(*, is_rest: bool) -> Plan:
        def plan(sizes: Sizes) -> tuple[list[int], int]:
            count, D, stride = sizes(outer), sizes(length), sizes(inner)
            whole, blocks = D // block, -(-D // block)
            _require_blocks(group.node, [sizes.shape(buffer.shape) for buffer in over.scales], (*sizes.shape(shape),), spec)
            walked = (count, 1, D - whole * block, stride) if is_rest else (count, whole, block, stride)
            strides = [(D * stride, block * stride, stride, 1)] * (len(over.reads) + 1)
            strides[-1:-1] = [(blocks * stride, stride, 0, 1)] * len(over.scales)
            params = MapParams.over(walked, strides, accesses, threads=low.threads)
            return params.words(), params.tasks()

        return plan

    buffers = [*over.reads, *over.scales, over.result]
    low.step(group, symbol, buffers, writes=[len(over.kinds)], plan=plan_of(is_rest=False))
    if isinstance(length, int) and length % block == 0:
        return
    moved, behind = length // block * block * inner, length // block * inner
    rest = [_from(buffer, behind if buffer in over.scales else moved) for buffer in buffers]
    low.step(group, symbol, rest, writes=[len(over.kinds)], plan=plan_of(is_rest=True))


def _from(buffer: Buffer, offset: Dim) -> Buffer:
    """Return the elements of a buffer from one on."""
    return Buffer(buffer.dtype, (product(buffer.shape) - offset,), buffer.constant, buffer, offset)


def _require_blocks(node: Node, found: Sequence[Sequence[int]], shape: Sequence[int], spec: ScaledSpec) -> None:
    wanted = (*shape[: spec.axis], -(-shape[spec.axis] // spec.block), *shape[spec.axis + 1 :])
    for sizes in found:
        if tuple(sizes) != wanted:
            raise InvalidArgument(
                f"{place_of(node)}: a scale or zero point has shape {tuple(sizes)}, expected {wanted} for blocks of {spec.block} "
                f"along axis {spec.axis} of {tuple(shape)}"
            )
