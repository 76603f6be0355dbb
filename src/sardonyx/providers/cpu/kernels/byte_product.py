"""Products of matrices of 8 bits as steps: both sides brought to what the instruction takes, and the store as one expression.

A read in place, or copied to rows with sums of their numbers      where signs differ, rows are odd, or B has zero points
B packed when the session is made, or in the run
sums -> the operator's own definition -> the element-wise nodes that follow
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.dots import has_pairs, native_left
from sardonyx.codegen.emit.expr import ElementExpr, argument, substitute
from sardonyx.codegen.emit.matrix_tiles import has_byte_tiles
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I8, U8, Type
from sardonyx.codegen.kernels.byte_panels import HALF_RANGE, bytes_tiling, group_unit, pack_bytes, write_pack_bytes
from sardonyx.codegen.kernels.pack import PackParams
from sardonyx.codegen.kernels.quantized.byte_gemm import (
    COLUMN,
    ROW,
    SCALAR,
    WHOLE,
    ByteGemmParams,
    ByteStore,
    Zero,
    write_byte_gemm,
)
from sardonyx.codegen.kernels.quantized.pairs import cut_lanes
from sardonyx.codegen.kernels.quantized.prepared_rows import PrepareParams, prepared_bytes, write_prepare_rows
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape, Tensor, Value
from sardonyx.ir.shape import product
from sardonyx.ops.schema import place_of
from sardonyx.providers.cpu.expressions import element_type, expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of
from sardonyx.providers.cpu.precision import BYTES
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["Head", "LeftSide", "RightSide", "ZeroPoint", "multiply_sides", "pack_right", "placeholder", "way_of"]


def way_of(output: Shape | None, operand: Value, *, is_vector: bool = False) -> str | None:
    """Return how a store reads `operand`, which broadcasts to a product of shape `output`, or None where it cannot.

    Args:
        output: the shape of the product.
        operand: what is read.
        is_vector: whether B is a vector, whose product has no columns.
    """
    shape, kind = operand.shape, element_type(operand.dtype)
    if not output or shape is None or kind is None or kind.bits not in _STORED:
        return None
    if all(dim == 1 for dim in shape):
        return SCALAR
    if shape == output:
        return WHOLE
    if is_vector:
        return None
    if shape[-1] == output[-1] and all(dim == 1 for dim in shape[:-1]):
        return COLUMN
    return ROW if len(shape) > 1 and shape == (*output[:-1], 1) else None


_STORED = (8, 16, 32)


@dataclasses.dataclass(frozen=True, slots=True)
class ZeroPoint:
    """Zero points of one side."""

    buffer: Buffer
    """Where they lie."""
    way: str
    """How they are read."""


@dataclasses.dataclass(frozen=True, slots=True)
class LeftSide:
    """A: (…, M, K), or a vector (K,)."""

    buffer: Buffer
    """Its numbers."""
    zero: ZeroPoint | None
    """What is taken from them; None for 0."""

    @property
    def kind(self) -> Type:
        """The type of its numbers."""
        return U8 if self.buffer.dtype is DataType.UINT8 else I8


@dataclasses.dataclass(frozen=True, slots=True)
class RightSide:
    """B in panels, one matrix or a batch of them."""

    packed: Buffer
    """Its panels."""
    kind: Type
    """The type of its numbers before they were packed; I8 for unsigned ones all of whose zero points are 128."""
    K: Dim
    """Its rows."""
    N: Dim
    """Its columns."""
    zero: ZeroPoint | None
    """What is taken from its numbers; None for 0."""
    batch: Shape = ()
    """How many matrices there are, by dimension; () is one."""
    is_vector: bool = False
    """Whether it is a vector, a matrix of one column."""


@dataclasses.dataclass(frozen=True, slots=True)
class Head:
    """What an operator makes of its sums, before the element-wise nodes that follow."""

    expr: ElementExpr | None = None
    """Of argument 0, a sum in int32, and of `placeholder`s; None for the sum itself."""
    operands: tuple[tuple[Buffer, str], ...] = ()
    """For each placeholder what it reads, and how."""


def placeholder(index: int, kind: Type) -> ElementExpr:
    """Return the argument that stands for operand `index` of a head, until those of the tail are known."""
    return argument(-1 - index, kind)


@dataclasses.dataclass(frozen=True, slots=True)
class ByteProductKernel:
    """A product of 8-bit integers."""

    store: ByteStore
    """What is multiplied, and stored."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        store, zeros = self.store, (self.store.left_zero, self.store.right_zero)
        sides = "".join(_name(kind) for kind in (store.left, store.right)) + ("p" if store.is_prepared else "")
        points = "".join("n" if zero is None else f"{_name(zero.kind)}{zero.way}" for zero in zeros)
        kinds = "".join(_name(kind) for kind in store.kinds)
        name = f"gemm_{sides}_{points}_{bytes_tiling(target).name}"
        return expression_symbol(target, name, [store.expr], store.ways, kinds)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_byte_gemm(module, symbol, self.store)


@dataclasses.dataclass(frozen=True, slots=True)
class PrepareRowsKernel:
    """Rows in the sign that the instruction takes, with the sums of their numbers."""

    kind: Type
    """The type of the numbers."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"prepare_rows_{_name(self.kind)}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_prepare_rows(module, symbol, self.kind)


@dataclasses.dataclass(frozen=True, slots=True)
class PackBytesKernel:
    """A copy to panels of bytes."""

    kind: Type
    """The type of the numbers."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"pack_{_name(self.kind)}_{bytes_tiling(target).panel}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_pack_bytes(module, symbol, bytes_tiling(module.target).panel, self.kind)


def _name(kind: Type) -> str:
    return f"{kind.kind.value[0]}{kind.bits}"


def pack_right(
    low: Lowering, node: Node, value: Value, zero: Value | None, zero_way: str | None, *, is_transposed: bool = False
) -> RightSide:
    """Return the right side of a product, packed now where it is a constant, and by a step where it is computed.

    Args:
        low: the partition.
        node: the product.
        value: B (…, K, N) or (K,); (N, K) where it is transposed.
        zero: its zero points, which are none where they are left out.
        zero_way: how they are read.
        is_transposed: whether `value` is (N, K).
    """
    weights, width, unit = value.constant, bytes_tiling(low.target).panel, group_unit(low.target)
    shape = value.shape if value.shape is not None else ()
    is_vector = len(shape) == 1
    shape = (*shape, 1) if is_vector else shape
    K, N = reversed(shape[-2:]) if is_transposed else shape[-2:]
    kind = U8 if value.dtype is DataType.UINT8 else I8
    point = None if zero is None or zero_way is None else ZeroPoint(low.of(zero), zero_way)
    numbers = constant_of(zero)
    if numbers is not None and (numbers == (HALF_RANGE if kind == U8 else 0)).all():
        kind, point = I8, None
    batch = () if all(dim == 1 for dim in shape[:-2]) else shape[:-2]
    if weights is not None and not batch:
        packed = low.packed(_packed, weights, width, unit, cut_lanes(low.target), is_transposed, of=value)
        return RightSide(packed, kind, K, N, point, is_vector=is_vector)
    source = low.of(value)
    words = (-(-K // (4 * unit)) * unit + 1) * width
    packed = low.temporary(DataType.INT32, (product(batch), -(-N // width), words))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        k, n = sizes(K), sizes(N)
        params = PackParams(k, n, *((1, k) if is_transposed else (n, 1)), k * n)
        return params.words(), params.tasks(width, sizes.product(batch))

    stored = U8 if value.dtype is DataType.UINT8 else I8
    low.move("Pack", low.kernel(PackBytesKernel(stored)), [source, packed], plan, node)
    return RightSide(packed, kind, K, N, point, batch, is_vector)


def _packed(weights: Tensor, width: int, unit: int, cut: int, is_transposed: bool) -> Array:
    matrix = weights.numpy()
    matrix = matrix.reshape(-1, 1) if matrix.ndim == 1 else matrix.reshape(matrix.shape[-2:])
    return pack_bytes(matrix, width, unit, cut=cut, is_transposed=is_transposed)


def multiply_sides(low: Lowering, group: Group, left: LeftSide, right: RightSide, head: Head) -> None:
    """Add the steps that multiply, with the tail of the group.

    With a batch on the right, the left side is one matrix for each, or one for all of them.
    """
    target, shape = low.target, left.buffer.shape
    needs_sums = right.zero is not None or right.kind == U8
    is_native = (left.kind == native_left(target) and not has_pairs(target)) or has_byte_tiles(target)
    in_place = not needs_sums and is_native and shape[-1] % (4 * group_unit(target)) == 0
    rows, is_shared = product(shape[-2:-1] if right.batch else shape[:-1]), all(dim == 1 for dim in shape[:-2])
    source = left.buffer if in_place else _prepared(low, group.node, left, product(shape[:-1]))
    expr, values = low.epilogue(group, head.expr)
    result = low.result(group.result)
    reads = [(low.of(value), way_of(result.shape, value, is_vector=right.is_vector) or "?") for value in values]
    places = {-1 - index: argument(len(reads) + 1 + index, _kind_of(buffer)) for index, (buffer, _) in enumerate(head.operands)}
    reads += head.operands
    store = ByteStore(
        left.kind,
        right.kind,
        not in_place,
        None if left.zero is None else Zero(left.kind, left.zero.way),
        None if right.zero is None else Zero(_kind_of(right.zero.buffer), right.zero.way),
        substitute(expr, places),
        tuple(_kind_of(buffer) for buffer, _ in reads),
        "".join(way for _, way in reads),
    )

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        m, n, k = sizes(rows), sizes(right.N), sizes(right.K)
        if sizes(shape[-1]) != k:
            raise InvalidArgument(f"{place_of(group.node)}: A has rows of {sizes(shape[-1])} elements, B columns of {k}")
        row_bytes = k if in_place else prepared_bytes(target, k)
        stride = 0 if is_shared or not right.batch else m * row_bytes
        params = ByteGemmParams.blocked(target, m, n, k, row_bytes=row_bytes, stride_a=stride, threads=low.threads)
        return params.words(), params.tasks(sizes.product(right.batch))

    zeros = [zero.buffer for zero in (left.zero, right.zero) if zero is not None]
    buffers = [source, right.packed, result, *zeros, *(buffer for buffer, _ in reads)]
    low.step(group, low.kernel(ByteProductKernel(store)), buffers, writes=[2], plan=plan, precision=BYTES)


def _prepared(low: Lowering, node: Node, left: LeftSide, rows: Dim) -> Buffer:
    """Return the rows of A as prepared by a step."""
    target, K = low.target, left.buffer.shape[-1]
    group = 4 * group_unit(target)
    head = prepared_bytes(target, 0)
    made = low.temporary(DataType.UINT8, (rows, head + -(-K // group) * (prepared_bytes(target, group) - head)))

    def plan(sizes: Sizes) -> tuple[Sequence[int], int]:
        return PrepareParams(sizes(K), prepared_bytes(target, sizes(K))).words(), sizes(rows)

    low.move("Prepare", low.kernel(PrepareRowsKernel(left.kind)), [left.buffer, made], plan, node)
    return made


def _kind_of(buffer: Buffer) -> Type:
    return element_type(buffer.dtype) or F32
