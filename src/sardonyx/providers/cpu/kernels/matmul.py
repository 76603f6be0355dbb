"""MatMul and Gemm, with the element-wise nodes that follow in the store.

A constant right side is packed once, when the session is made. Any other is packed in the run, by plain copies, and multiplied
matrix by matrix.
"""

from __future__ import annotations

import numpy as np

from sardonyx.codegen.emit.expr import Expr, argument, substitute
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.values import Span
from sardonyx.codegen.emit.values import Value as Register
from sardonyx.codegen.kernels.gemm import PARAMS_COUNT, Epilogue, GemmParams, pack_columns, pack_rows, tiling, write_gemm
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node, Shape, Tensor, Value
from sardonyx.ir.shape import product
from sardonyx.ops.schema import place_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import Region, copy_region

_FIRST_OPERAND = 3
"""Buffers of the epilogue come after A, B and C."""

COLUMN, WHOLE = "c", "w"
"""How an operand of the epilogue is read: one element for each column of C, or one for each element."""


def _check(node: Node) -> str | None:
    left, right, result = node.inputs[0], node.inputs[1], node.outputs[0]
    if left is None or right is None or left.shape is None or result.shape is None:
        return "an input is left out"
    if {left.dtype, right.dtype, result.dtype} != {DataType.FLOAT}:
        return f"products of {left.dtype} and {right.dtype}"
    if not left.shape or not right.shape:
        return "the shape of the right side is not known"
    is_checked_in_run = node.op_type == "Gemm" and right.constant is not None
    if not is_checked_in_run and left.shape[-1] != (right.shape[-1] if node.get("transB", 0) else right.shape[-2:][0]):
        return "that the inner dimensions are equal depends on sizes"
    if node.op_type == "Gemm":
        return _check_gemm(node)
    if len(right.shape) > 2 and left.shape[:-2] != right.shape[:-2] and not _is_shared(left.shape):
        return "the matrices of a batch are broadcast"
    return None


def _is_shared(left: Shape) -> bool:
    """Whether the left side is one matrix, or a vector, for all matrices of the right side."""
    return all(dim == 1 for dim in left[:-2])


def _check_gemm(node: Node) -> str | None:
    bias = node.input(2)
    if node.get("transA", 0) or node.get("alpha", 1.0) != 1.0 or (bias is not None and node.get("beta", 1.0) != 1.0):
        return "transA, alpha or beta is set"
    if bias is not None and access_of(node.outputs[0].shape, bias) is None:
        return "C is neither a row nor a whole matrix"
    return None


def access_of(output: Shape | None, operand: Value) -> str | None:
    """How an epilogue reads `operand` beside a result of shape `output`, or None where it cannot."""
    shape = operand.shape
    if output is None or shape is None or operand.dtype is not DataType.FLOAT:
        return None
    if shape == output:
        return WHOLE
    return COLUMN if shape and shape[-1] == output[-1] and all(dim == 1 for dim in shape[:-1]) else None


def joins_product(group: Group, node: Node, value: Value) -> bool:
    """Whether `node` can be computed in the store of a product: everything else that it reads goes along columns or elements."""
    if not joins_elementwise(group, node, value) or node.output.dtype is not DataType.FLOAT:
        return False
    right = group.anchor.inputs[1]
    rank = 0 if right is None or right.shape is None else len(right.shape)
    ways = {1: (WHOLE,), 2: (COLUMN, WHOLE)}.get(rank, (COLUMN,))
    others = (other for other in node.inputs if other is not None and other is not value)
    return all(_is_number(other) or access_of(value.shape, other) in ways for other in others)


def _is_number(value: Value) -> bool:
    return value.constant is not None and value.constant.size == 1


@lowers("MatMul", "Gemm", check=_check, joins=joins_product)
def lower(low: Lowering, group: Group) -> None:
    """Pack the right side and multiply."""
    node = group.anchor
    left, width = low.of(node.inputs[0]), tiling(low.target).panel
    is_turned = bool(node.get("transB", 0))
    weights = None if node.inputs[1] is None else node.inputs[1].constant
    if weights is not None and len(weights.shape) == 2:
        packed = low.packed(_packed, weights, width, is_turned)
        lower_product(low, group, left, packed, weights.shape[::-1] if is_turned else weights.shape)
        return
    right = low.of(node.inputs[1])
    if right.constant is not None and len(right.shape) <= 2:
        columns = right.constant.T if is_turned else right.constant
        matrix = columns if columns.ndim == 2 else columns[:, np.newaxis]
        packed = low.packed(pack_columns, matrix, width)
        lower_product(low, group, left, packed, matrix.shape)
        return
    if len(right.shape) == 1:
        right = Buffer(right.dtype, (*right.shape, 1), base=right)
    K, N = reversed(right.shape) if is_turned else right.shape[-2:]
    packed = low.temporary(right.dtype, (product(right.shape[:-2]), -(-N // width), K, width))
    _pack_in_run(low, right, packed, (K, N), is_turned)
    lower_product(low, group, left, packed, (K, N), right.shape[:-2])


def _packed(weights: Tensor, width: int, is_turned: bool) -> Array:
    rows, length = weights.shape
    return pack_rows(weights.rows, (rows, length), width, is_turned=is_turned)


def _pack_in_run(low: Lowering, right: Buffer, packed: Buffer, matrix: Shape, is_turned: bool) -> None:
    """Copy B (batch, K, N), or (N, K) where it is turned, to panels (batch, N / width, K, width).

    What is behind the last column stays as it is, unused.
    """
    K, N = matrix
    width = packed.shape[-1]
    to_row, to_column = (1, K) if is_turned else (N, 1)
    batch, whole, rest = product(right.shape[:-2]), N // width, N % width
    from_matrix = Region(batch, K * N, packed.shape[1] * K * width)
    panels = [Region(whole, width * to_column, K * width), Region(K, to_row, width), Region(width, to_column, 1)]
    if whole != 0:
        copy_region(low, "Pack", right, packed, [from_matrix, *panels])
    if rest != 0:
        source = Buffer(right.dtype, right.shape, right.constant, right, whole * width * to_column)
        place = Buffer(packed.dtype, packed.shape, base=packed, offset=whole * width * K)
        copy_region(low, "Pack", source, place, [from_matrix, Region(K, to_row, width), Region(rest, to_column, 1)])


def lower_product(low: Lowering, group: Group, left: Buffer, packed: Buffer, matrix: Shape, batch: Shape = ()) -> None:
    """Add the step that multiplies left (…, M, K) by a packed matrix (K, N), or by one for each of `batch`, with the tail.

    With a batch, left is one matrix for each, or one for all of them; a vector (K,) is a matrix of one row.
    """
    target = low.target
    expr, reads = low.epilogue(group)
    bias = group.anchor.input(2) if group.anchor.op_type == "Gemm" else None
    if bias is not None:
        reads.append(bias)
        expr = substitute(expr, {0: argument(0, F32) + argument(len(reads), F32)})
    result = low.result(group.result)
    ways = "".join(access_of(result.shape, value) or "?" for value in reads)
    symbol = low.symbol(f"gemm_f32_{tiling(target).name}", [expr], ways)
    low.kernel(symbol, lambda module, name: write_gemm(module, name, epilogue_of(expr, ways)))
    K, N = matrix
    rows, matrices = product(left.shape[-2:-1] if batch else left.shape[:-1]), product(batch)
    is_shared = _is_shared(left.shape)
    panels = -(-N // tiling(target).panel) * tiling(target).panel

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        m, n, k = sizes(rows), sizes(N), sizes(K)
        if sizes(left.shape[-1]) != k:
            raise InvalidArgument(f"{place_of(group.anchor)}: A has rows of {sizes(left.shape[-1])} elements, B columns of {k}")
        strides = {"stride_a": 0 if is_shared else m * k, "stride_b": k * sizes(panels), "stride_c": m * n}
        params = GemmParams.blocked(target, m, n, k, threads=low.threads, **strides)
        return [*params.words(), n], params.tasks(sizes(matrices))

    low.step(group, symbol, [left, packed, result, *map(low.of, reads)], writes=[2], plan=plan)


def epilogue_of(expr: Expr, ways: str) -> Epilogue | None:
    """What the product's kernel computes in its store; the parameter after its own is the operands' row length."""
    if expr.primitive == "argument":
        return None

    def write(b: Kernel, sums: Register, row: Register, column: Register, span: Span) -> Register:
        operands = [sums]
        for index, way in enumerate(ways):
            place = column if way == COLUMN else row * b.param(PARAMS_COUNT) + column
            operands.append(b.buffer(_FIRST_OPERAND + index, F32).load(place, span))
        return write_expressions(b, [expr], operands)[0]

    return write
