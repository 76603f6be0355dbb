"""Products with weights that carry a scale per block, against onnxruntime and against the formula in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.peer import run_peer
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

GENERATOR = np.random.default_rng(31)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **options)


def blob(N: int, K: int, kind: int) -> Array:
    """Random bytes of N columns in blocks of 32 along K, with scales of (0, 1)."""
    per_column = -(-K // 32)
    found = GENERATOR.integers(0, 256, (N, per_column, 20 + (kind != 0)), dtype=np.uint8)
    found[:, :, :4] = GENERATOR.random((N, per_column, 1)).astype("<f4").view(np.uint8)
    if kind != 0:
        found[:, :, 4] &= 15
    return found.reshape(-1)


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("K", [32, 40, 96])
def test_MatMulFpQ4_is_as_in_onnxruntime(kind: int, K: int) -> None:
    """Blocks with and without a zero point, and a last one that is not full."""
    a, b, shape = GENERATOR.standard_normal((2, 3, K)).astype(np.float32), blob(5, K, kind), np.array([K, 5])
    y = run("MatMulFpQ4", a, b, shape, blk_quant_type=kind)
    try:
        (expected,) = run_peer("MatMulFpQ4", a, b, shape, blk_quant_type=kind)
    except Exception as error:
        if "not yet supported" in str(error):  # onnxruntime's kernel needs AVX-512
            pytest.skip(str(error))
        raise
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-3)


def test_MatMulFpQ4_refuses_other_sizes() -> None:
    """The bytes must be as many as the shape needs."""
    with pytest.raises(InvalidArgument, match="99 bytes; expected 105"):
        run("MatMulFpQ4", np.zeros((1, 32), np.float32), np.zeros(99, np.uint8), np.array([32, 5]))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_MatMulBlockQuantizedFp8Weight_scales_by_block(dtype: Any) -> None:
    """Each block of K has a scale; the bias is added to the product."""
    a = GENERATOR.standard_normal((2, 5, 40)).astype(dtype)
    b = GENERATOR.standard_normal((6, 40)).astype(ml_dtypes.float8_e4m3fn)
    scales, bias = GENERATOR.random((6, 3)).astype(np.float32), GENERATOR.standard_normal(6).astype(dtype)
    y = run("MatMulBlockQuantizedFp8Weight", a, b, scales, None, bias, block_size=16)
    weights = b.astype(np.float64) * np.repeat(scales, 16, axis=1)[:, :40]
    assert y.dtype == dtype
    expected = a.astype(np.float64) @ weights.T + bias.astype(np.float64)
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=2e-2, atol=2e-2)


def test_MatMulBlockQuantizedFp8Weight_rounds_the_activation() -> None:
    """With a_scale the activation passes through float8."""
    a = np.array([[1.03, 2.1]], np.float16)
    b, scales = np.eye(2).astype(ml_dtypes.float8_e4m3fn), np.ones((2, 1), np.float32)
    y = run("MatMulBlockQuantizedFp8Weight", a, b, scales, np.float32(1))
    np.testing.assert_array_equal(y, np.array([[1.0, 2.0]], np.float16))


def test_MatMulBlockQuantizedFp4Weight_reads_two_numbers_of_a_byte() -> None:
    """The low bits come first; both scales count."""
    a = np.array([[1, 10, 100, 1000]], np.float16)
    b = np.array([[0x21, 0x43]], np.uint8)
    block_scales = np.array([[1, 2]]).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    y = run("MatMulBlockQuantizedFp4Weight", a, b, block_scales, np.float32(0.5), block_size=2)
    np.testing.assert_array_equal(y, np.array([[0.25 + 5 + 150 + 2000]], np.float16))


def test_scales_must_fit_the_weights() -> None:
    """There is one scale for each block of each row."""
    a, b = np.zeros((1, 4), np.float16), np.zeros((2, 4)).astype(ml_dtypes.float8_e4m3fn)
    with pytest.raises(InvalidArgument, match=r"scales have shape \(2, 2\)"):
        run("MatMulBlockQuantizedFp8Weight", a, b, np.ones((2, 2), np.float32), block_size=4)
