"""MatMul and Gemm with a constant right side: packed once, with the element-wise nodes that follow in the store."""

from __future__ import annotations

from sardonyx.codegen.expr import Expr, argument, substitute
from sardonyx.codegen.expr_llvm import write_expressions
from sardonyx.codegen.gemm import PARAMS_COUNT, Epilogue, GemmParams, pack_columns, tiling, write_gemm
from sardonyx.codegen.module import Kernel
from sardonyx.codegen.types import F32
from sardonyx.codegen.values import Span
from sardonyx.codegen.values import Value as Register
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

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
    if right.constant is None or len(right.constant.shape) != 2:
        return "the right side is no constant matrix"
    if len(left.shape) < 2:
        return "the left side is a vector"
    return _check_gemm(node) if node.op_type == "Gemm" else None


def _check_gemm(node: Node) -> str | None:
    if node.get("transA", 0) or node.get("alpha", 1.0) != 1.0 or node.get("beta", 1.0) != 1.0:
        return "transA, alpha or beta is set"
    bias = node.input(2)
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
    if node.output.dtype is not DataType.FLOAT or not joins_elementwise(group, node, value):
        return False
    others = (other for other in node.inputs if other is not None and other is not value)
    return all((other.constant is not None and other.constant.size == 1) or access_of(value.shape, other) for other in others)


@lowers("MatMul", "Gemm", check=_check, joins=joins_product)
def lower(low: Lowering, group: Group) -> None:
    """Pack the right side and multiply."""
    node = group.anchor
    left, right = low.of(node.inputs[0]), node.inputs[1]
    if right is None or right.constant is None:
        raise ValueError("the check lets only constant right sides through")
    matrix = right.constant.numpy()
    matrix = matrix.T if node.op_type == "Gemm" and node.get("transB", 0) else matrix
    expr, operands = low.epilogue(group)
    bias = node.input(2) if node.op_type == "Gemm" else None
    lower_product(low, group, left, matrix, expr, operands, bias)


def lower_product(low: Lowering, group: Group, left: Buffer, matrix: Array, expr: Expr, operands: list[Value],
                  bias: Value | None) -> None:  # fmt: skip
    """Add the step that computes `expr` of left (…, M, K) times matrix (K, N) plus bias."""
    target = low.target
    reads = list(operands)
    if bias is not None:
        reads.append(bias)
        expr = substitute(expr, {0: argument(0, F32) + argument(len(reads), F32)})
    result = low.result(group.result)
    ways = "".join(access_of(result.shape, value) or "?" for value in reads)
    symbol = low.symbol(f"gemm_f32_{tiling(target).name}", [expr], ways)
    low.kernel(symbol, lambda module, name: write_gemm(module, name, epilogue_of(expr, ways)))
    packed = low.constant(pack_columns(matrix, tiling(target).panel))
    K, N = matrix.shape
    rows = product(left.shape[:-1])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = GemmParams.blocked(target, sizes(rows), N, K, threads=low.threads)
        return [*params.words(), N], params.tasks()

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

