"""MatMul and Gemm, with the element-wise nodes that follow in the epilogue; of float32, float64 and integers of 32 and 64 bits.

A constant right side is packed once, when the session is made. Any other is packed in the run, by plain copies, and multiplied
matrix by matrix.

Where the session asks for less precision (`Precision.MEDIUM`), constants are packed in bfloat16: as pairs, for processors that
have matrix tiles or fast dot products of those, the left side rounded in the run; elsewhere large ones are widened as they are
multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument, substitute
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.matrix_tiles import TILE, has_pair_tiles
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.kernels.gemm import WIDE, Epilogue, tiling, write_gemm
from sardonyx.codegen.kernels.gemm_params import PARAMS_COUNT, PART_TASKS, GemmParams, computed_chain_for
from sardonyx.codegen.kernels.narrow.pairs import pack_pairs, pack_parts
from sardonyx.codegen.kernels.narrow.tile_gemm import tile_gemm_params, write_tile_gemm
from sardonyx.codegen.kernels.pack import PackParams, pack_columns, pack_rows, write_pack
from sardonyx.codegen.kernels.panels import BlockPanels, NarrowPanels, NumberPanels, PairPanels, Panels, TilePanels
from sardonyx.codegen.kernels.tile_products import TILE_HEIGHT, tile_words
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.ir import Dim, Node, Shape, Tensor, Value
from sardonyx.ir.shape import product
from sardonyx.ops.schema import place_of
from sardonyx.ops.views.matmul import Gemm
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type, expression_symbol
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise, others_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.pairs import as_pair_rows, as_pairs, multiplies_pairs, multiplies_tiles, parts_of, tiles_precision
from sardonyx.providers.cpu.precision import BFLOAT16, FLOAT32, Precision, with_weights
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import StridedDim, copy_region, dense_strides

_CACHED_ELEMENTS = 1 << 18
"""Weights that stay in the second-level cache from run to run: decoding them would cost more than it spares."""

_PAIRS, _TILES = PairPanels(), TilePanels()
_TYPES = (DataType.FLOAT, DataType.DOUBLE, DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64)
"""The types of products."""
_FIRST_OPERAND = 3
"""Buffers of the epilogue come after A, B and C."""

COLUMN, ROW, WHOLE = "c", "r", "w"
"""How an operand of the epilogue is read: one element for each column of C, one for each row, or one for each element."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProductSpec:
    """A product of matrices."""

    is_transposed: bool
    """Whether the right side is (N, K), not (K, N)."""
    has_bias: bool
    """Whether input 2 is added."""
    reads: tuple[str, ...]
    """How the store can read tensors besides: COLUMN, ROW, WHOLE."""
    transposes_left: bool = False
    """Whether the left side is (K, M), not (M, K)."""
    factors: tuple[float, float] = (1.0, 1.0)
    """What the product and input 2 are multiplied by."""
    dtype: DataType = DataType.FLOAT
    """The type of all elements."""


def claim(node: Node) -> ProductSpec | str:
    """Return what a MatMul multiplies, or why it cannot be compiled."""
    left, right = shape_of(node.inputs[0]), shape_of(node.inputs[1])
    problem = _problem_of(node)
    if problem is not None:
        return problem
    if left[-1] != right[-2:][0]:
        return _inner_problem(left[-1], right[-2:][0])
    is_plain = len(right) < 3 or left[:-2] == right[:-2] or _is_shared(left)
    if not is_plain and not all(_is_broadcast(side[:-2], shape_of(node.output)) for side in (left, right)):
        return f"that batches {left[:-2]} and {right[:-2]} are broadcast to one another {open_or_wrong(left, right)}"
    return ProductSpec(is_transposed=False, has_bias=False, reads=_reads(len(right)), dtype=_dtype_of(node))


def claim_gemm(node: Node) -> ProductSpec | str:
    """Return what a Gemm multiplies, or why it cannot be compiled."""
    left, right, bias = shape_of(node.inputs[0]), shape_of(node.inputs[1]), node.input(2)
    problem = _problem_of(node)
    if problem is not None:
        return problem
    if len(left) != 2 or len(right) != 2:
        return f"sides of {len(left)} and {len(right)} dimensions, expected two"
    view = Gemm.of(node)
    inner = right[-1] if view.transposes_b else right[-2]
    length = left[0] if view.transposes_a else left[-1]
    if length != inner and given(node.inputs[1]).constant is None:
        return _inner_problem(length, inner)
    dtype = _dtype_of(node)
    if bias is not None and bias.dtype is not dtype:
        return f"C has elements of type {bias.dtype}"
    if bias is not None and access_of(node.outputs[0].shape, bias, dtype) is None:
        return f"C of shape {bias.shape} is neither a row, a column nor a whole matrix of {node.outputs[0].shape}"
    reads, factors = _reads(len(right)), (view.alpha, view.beta if bias is not None else 1.0)
    if factors != (1.0, 1.0) and not _is_float(dtype):
        return f"factors {factors} of integers"
    return ProductSpec(view.transposes_b, bias is not None, reads, view.transposes_a, factors, dtype)


def _is_float(dtype: DataType) -> bool:
    return dtype in (DataType.FLOAT, DataType.DOUBLE)


def _dtype_of(node: Node) -> DataType:
    """Return the type of the result, which `_problem_of` has found to be that of both sides."""
    return node.outputs[0].dtype or DataType.UNDEFINED


def _is_broadcast(batch: Shape, output: Shape) -> bool:
    """Return whether each dimension of a batch is that of the output, counted from the last, or 1."""
    wide = output[: len(output) - 2]
    if len(wide) < len(batch):
        return False
    return all(dim in (1, other) for dim, other in zip(reversed(batch), reversed(wide), strict=False))


def _problem_of(node: Node) -> str | None:
    left, right = given(node.inputs[0]), given(node.inputs[1])
    if left.dtype not in _TYPES or {left.dtype, right.dtype, node.outputs[0].dtype} != {left.dtype}:
        return f"products of {left.dtype} and {right.dtype}"
    scalar = next((side for side, value in (("left", left), ("right", right)) if not shape_of(value)), None)
    return None if scalar is None else f"the {scalar} side is a scalar"


def _inner_problem(left: Dim, right: Dim) -> str:
    if isinstance(left, int) and isinstance(right, int):
        return f"the inner dimensions {left} and {right} differ"
    return f"that the inner dimensions {left} and {right} are equal depends on sizes"


def _reads(rank: int) -> tuple[str, ...]:
    """Return how the store reads tensors besides, for a right side of so many dimensions."""
    return {1: (WHOLE,), 2: (COLUMN, ROW, WHOLE)}.get(rank, (COLUMN,))


def _is_shared(side: Shape) -> bool:
    """Return whether a side is one matrix, or a vector, for all matrices of the other side."""
    return all(dim == 1 for dim in side[:-2])


def access_of(output: Shape | None, operand: Value, dtype: DataType = DataType.FLOAT) -> str | None:
    """Return how an epilogue reads `operand` beside a result of `dtype` and shape `output`, or None where it cannot."""
    shape = operand.shape
    if output is None or shape is None or operand.dtype is not dtype:
        return None
    if shape == output:
        return WHOLE
    if shape and shape[-1] == output[-1] and all(dim == 1 for dim in shape[:-1]):
        return COLUMN
    return ROW if len(shape) > 1 and shape == (*output[:-1], 1) else None


def joins_product(group: Group, spec: ProductSpec, member: Member, value: Value) -> bool:
    """Return whether a node can be fused into the epilogue of a product.

    Everything else that it reads goes along columns or elements.
    """
    if not joins_elementwise(group, spec, member, value) or member.node.output.dtype is not spec.dtype:
        return False
    return all(access_of(value.shape, other, spec.dtype) in spec.reads for other in others_of(member, value))


@dataclasses.dataclass(frozen=True, slots=True)
class ProductKernel:
    """A product of matrices."""

    expr: ElementExpr
    """What is stored, of argument 0, the sum, and the elements of operands."""
    ways: str
    """For each operand how it is read."""
    panels: Panels = WIDE
    """How the right side is stored."""
    columns: int | None = None
    """How many columns it has, where panels are no wider."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        tiles = tiling(target, self.panels.computed, self.columns).name
        shape = f"tiles{TILE_HEIGHT}x{TILE_HEIGHT}" if self.panels.is_tiled else tiles
        name = "_".join(part for part in ("gemm_f32", self.panels.name, shape) if part)
        return expression_symbol(target, name, [self.expr], self.ways)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        epilogue = epilogue_of(self.expr, self.ways, kind=self.panels.computed)
        if self.panels.is_tiled:
            write_tile_gemm(module, symbol, epilogue)
        else:
            write_gemm(module, symbol, epilogue, self.panels, columns=self.columns)


@lowers("Gemm", claim=claim_gemm, joins=joins_product, inputs=2)
@lowers("MatMul", claim=claim, joins=joins_product, inputs=2)
def lower(low: Lowering, group: Group, spec: ProductSpec) -> None:
    """Pack the right side and multiply."""
    node, is_transposed = group.node, spec.is_transposed
    bias = node.input(2) if spec.has_bias else None
    panels = _panels_for(spec.dtype)
    left, width, weights = low.of(node.inputs[0]), tiling(low.target, panels.computed).panel, given(node.inputs[1]).constant
    left = _transposed(low, node, left) if spec.transposes_left else left
    if weights is not None and len(weights.shape) == 2 and spec.dtype is DataType.FLOAT:
        form, unit = _form_of(low, weights, is_transposed), TILE if has_pair_tiles(low.target) else 1
        pack = _packed_parts if form is DataType.UINT32 and multiplies_tiles(low) and parts_of(low) > 1 else _packed
        packed = low.packed(pack, weights, width, is_transposed, form, unit, of=node.inputs[1])
        matrix = weights.shape[::-1] if is_transposed else weights.shape
        multiply(low, group, left, RightSide(packed, *matrix, panels=_panels_of(low.target, packed)), bias, spec.factors)
        return
    right = low.of(node.inputs[1])
    if len(right.shape) > 2 and _is_shared(right.shape):
        weight = None if right.constant is None else right.constant.reshape(right.constant.shape[-2:])
        right = Buffer(right.dtype, right.shape[-2:], weight, base=right)
    elif len(right.shape) > 2 and left.shape[:-2] != right.shape[:-2] and not _is_shared(left.shape):
        batch = shape_of(node.output)[:-2]
        left, right = (_repeated(low, node, side, batch) for side in (left, right))
    if right.constant is not None and len(right.shape) <= 2:
        columns = right.constant.T if is_transposed else right.constant
        columns = columns if columns.ndim == 2 else columns[:, np.newaxis]
        packed = low.packed(pack_columns, columns, width, spec.dtype.numpy, of=node.inputs[1])
        K, N = columns.shape
        multiply(low, group, left, RightSide(packed, K, N, panels), bias, spec.factors)
        return
    if len(right.shape) == 1:
        right = Buffer(right.dtype, (*right.shape, 1), base=right)
    rows, across = reversed(right.shape) if is_transposed else right.shape[-2:]
    narrow = across if isinstance(across, int) and width > across else None
    width = tiling(low.target, panels.computed, narrow).panel
    packed = low.temporary(right.dtype, (product(right.shape[:-2]), -(-across // width), rows, width))
    if not is_transposed and len(right.shape) > 2:
        right, is_transposed = _before_transpose(low, node.inputs[1], right)
    _pack_in_run(low, node, right, packed, (rows, across), PackKernel(width, panels.computed), is_transposed=is_transposed)
    multiply(low, group, left, RightSide(packed, rows, across, panels, right.shape[:-2], narrow), bias, spec.factors)


def _before_transpose(low: Lowering, value: Value | None, right: Buffer) -> tuple[Buffer, bool]:
    """Return what a Transpose made the matrices `right` (batch, K, N) of, (batch, N, K), and that it is that; else `right`."""
    if value is None or right is not low.of(value):
        return right, False
    with without_fork():
        from sardonyx.providers.cpu.views import view_of  # which most products do not need
    view = view_of(low, value)
    is_turned = view.strides == (*dense_strides(right.shape)[:-2], 1, right.shape[-2])
    return (view.buffer, True) if is_turned else (right, False)


def _panels_for(dtype: DataType) -> Panels:
    """Return how the right side of a product of this type is stored."""
    kind = element_type(dtype)
    return WIDE if kind is None or kind == F32 else NumberPanels(kind)


def _transposed(low: Lowering, node: Node, matrix: Buffer) -> Buffer:
    """Return a copy (M, K) of a matrix (K, M)."""
    K, M = matrix.shape
    turned = low.temporary(matrix.dtype, (M, K))
    copy_region(low, "Transpose", matrix, turned, [StridedDim(M, 1, K), StridedDim(K, M, 1)], node)
    return turned


def _repeated(low: Lowering, node: Node, side: Buffer, batch: Shape) -> Buffer:
    """Return a copy of matrices, one for each of `batch`; themselves where there are as many."""
    own = (*(1,) * (len(batch) + 2 - len(side.shape)), *side.shape)
    if own[:-2] == batch:
        return Buffer(side.dtype, own, side.constant, base=side)
    repeated = low.temporary(side.dtype, (*batch, *own[-2:]))
    strides = zip(repeated.shape, own, dense_strides(own), dense_strides(repeated.shape), strict=True)
    region = [StridedDim(size, step if size == length else 0, stride) for size, length, step, stride in strides]
    copy_region(low, "Expand", side, repeated, region, node)
    return repeated


def _panels_of(target: Target, packed: Buffer) -> Panels:
    """Return how packed weights are stored, which a file of compiled partitions says by their type."""
    if packed.dtype is DataType.UINT32:
        return _TILES if has_pair_tiles(target) else _PAIRS
    stored = element_type(packed.dtype)
    return WIDE if stored is None or not stored.is_narrow else NarrowPanels(stored)


def _form_of(low: Lowering, weights: Tensor, is_transposed: bool) -> DataType | None:
    """Return the type that weights are rounded to, UINT32 for pairs of bfloat16; None where they stay as they are."""
    if weights.narrow is not None and weights.narrow.dtype is not DataType.BFLOAT16:
        return None
    if multiplies_tiles(low) or multiplies_pairs(low, weights.shape[1 if is_transposed else 0]):
        return DataType.UINT32
    if low.precision is not Precision.MEDIUM:
        return None
    return DataType.BFLOAT16 if weights.narrow is None and weights.size > _CACHED_ELEMENTS else None


def _packed(weights: Tensor, width: int, is_transposed: bool, form: DataType | None, unit: int) -> Array:
    """Return the panels of `weights`; of narrow ones, where they are the same numbers and too many for a cache near the core.

    `unit` is of how many words of pairs panels have a multiple.
    """
    if form is DataType.UINT32:
        return pack_pairs(weights.numpy().T if is_transposed else weights.numpy(), width, unit)
    stored = weights if weights.narrow is None or weights.size <= _CACHED_ELEMENTS else weights.narrow
    rows, length = weights.shape
    dtype = (stored.dtype if form is None else form).numpy
    return pack_rows(stored.rows, (rows, length), width, is_transposed=is_transposed, dtype=dtype)


def _packed_parts(weights: Tensor, width: int, is_transposed: bool, form: DataType, unit: int) -> Array:
    """Return the panels of `weights` in parts."""
    return pack_parts(weights.numpy().T if is_transposed else weights.numpy(), width, unit)


@dataclasses.dataclass(frozen=True, slots=True)
class PackKernel:
    """A copy to panels, with zeros behind the last column: what lies there is multiplied too, and denormal numbers take long."""

    width: int
    """Elements of one row of a panel."""
    element: Type = F32
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"pack_{'f32' if self.element == F32 else self.element.text}_{self.width}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_pack(module, symbol, self.width, self.element)


def _pack_in_run(
    low: Lowering, node: Node, right: Buffer, packed: Buffer, matrix: Shape, kernel: PackKernel, *, is_transposed: bool
) -> None:
    """Copy B (batch, K, N), or (N, K) where it is transposed, to panels (batch, N / width, K, width)."""
    (K, N), width = matrix, kernel.width

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        k, n = sizes(K), sizes(N)
        stride_k, stride_n = (1, k) if is_transposed else (n, 1)
        params = PackParams(K=k, N=n, stride_k=stride_k, stride_n=stride_n, stride_batch=k * n)
        return params.words(), params.parts(width, sizes.product(right.shape[:-2]))

    low.move("Pack", low.kernel(kernel), [right, packed], plan, node)


@dataclasses.dataclass(frozen=True, slots=True)
class RightSide:
    """A packed matrix, or a batch of them."""

    packed: Buffer
    """Its panels."""
    K: Dim
    """Its rows."""
    N: Dim
    """Its columns."""
    panels: Panels = WIDE
    """How they are stored."""
    batch: Shape = ()
    """How many matrices there are, by dimension; () is one."""
    columns: int | None = None
    """How many columns they have, where panels are no wider."""


def multiply(
    low: Lowering,
    group: Group,
    left: Buffer,
    right: RightSide,
    bias: Value | None,
    factors: tuple[float, float] = (1.0, 1.0),
    *,
    result: Buffer | None = None,
    unless: Callable[[Sizes], bool] | None = None,
) -> None:
    """Add the step that multiplies left (…, M, K) by a packed matrix, or by one for each of a batch, with the tail of the group.

    With a batch, left is one matrix for each, or one for all of them; a vector (K,) is a matrix of one row. `bias` is added first;
    `access_of` says how it may lie. `factors` are what the product and the bias are multiplied by. Another step writes `result`
    where `unless` holds.
    """
    target = low.target
    panels, shape, kind = right.panels, left.shape, right.panels.computed
    if panels.is_paired:
        left = (as_pair_rows if panels.is_tiled else as_pairs)(low, group.node, left)
    expr, reads = tail_of(low, group, bias, factors, kind)
    result = low.result(group.result) if result is None else result
    ways = ways_of(result, reads)
    symbol = low.kernel(ProductKernel(expr, ways, panels, right.columns))
    rows, matrices = product(shape[-2:-1] if right.batch else shape[:-1]), product(right.batch)
    is_shared, is_computed = _is_shared(shape), right.packed.root.constant is None
    width = tiling(target, kind, right.columns).panel
    columns = -(-right.N // width) * width

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        m, n, k = sizes(rows), sizes(right.N), sizes(right.K)
        if sizes(shape[-1]) != k:
            raise InvalidArgument(f"{place_of(group.node)}: A has rows of {sizes(shape[-1])} elements, B columns of {k}")
        k = parts_of(low) * tile_words(-(-k // 2)) if panels.is_tiled else k // 2 if panels.is_paired else k
        strides = {"stride_a": 0 if is_shared else m * k, "stride_b": k * sizes(columns), "stride_c": m * n}
        if panels.is_tiled:
            params = tile_gemm_params(target, m, n, k, threads=low.threads, **strides)
        else:
            chain = computed_chain_for(k) if is_computed else 0
            params = GemmParams.blocked(target, m, n, k, threads=low.threads, is_decoded=panels.is_decoded, chain=chain, **strides)
            params = params if panels.is_decoded else params.in_parts(sizes(matrices))
        return [*params.words(), n], params.tasks(sizes(matrices))

    buffers = [left, right.packed, result, *map(low.of, reads)]
    precision = tiles_precision(low) if panels.is_tiled else _precision_of(panels)
    low.step(group, symbol, buffers, writes=[2], plan=plan, unless=unless, precision=precision, together=PART_TASKS)


def _precision_of(panels: Panels) -> str:
    """Return what operands are multiplied in, as reports say it."""
    if panels.is_paired:
        return BFLOAT16
    if isinstance(panels, NumberPanels):
        return "float64" if panels.element.is_float else ""
    if isinstance(panels, NarrowPanels):
        return with_weights(FLOAT32, panels.element.name)
    return with_weights(FLOAT32, f"{panels.bits} bits") if isinstance(panels, BlockPanels) else FLOAT32


def tail_of(
    low: Lowering, group: Group, bias: Value | None, factors: tuple[float, float] = (1.0, 1.0), kind: Type = F32
) -> tuple[ElementExpr, list[Value]]:
    """Return what a product of `kind` stores, of argument 0, its sum, and the tensors that it reads besides.

    The sum and `bias` are multiplied by `factors` and added first.
    """
    expr, reads = low.epilogue(group)
    found = _times(argument(0, kind), factors[0])
    if bias is not None:
        found, reads = found + _times(argument(len(reads) + 1, kind), factors[1]), [*reads, bias]
    return substitute(expr, {0: found}), reads


def _times(element: ElementExpr, factor: float) -> ElementExpr:
    return element if factor == 1 else element * factor


def ways_of(result: Buffer, reads: Sequence[Value]) -> str:
    """Return how each of the tensors is read beside `result`."""
    return "".join(access_of(result.shape, value, result.dtype) or "?" for value in reads)


def epilogue_of(expr: ElementExpr, ways: str, row_length: int = PARAMS_COUNT, kind: Type = F32) -> Epilogue | None:
    """Return the epilogue of the kernel of a product of `kind`, a parameter of which is the row length of C and its operands."""
    if expr.primitive == "argument":
        return None

    def write(b: Kernel, sums: Register, row: Register, column: Register, span: Span) -> Register:
        operands = [sums]
        for index, way in enumerate(ways):
            buffer = b.buffer(_FIRST_OPERAND + index, kind)
            if way == ROW:
                operands.append(buffer.load(row).splat(span.lanes))
            else:
                operands.append(buffer.load(column if way == COLUMN else row * b.param(row_length) + column, span))
        return write_expressions(b, [expr], operands)[0]

    return write
