"""Fused and packed matrix products against their parts in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **options)


A, B = draw(2, 3, 4, 5, seed=1), draw(2, 3, 5, 6, seed=2)


@pytest.mark.parametrize("op_type", ["FusedMatMul", "TransposeMatMul"])
def test_FusedMatMul_transposes_and_scales(op_type: str) -> None:
    """Transposed operands are given by their transposes; alpha scales the product."""
    y = run(op_type, A.swapaxes(2, 3), B.swapaxes(2, 3), transA=1, transB=1, alpha=0.5)
    np.testing.assert_allclose(y, A.astype(np.float64) @ B / 2, rtol=1e-5, atol=1e-5)


def test_FusedMatMul_moves_the_first_axis_behind_the_batch() -> None:
    """A (4, 2, 3, 5) with transBatchA is read as (2, 3, 4, 5)."""
    y = run("FusedMatMul", np.moveaxis(A, 2, 0), B, transBatchA=1)
    np.testing.assert_allclose(y, A.astype(np.float64) @ B, rtol=1e-5, atol=1e-5)


def test_FusedMatMulActivation_applies_its_activation() -> None:
    """With parameters of its own, or along an axis."""
    a, b = A[0, 0], B[0, 0]
    z = a.astype(np.float64) @ b / 2
    y = run("FusedMatMulActivation", a, b, alpha=0.5, activation="LeakyRelu", activation_alpha=0.1)
    np.testing.assert_allclose(y, np.where(z < 0, 0.1 * z, z), rtol=1e-5, atol=1e-5)
    y = run("FusedMatMulActivation", a.T, b, alpha=0.5, transA=1, activation="Softmax", activation_axis=0)
    np.testing.assert_allclose(y, np.exp(z) / np.exp(z).sum(axis=0), rtol=1e-5, atol=1e-5)


def test_FusedGemm_applies_its_activation() -> None:
    """Parameters of the activation have names of their own."""
    a, b, c = A[0, 0], B[0, 0], draw(6, seed=3)
    y = run("FusedGemm", a, b, c, alpha=0.5, beta=2.0, activation="LeakyRelu", activation_alpha=0.1)
    z = a.astype(np.float64) @ b / 2 + 2 * c
    np.testing.assert_allclose(y, np.where(z < 0, 0.1 * z, z), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("activation", "parameters"), [("", ()), ("Relu", ()), ("Clip", (-0.5, 0.5))])
def test_FusedConv_adds_a_residual_and_activates(activation: str, parameters: tuple[float, ...]) -> None:
    """Z is added before the activation."""
    x, w, b, z = draw(1, 2, 5, 5, seed=4), draw(3, 2, 3, 3, seed=5), draw(3, seed=6), draw(1, 3, 5, 5, seed=7)
    plain = run_op("Conv", x, w, b, pads=(1, 1, 1, 1))
    y = run("FusedConv", x, w, b, z, pads=(1, 1, 1, 1), activation=activation, activation_params=parameters)
    low, high = parameters or ((0, np.inf) if activation else (-np.inf, np.inf))
    np.testing.assert_allclose(y, np.clip(plain + z, low, high), rtol=1e-6, atol=1e-6)


INTEGERS = np.random.default_rng(8).integers(0, 256, (4, 5)).astype(np.uint8)
WEIGHTS = np.random.default_rng(9).integers(-128, 128, (5, 6)).astype(np.int8)


def test_MatMulIntegerToFloat_scales_by_column() -> None:
    """Scales and zero points of B go by tensor or by column."""
    scale, zero, bias = np.abs(draw(6, seed=10)), WEIGHTS[0], draw(6, seed=11)
    a_scale, a_zero = np.array(0.1, np.float32), np.array(7, np.uint8)
    y = run("MatMulIntegerToFloat", INTEGERS, WEIGHTS, a_scale, scale, a_zero, zero, bias)
    expected = (INTEGERS.astype(np.float64) - 7) @ (WEIGHTS.astype(np.float64) - zero) * 0.1 * scale + bias
    np.testing.assert_allclose(y, expected, rtol=1e-5)


def test_DynamicQuantizeMatMul_is_close_to_the_product_of_floats() -> None:
    """The error is that of 8 bits."""
    a, scale = draw(4, 5, seed=12), np.array(0.05, np.float32)
    y = run("DynamicQuantizeMatMul", a, WEIGHTS, scale)
    expected = a.astype(np.float64) @ WEIGHTS * 0.05
    assert np.abs(y - expected).max() < 0.02 * np.abs(expected).max()


def test_MatMulInteger16_is_exact() -> None:
    """Products of 16-bit numbers lose nothing."""
    a = np.array([[32767, -32768]], np.int16)
    np.testing.assert_array_equal(run("MatMulInteger16", a, a.T[:, :1] * 0 + 1), np.array([[-1]], np.int32))


def quantized(N: int, K: int, bits: int, block: int) -> tuple[Array, Array, Array]:
    blocks = -(-K // block)
    generator = np.random.default_rng(13)
    packed = generator.integers(0, 256, (N, blocks, block * bits // 8)).astype(np.uint8)
    shifts = np.arange(0, 8, bits)
    numbers = ((packed[..., None] >> shifts) & ((1 << bits) - 1)).reshape(N, blocks, block)
    return packed, numbers.astype(np.float64), np.abs(draw(N, blocks, seed=14)) / 8


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("K", [32, 40])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("zero", ["default", "packed", "float"])
def test_MatMulNBits_dequantizes_by_block(bits: int, K: int, rows: int, zero: str) -> None:
    """One row and several take different ways to the same numbers; the last block may be short."""
    packed, numbers, scales = quantized(7, K, bits, 16)
    blocks = numbers.shape[1]
    per_row = -(-blocks * bits // 8)
    stored = np.random.default_rng(15).integers(0, 256, (7, per_row)).astype(np.uint8)
    unpacked = ((stored[..., None] >> np.arange(0, 8, bits)) & ((1 << bits) - 1)).reshape(7, -1)[:, :blocks]
    floats = draw(7, blocks, seed=16)
    given = {"default": None, "packed": stored, "float": floats}[zero]
    points = {"default": np.full((7, blocks), 1 << (bits - 1)), "packed": unpacked, "float": floats}[zero]
    weights = ((numbers - points[..., None]) * scales[..., None]).reshape(7, -1)[:, :K]
    a, bias = draw(2, rows, K, seed=17)[:1], draw(7, seed=18)
    y = run("MatMulNBits", a, packed, scales, given, None, bias, K=K, N=7, bits=bits, block_size=16)
    np.testing.assert_allclose(y, a.astype(np.float64) @ weights.T + bias, rtol=1e-4, atol=1e-3)


def test_MatMulNBits_takes_the_block_of_each_column_from_g_idx() -> None:
    """Columns may belong to blocks in any order."""
    packed, numbers, scales = quantized(3, 32, 4, 16)
    groups = np.random.default_rng(19).integers(0, 2, 32).astype(np.int32)
    weights = (numbers.reshape(3, 32) - 8) * scales[:, groups]
    a = draw(2, 32, seed=20)
    y = run("MatMulNBits", a, packed, scales, None, groups, K=32, N=3, block_size=16)
    np.testing.assert_allclose(y, a.astype(np.float64) @ weights.T, rtol=1e-4, atol=1e-4)


def test_MatMulNBits_keeps_half_types_and_works_in_blocks_of_rows() -> None:
    """More weights than are unpacked at a time give the same as each half of them."""
    packed, _, scales = quantized(600, 1024, 4, 32)
    a = draw(2, 1024, seed=21).astype(np.float16)
    y = run("MatMulNBits", a, packed, scales.astype(np.float16), K=1024, N=600, block_size=32)
    halves = [
        run("MatMulNBits", a, packed[p], scales[p].astype(np.float16), K=1024, N=300, block_size=32)
        for p in (slice(300), slice(300, 600))
    ]
    assert y.dtype == np.float16
    np.testing.assert_allclose(y.astype(np.float32), np.concatenate(halves, axis=1).astype(np.float32), rtol=2e-3, atol=1e-2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 9}, "bits is 9"),
        ({"block_size": 24}, "block_size 24"),
        ({"K": 48}, "must be K, 48"),
        ({"N": 8}, "N 8"),
        ({"weight_prepacked": 1}, "weight_prepacked is 1"),
        ({"zero_points": np.zeros(99, np.uint8)}, "zero_points has shape"),
        ({"g_idx": np.full(32, 9)}, "group numbers below 2"),
        ({"bias": np.zeros(2, np.float32)}, "bias has shape"),
    ],
)
def test_MatMulNBits_names_bad_arguments(change: dict[str, Any], message: str) -> None:
    """The message holds what was found and what the attributes ask for."""
    packed, _, scales = quantized(7, 32, 4, 16)
    extra = [change.pop(name, None) for name in ("zero_points", "g_idx", "bias")]
    with pytest.raises(InvalidArgument, match=message):
        run("MatMulNBits", draw(2, 32), packed, scales, *extra, **({"K": 32, "N": 7, "block_size": 16} | change))


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("FusedMatMul", (A, A), {}, "inner lengths"),
        ("FusedConv", (draw(1, 2, 5, 5), draw(3, 2, 3, 3), None, draw(1)), {}, r"Z has shape \(1,\)"),
        ("FusedGemm", (A[0, 0], B[0, 0]), {"activation": "Cosine"}, "'Cosine'"),
        ("MatMulIntegerToFloat", (INTEGERS, WEIGHTS, np.float32(1), draw(5)), {}, "b_scale has shape"),
    ],
)
def test_bad_inputs_are_named(op_type: str, inputs: tuple[Any, ...], attributes: dict[str, Any], message: str) -> None:
    """The message holds the shapes that were found."""
    with pytest.raises(InvalidArgument, match=message):
        run(op_type, *inputs, **attributes)
