"""Facts about matrix products."""

from __future__ import annotations

import pytest
from support.infer_op import UNKNOWN_DIM, A, B, dtype_of, error_of, floats, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ops.fact import UNKNOWN, tensor


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((A, 3), (3, B), (A, B)),
        ((B, 1, A, 3), (4, 3, 5), (B, 4, A, 5)),
        ((3,), (3, B), (B,)),
        ((A, 3), (3,), (A,)),
        ((3,), (3,), ()),
        ((A, B, 64), (64, 10), (A, B, 10)),
    ],
)
def test_matmul_as_numpy(left: tuple[Dim, ...], right: tuple[Dim, ...], expected: tuple[Dim, ...]) -> None:
    """Batches are broadcast, and vectors lose their helper dimension."""
    assert infer_shape("MatMul", floats(*left), floats(*right)) == expected


def test_matmul_refuses_what_cannot_be() -> None:
    """Inner sizes must agree, and scalars have no product."""
    assert "the inner sizes of shapes [2, 3] and [4, 5] differ: 3 and 4" in error_of("MatMul", floats(2, 3), floats(4, 5))
    assert "a scalar has no matrix product" in error_of("MatMul", floats(), floats(2))
    assert infer_shape("MatMul", UNKNOWN, floats(2, 3)) is None


def test_types_of_integer_products() -> None:
    """MatMulInteger gives int32, QLinearMatMul the type of its last zero point."""
    assert dtype_of("MatMulInteger", tensor(DataType.UINT8, (2, 3)), tensor(DataType.INT8, (3, 4))) is DataType.INT32
    byte, one = tensor(DataType.INT8, (2, 2)), floats()
    assert dtype_of("QLinearMatMul", byte, one, byte, byte, one, byte, one, tensor(DataType.UINT8, ())) is DataType.UINT8


def test_gemm_transposes() -> None:
    """TransA and transB swap the axes before the product."""
    assert infer_shape("Gemm", floats(A, 3), floats(5, 3), floats(5), transB=1) == (A, 5)
    assert infer_shape("Gemm", floats(3, A), floats(3, B), transA=1) == (A, B)
    assert infer_shape("Gemm", UNKNOWN, floats(3, B)) == (UNKNOWN_DIM, B)


def test_gemm_refuses_what_cannot_be() -> None:
    """Ranks, inner sizes and the bias are checked."""
    assert "A has shape [2] of rank 1, expected rank 2" in error_of("Gemm", floats(2), floats(2, 3))
    assert "[2, 4] transposed differ: 3 and 4" in error_of("Gemm", floats(2, 3), floats(2, 4), transB=1)
    assert "C of shape [7] does not broadcast" in error_of("Gemm", floats(2, 3), floats(3, 4), floats(7))


def test_det_drops_the_matrix() -> None:
    """A determinant for each matrix of the batch."""
    assert infer_shape("Det", floats(A, 3, 3)) == (A,)


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ij,jk->ik", ((A, 3), (3, B)), (A, B)),
        ("bij,bjk", ((2, A, 3), (2, 3, B)), (A, B)),
        ("...ij,...jk->...ik", ((5, A, 3), (1, 3, B)), (5, A, B)),
        ("ii->i", ((4, 4),), (4,)),
        ("ij->", ((A, B),), ()),
        ("b i j -> b j i", ((A, 2, 3),), (A, 3, 2)),
    ],
)
def test_einsum(equation: str, shapes: tuple[tuple[Dim, ...], ...], expected: tuple[Dim, ...]) -> None:
    """Letters name dimensions; without an arrow those that occur once come out in order."""
    assert infer_shape("Einsum", *[floats(*shape) for shape in shapes], equation=equation) == expected


def test_einsum_refuses_what_cannot_be() -> None:
    """Terms must be as many as inputs and fit their ranks."""
    assert "has 2 terms for 1 inputs" in error_of("Einsum", floats(2, 3), equation="ij,jk->ik")
    assert "does not fit shape [2]" in error_of("Einsum", floats(2), equation="ij->i")
    assert infer_shape("Einsum", UNKNOWN, ints(1), equation="ij,j->i") == (UNKNOWN_DIM,)
