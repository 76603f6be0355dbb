"""MatMulInteger, QLinearMatMul, and QGemm, MatMulIntegerToFloat and DynamicQuantizeMatMul of com.microsoft.

The sums are exact in int32. What an operator makes of them, scaled, rounded and saturated, is computed in the store, with the
element-wise nodes that follow. Scales and zero points are data, constant or not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument, constant, round_saturated
from sardonyx.codegen.emit.scalars import scalar
from sardonyx.codegen.emit.types import BOOL, F32, I32, U8, Type
from sardonyx.codegen.kernels.quantized.byte_gemm import COLUMN, ROW, SCALAR, WHOLE
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Expr, Node, Shape, Value
from sardonyx.ops.views.matmul import Gemm
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.byte_product import (
    Head,
    LeftSide,
    ZeroPoint,
    multiply_sides,
    pack_right,
    placeholder,
    way_of,
)
from sardonyx.providers.cpu.kernels.dynamic_quantize import quantize_dynamically
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise, others_of
from sardonyx.providers.cpu.kernels.quantized.table import starts_table
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of, given, open_or_wrong, shape_of
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import StridedDim, copy_region

__all__: list[str] = []

_MICROSOFT = "com.microsoft"
_BYTES = frozenset((DataType.INT8, DataType.UINT8))


@dataclasses.dataclass(frozen=True, slots=True)
class IntegerProductSpec:
    """A product of 8-bit integers: which inputs are what, and how they are read."""

    right: int
    """B."""
    left_zero: int
    """The zero points of A; -1 for none."""
    right_zero: int
    """The zero points of B."""
    ways: tuple[tuple[int, str], ...]
    """The inputs that are read in the store."""
    is_vector: bool
    """Whether B is a vector."""
    is_left_transposed: bool = False
    """Whether A is (K, M)."""
    is_transposed: bool = False
    """Whether B is (N, K)."""
    alpha: float = 1.0
    """What the scales are multiplied by."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Sides:
    """The shapes of a product; a vector on the right is a matrix of one column."""

    left: Shape
    right: Shape
    output: Shape

    def by_row(self, shape: Shape) -> str | None:
        """Return how numbers for A are read: one for all, or one for each row of the product.

        One matrix A for several matrices B has fewer rows than the product.
        """
        if all(dim == 1 for dim in shape):
            return SCALAR
        is_repeated = any(dim != 1 for dim in self.right[:-2]) and all(dim == 1 for dim in self.left[:-2])
        if len(self.left) < 2 or is_repeated:
            return None
        is_plain = len(self.left) == 2 and shape == self.left[:1]
        return ROW if is_plain or shape == (*self.left[:-1], 1) else None

    def by_column(self, shape: Shape) -> str | None:
        """Return how numbers for B are read: one for all, or one for each column."""
        if all(dim == 1 for dim in shape):
            return SCALAR
        is_whole = len(shape) == len(self.right) and all(dim == 1 for dim in (*shape[:-1], *self.right[:-2]))
        return COLUMN if shape[-1] == self.right[-1] and (len(shape) == 1 or is_whole) else None

    def by_plain_column(self, shape: Shape) -> str | None:
        """Return how numbers are read of which there is one, or a vector of one for each column."""
        return self.by_column(shape) if len(shape) == 1 else self.by_one(shape)

    def by_one(self, shape: Shape) -> str | None:
        """Return how one number is read."""
        return SCALAR if all(dim == 1 for dim in shape) else None

    def by_element(self, shape: Shape) -> str | None:
        """Return how numbers are read that broadcast to the product, a matrix."""
        if len(shape) > 2 or all(dim == 1 for dim in shape):
            return SCALAR if len(shape) <= 2 else None
        if shape == self.output:
            return WHOLE
        if shape[-1] == self.output[-1] and all(dim == 1 for dim in shape[:-1]):
            return COLUMN
        return ROW if shape == (*self.output[:-1], 1) else None


def _sides_of(node: Node, right_index: int, *, is_left_transposed: bool, is_transposed: bool) -> _Sides | str:
    """Return the shapes of a product, or why it cannot be compiled."""
    left, right = shape_of(node.inputs[0]), shape_of(node.inputs[right_index])
    left = left[::-1] if is_left_transposed else left
    if not left or not right:
        return "one side is a scalar"
    matrix = (*right, 1) if len(right) == 1 else right
    matrix = (*matrix[:-2], matrix[-1], matrix[-2]) if is_transposed else matrix
    is_open = isinstance(left[-1], Expr) and given(node.inputs[right_index]).constant is not None
    if left[-1] != matrix[-2] and not is_open:
        return f"the inner dimensions {left[-1]} and {matrix[-2]} {open_or_wrong(left[-1:], matrix[-2:-1])} equal"
    if any(dim != 1 for dim in right[:-2]) and left[:-2] != right[:-2] and not all(dim == 1 for dim in left[:-2]):
        return "the matrices of a batch are broadcast"
    return _Sides(left, matrix, shape_of(node.outputs[0]))


_Read = tuple[int, "DataType | None", Callable[[_Sides, Shape], "str | None"]]
"""An input that is read in the store, the type that it needs, and how its shape is read."""


def _spec(
    node: Node,
    right: int,
    zeros: tuple[int, int],
    *reads: _Read,
    is_left_transposed: bool = False,
    is_transposed: bool = False,
    alpha: float = 1.0,
) -> IntegerProductSpec | str:
    """Return a product's specification, or why it cannot be compiled; `zeros` are the inputs of zero points, -1 for none."""
    left, weights = given(node.inputs[0]), given(node.inputs[right])
    if weights.dtype not in _BYTES or (zeros[0] >= 0 and left.dtype not in _BYTES):
        return f"products of {left.dtype} and {weights.dtype}"
    sides = _sides_of(node, right, is_left_transposed=is_left_transposed, is_transposed=is_transposed)
    if isinstance(sides, str):
        return sides
    points: list[_Read] = [(zeros[1], weights.dtype, _Sides.by_column)]
    if zeros[0] >= 0:
        points.append((zeros[0], left.dtype, _Sides.by_row))
    ways = []
    for index, dtype, way_in in (*points, *reads):
        value = node.input(index)
        if value is None:
            continue
        way = way_in(sides, shape_of(value))
        if way is None or value.dtype is not dtype:
            return f"input {index} of type {value.dtype} and shape {value.shape} beside sides of {sides.left} and {sides.right}"
        ways.append((index, way))
    is_vector = len(shape_of(weights)) == 1
    return IntegerProductSpec(right, *zeros, tuple(ways), is_vector, is_left_transposed, is_transposed, alpha)


def claim_integer(node: Node) -> IntegerProductSpec | str:
    """Return what a MatMulInteger multiplies, or why it cannot be compiled."""
    return _spec(node, 1, (2, 3))


_A_SCALE, _A_ZERO, _B, _B_SCALE, _B_ZERO = range(1, 6)
_FLOAT = DataType.FLOAT


def claim_quantized(node: Node) -> IntegerProductSpec | str:
    """Return what a QLinearMatMul multiplies, or why it cannot be compiled."""
    made = node.outputs[0].dtype
    if made not in _BYTES:
        return f"results of type {made}"
    by_a, by_b = (_A_SCALE, _FLOAT, _Sides.by_row), (_B_SCALE, _FLOAT, _Sides.by_column)
    return _spec(node, _B, (_A_ZERO, _B_ZERO), by_a, by_b, (6, _FLOAT, _Sides.by_one), (7, made, _Sides.by_one))


_C, _Y_SCALE, _Y_ZERO = range(6, 9)


def claim_gemm(node: Node) -> IntegerProductSpec | str:
    """Return what a QGemm multiplies, or why it cannot be compiled."""
    view, made = Gemm.of(node), node.outputs[0].dtype
    if len(shape_of(node.inputs[0])) != 2 or len(shape_of(node.inputs[_B])) != 2:
        return "sides that are no matrices"
    if made not in (_BYTES if node.input(_Y_SCALE) is not None else (_FLOAT,)):
        return f"results of type {made}"
    scales = ((_A_SCALE, _FLOAT, _Sides.by_one), (_B_SCALE, _FLOAT, _Sides.by_plain_column), (_Y_SCALE, _FLOAT, _Sides.by_one))
    others = ((_C, DataType.INT32, _Sides.by_element), (_Y_ZERO, made, _Sides.by_one))
    sides = {"is_left_transposed": view.transposes_a, "is_transposed": view.transposes_b}
    return _spec(node, _B, (_A_ZERO, _B_ZERO), *scales, *others, **sides, alpha=view.alpha)


def claim_to_float(node: Node) -> IntegerProductSpec | str:
    """Return what a MatMulIntegerToFloat multiplies, or why it cannot be compiled."""
    by_columns = ((index, _FLOAT, _Sides.by_plain_column) for index in (3, 6))
    return _spec(node, 1, (4, 5), (2, _FLOAT, _Sides.by_one), *by_columns)


def claim_dynamic(node: Node) -> IntegerProductSpec | str:
    """Return what a DynamicQuantizeMatMul multiplies, or why it cannot be compiled."""
    if given(node.inputs[0]).dtype is not _FLOAT:
        return f"a left side of type {given(node.inputs[0]).dtype}"
    return _spec(node, 1, (-1, 3), *((index, _FLOAT, _Sides.by_plain_column) for index in (2, 4)))


def joins_bytes(group: Group, spec: IntegerProductSpec, member: Member, value: Value) -> bool:
    """Return whether a node can be fused into the epilogue of a product of integers."""
    kind = element_type(member.node.output.dtype)
    if kind is None or kind == BOOL or kind.bits > _WIDEST or not joins_elementwise(group, spec, member, value):
        return False
    if starts_table(member, value):
        return False
    others = others_of(member, value)
    return all(way_of(value.shape, other, is_vector=spec.is_vector) is not None for other in others)


_WIDEST = 32


@lowers("MatMulInteger", claim=claim_integer, joins=joins_bytes, inputs=2)
def lower_integer(low: Lowering, group: Group, spec: IntegerProductSpec) -> None:
    """Store the sums, or what the tail makes of them."""
    _multiply(low, group, spec, Head())


@lowers("QLinearMatMul", claim=claim_quantized, joins=joins_bytes, inputs=8)
def lower_quantized(low: Lowering, group: Group, spec: IntegerProductSpec) -> None:
    """Multiply sums by a_scale * b_scale / y_scale, round, and add the zero point. Source: ONNX QLinearMatMul-21."""
    head = _Factors(low, group.node, spec)
    factor = head.factor([_A_SCALE, _B_SCALE, 6], [operator.mul, operator.truediv])
    _multiply(low, group, spec, head.requantized(argument(0, I32).to(F32) * factor, 7))


@lowers("QGemm", claim=claim_gemm, joins=joins_bytes, domain=_MICROSOFT, inputs=6)
def lower_gemm(low: Lowering, group: Group, spec: IntegerProductSpec) -> None:
    """Add C to the sums and scale them to floats, or to the scale of Y. Source: com.microsoft QGemm."""
    head, node = _Factors(low, group.node, spec), group.node
    total = argument(0, I32) if node.input(_C) is None else argument(0, I32) + head.operand(_C)
    scales, steps = [_A_SCALE, _B_SCALE], [operator.mul]
    if node.input(_Y_SCALE) is not None:
        scales, steps = [*scales, _Y_SCALE], [*steps, operator.truediv]
    scaled = total.to(F32) * head.factor(scales, steps, spec.alpha)
    _multiply(low, group, spec, head.made(scaled) if node.input(_Y_SCALE) is None else head.requantized(scaled, _Y_ZERO))


@lowers("MatMulIntegerToFloat", claim=claim_to_float, joins=joins_bytes, domain=_MICROSOFT, inputs=4)
def lower_to_float(low: Lowering, group: Group, spec: IntegerProductSpec) -> None:
    """Multiply sums by a_scale * b_scale, and add the bias. Source: com.microsoft MatMulIntegerToFloat."""
    head = _Factors(low, group.node, spec)
    scaled = argument(0, I32).to(F32) * head.factor([2, 3], [operator.mul])
    _multiply(low, group, spec, head.made(scaled if group.node.input(6) is None else scaled + head.operand(6)))


@lowers("DynamicQuantizeMatMul", claim=claim_dynamic, joins=joins_bytes, domain=_MICROSOFT, inputs=3)
def lower_dynamic(low: Lowering, group: Group, spec: IntegerProductSpec) -> None:
    """Quantize A by its own range, then as MatMulIntegerToFloat. Source: com.microsoft DynamicQuantizeMatMul."""
    node, source = group.node, low.of(group.node.inputs[0])
    numbers = low.temporary(DataType.UINT8, source.shape)
    scale, zero = low.temporary(DataType.FLOAT, (1,)), low.temporary(DataType.UINT8, (1,))
    quantize_dynamically(low, node, source, (numbers, scale, zero))
    head = _Factors(low, node, spec)
    scaled = argument(0, I32).to(F32) * (head.read(scale, SCALAR, F32) * head.operand(2))
    left = LeftSide(numbers, ZeroPoint(zero, SCALAR))
    _multiply(low, group, spec, head.made(scaled if node.input(4) is None else scaled + head.operand(4)), left)


def _multiply(low: Lowering, group: Group, spec: IntegerProductSpec, head: Head, left: LeftSide | None = None) -> None:
    node, ways = group.node, dict(spec.ways)
    weights, zero = given(node.inputs[spec.right]), node.input(spec.right_zero)
    right = pack_right(low, node, weights, zero, ways.get(spec.right_zero), is_transposed=spec.is_transposed)
    multiply_sides(low, group, left or _left(low, node, spec), right, head)


def _left(low: Lowering, node: Node, spec: IntegerProductSpec) -> LeftSide:
    zero, source = node.input(spec.left_zero), low.of(node.inputs[0])
    if spec.is_left_transposed:
        source = _transposed(low, node, source)
    numbers = constant_of(zero)
    if zero is None or (numbers is not None and not numbers.any()):
        return LeftSide(source, None)
    return LeftSide(source, ZeroPoint(low.of(zero), dict(spec.ways)[spec.left_zero]))


def _transposed(low: Lowering, node: Node, source: Buffer) -> Buffer:
    """Copy a matrix (K, M) to (M, K)."""
    K, M = source.shape
    result = low.temporary(source.dtype, (M, K))
    copy_region(low, "Transpose", source, result, [StridedDim(M, 1, K), StridedDim(K, M, 1)], node)
    return result


class _Factors:
    """The operands of a head as they are asked for."""

    def __init__(self, low: Lowering, node: Node, spec: IntegerProductSpec) -> None:
        self._low, self._node, self._ways = low, node, dict(spec.ways)
        self._operands: list[tuple[Buffer, str]] = []

    def read(self, buffer: Buffer, way: str, kind: Type) -> ElementExpr:
        """Return an element of a buffer."""
        self._operands.append((buffer, way))
        return placeholder(len(self._operands) - 1, kind)

    def operand(self, index: int) -> ElementExpr:
        """Return an element of an input: data of the call where it is one constant."""
        value = given(self._node.inputs[index])
        kind, number = element_type(value.dtype) or F32, constant_of(value)
        if number is not None and number.size == 1:
            return scalar(number.reshape(()).item(), kind)
        return self.read(self._low.of(value), self._ways[index], kind)

    def factor(
        self, indices: list[int], steps: list[Callable[[ElementExpr, ElementExpr], ElementExpr]], first: float = 1.0
    ) -> ElementExpr:
        """Return inputs combined from left to right by `steps`, `first` times the first one: computed now if all are constant."""
        numbers = [constant_of(self._node.inputs[index]) for index in indices]
        if all(number is not None and number.size == 1 for number in numbers[:1] + numbers[2:]) and numbers[1] is not None:
            arrays = [number.astype(np.float32).reshape(-1) for number in numbers if number is not None]
            made = self._low.packed(_combined, tuple(arrays), tuple(step.__name__ for step in steps), first, of=None)
            return self.read(made, SCALAR if made.shape == (1,) else COLUMN, F32)
        scales = [self.operand(index) for index in indices]
        scales[0] = scales[0] if first == 1.0 else scalar(first, F32) * scales[0]
        for step, scale in zip(steps, scales[1:], strict=True):
            scales[0] = step(scales[0], scale)
        return scales[0]

    def made(self, expr: ElementExpr) -> Head:
        """Return the head of an expression."""
        return Head(expr, tuple(self._operands))

    def requantized(self, scaled: ElementExpr, zero: int) -> Head:
        """Return a head that rounds to nearest, ties to even, adds the zero point and saturates; NaN becomes the least number."""
        kind, value = element_type(self._node.outputs[0].dtype) or U8, self._node.input(zero)
        if value is None:
            return self.made(round_saturated(scaled, constant(0, I32), kind))
        number = constant_of(value)
        point = self.operand(zero).to(I32) if number is None else scalar(number.reshape(()).item(), I32)
        return self.made(round_saturated(scaled, point, kind))


def _combined(arrays: tuple[Array, ...], steps: tuple[str, ...], first: float) -> Array:
    with np.errstate(all="ignore"):
        made = arrays[0] if first == 1.0 else np.float32(first) * arrays[0]
        for step, scale in zip(steps, arrays[1:], strict=True):
            made = made * scale if step == "mul" else made / scale
    return np.ascontiguousarray(made, np.float32)
