"""Quantization of weights in blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import sardonyx as ort
from sardonyx.capi import block_quantization
from sardonyx.dtypes import Array

BLOCK = 16
COLUMNS = {
    2: block_quantization.quantize_matmul_2bits,
    4: block_quantization.quantize_matmul_4bits,
    8: block_quantization.quantize_matmul_8bits,
}
ROWS = {2: block_quantization.quantize_qdq_matmul_2bits, 4: block_quantization.quantize_qdq_matmul_4bits}


def _unpacked(packed: Array, bits: int) -> Array:
    shifts = (bits * np.arange(8 // bits)).astype(np.uint8)
    return ((packed.reshape(-1, 1) >> shifts) & ((1 << bits) - 1)).reshape(-1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_codes_of_columns_give_the_weights_again(bits: int, symmetric: bool, dtype: type) -> None:
    """Within half a step, also in a last block that is not full; the code behind the last row is 0."""
    K, N, blocks = 37, 5, 3
    weights = np.random.default_rng(bits).standard_normal((K, N)).astype(dtype)
    quantized, scales = np.full((N, blocks, BLOCK * bits // 8), 255, np.uint8), np.zeros((N, blocks), dtype)
    zeros = np.zeros((N, -(-blocks * bits // 8)), np.uint8)
    COLUMNS[bits](quantized, weights, scales, zeros, BLOCK, N, K, symmetric)
    codes = _unpacked(quantized, bits).reshape(N, blocks, BLOCK).astype(np.float32)
    zero: Array = np.float32(1 << (bits - 1)) * np.ones((N, blocks), np.float32)
    if not symmetric:
        zero = np.stack([_unpacked(row, bits)[:blocks] for row in zeros]).astype(np.float32)
    found = ((codes - zero[..., None]) * scales[..., None].astype(np.float32)).reshape(N, -1)[:, :K].T
    steps = np.repeat(np.abs(scales.astype(np.float32)), BLOCK, axis=1)[:, :K].T
    # a symmetric block has no code for the negative of its greatest element, and asymmetric zero points are rounded
    assert (np.abs(found - weights) <= (1.01 if symmetric else 0.55) * steps + 2e-3).all()
    assert not codes.reshape(N, -1)[:, K:].any()


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [2, 4])
def test_codes_of_rows_are_those_of_dequantize_linear(bits: int, symmetric: bool) -> None:
    """Row by row; symmetric ones are signed."""
    K, N, blocks = 20, 3, 2
    weights = np.random.default_rng(bits).standard_normal((K, N)).astype(np.float32)
    quantized, scales = np.zeros(-(-K * N * bits // 8), np.uint8), np.zeros((blocks, N), np.float32)
    zeros = np.zeros(-(-blocks * N * bits // 8), np.uint8)
    assert ROWS[bits](quantized, weights, scales, zeros, BLOCK, N, K, symmetric) is symmetric
    codes = _unpacked(quantized, bits)[: K * N].reshape(K, N).astype(np.int32)
    zero = _unpacked(zeros, bits)[: blocks * N].reshape(blocks, N).astype(np.int32)
    if symmetric:
        codes = codes - (codes >> (bits - 1) << bits)
        zero = np.zeros_like(zero)
    steps = np.repeat(scales, BLOCK, axis=0)[:K]
    found = (codes - np.repeat(zero, BLOCK, axis=0)[:K]) * steps
    assert (np.abs(found - weights) <= (1.01 if symmetric else 0.55) * np.abs(steps) + 1e-6).all()


def test_the_greatest_element_of_a_symmetric_block_is_exact() -> None:
    """It has the lowest code; a block of zeros has the scale 0."""
    weights = np.zeros((32, 1), np.float32)
    weights[:3, 0] = 4, -2, 1
    quantized, scales = np.zeros((1, 2, 8), np.uint8), np.zeros(2, np.float32)
    COLUMNS[4](quantized, weights, scales, np.zeros(1, np.uint8), BLOCK, 1, 32, True)
    assert scales.tolist() == [-0.5, 0]
    assert _unpacked(quantized, 4)[:4].tolist() == [0, 12, 6, 8]


@pytest.mark.parametrize("kind", [0, 1])
def test_types_of_bitsandbytes_take_the_nearest_value(kind: int) -> None:
    """Blocks go over the flat array; MatMulBnb4 computes with what comes out."""
    N, K = 4, 24
    weights = np.random.default_rng(kind).standard_normal((N, K)).astype(np.float32)
    quantized, absmax = np.zeros(N * K // 2, np.uint8), np.zeros(N * K // BLOCK, np.float32)
    block_quantization.quantize_matmul_bnb4(quantized, weights, absmax, BLOCK, kind, N, K)
    np.testing.assert_array_equal(absmax, np.abs(weights.reshape(-1, BLOCK)).max(axis=1))
    attributes = f"K = {K}, N = {N}, block_size = {BLOCK}, quant_type = {kind}"
    session = ort.InferenceSession(_product(attributes, quantized, absmax, K))
    found = session.run(None, {"a": np.eye(K, dtype=np.float32)})[0].T
    assert (np.abs(found - weights) <= 0.17 * np.repeat(absmax, BLOCK).reshape(N, K)).all()


def _product(attributes: str, quantized: Array, absmax: Array, K: int) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    pairs = dict(item.split(" = ") for item in attributes.split(", "))
    node = helper.make_node(
        "MatMulBnb4", ["a", "b", "m"], ["y"], domain="com.microsoft", **{name: int(value) for name, value in pairs.items()}
    )
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, [K, K])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(quantized, "b"), numpy_helper.from_array(absmax, "m")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)])
    return bytes(made.SerializeToString())


@pytest.mark.parametrize("call", list(COLUMNS.values()))
def test_wrong_arrays_are_refused(call: Callable[..., None]) -> None:
    """With the argument's name and what it must be."""
    weights = np.zeros((16, 1), np.float32)
    with pytest.raises(ort.InvalidArgument, match="quantized is a dense array of .* uint8, got uint8 \\(3,\\)"):
        call(np.zeros(3, np.uint8), weights, np.zeros(1, np.float32), np.zeros(1, np.uint8), 16, 1, 16, True)
    with pytest.raises(ort.InvalidArgument, match="block_size is a power of 2"):
        call(np.zeros(3, np.uint8), weights, np.zeros(1, np.float32), np.zeros(1, np.uint8), 17, 1, 16, True)


def test_rows_behind_the_last_one_do_not_count() -> None:
    """Tools fill up the last block before they call."""
    weights = np.random.default_rng(0).standard_normal((32, 2)).astype(np.float32)
    results = []
    for given in (weights, np.ascontiguousarray(weights[:20])):
        quantized, scales = np.zeros((2, 2, 8), np.uint8), np.zeros(4, np.float32)
        COLUMNS[4](quantized, given, scales, np.zeros(2, np.uint8), BLOCK, 2, 20, True)
        results.append((quantized.tolist(), scales.tolist()))
    assert results[0] == results[1]


def test_a_small_negative_number_keeps_its_sign_in_fp4() -> None:
    """The code of a negative zero."""
    weights = np.zeros((1, 16), np.float32)
    weights[0, :3] = 1, -1e-6, 1e-6
    quantized, absmax = np.zeros(8, np.uint8), np.zeros(1, np.float32)
    block_quantization.quantize_matmul_bnb4(quantized, weights, absmax, BLOCK, 0, 1, 16)
    assert quantized[:2].tolist() == [0x38, 0x00]
