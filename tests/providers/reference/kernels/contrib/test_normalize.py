"""Normalization fused with sums and embeddings, against its formula in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

B, S, C = 2, 3, 8


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **options)


X, GAMMA, BETA, BIAS = draw(B, S, C, seed=1), draw(C, seed=2), draw(C, seed=3), draw(C, seed=4)


def layer_norm(x: Array, epsilon: float = 1e-12) -> Array:
    wide = x.astype(np.float64)
    return (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + epsilon)


def rms_norm(x: Array, epsilon: float = 1e-12) -> Array:
    wide = x.astype(np.float64)
    return wide / np.sqrt(np.square(wide).mean(-1, keepdims=True) + epsilon)


@pytest.mark.parametrize(
    ("axis", "bias_shape", "inner", "repeated"),
    [
        (2, (B, 1, C), 1, (B, 1, C)),
        (2, (S, C), 0, (1, S, C)),
        (-1, (C,), 0, (1, 1, C)),
        (1, (1, S, C), 1, (1, S, C)),
        (2, (B * S, C), 1, (B, S, C)),
    ],
)
def test_BiasSoftmax_repeats_rows(axis: int, bias_shape: tuple[int, ...], inner: int, repeated: tuple[int, ...]) -> None:
    """Each row of the bias for several neighbours, or all in turn; a row is all from the axis on."""
    bias = draw(*bias_shape, seed=6)
    y = run("BiasSoftmax", X, bias, axis=axis, is_inner_broadcast=inner)
    powers = np.exp(X.astype(np.float64) + bias.reshape(repeated))
    axes = tuple(range(axis % 3, 3))
    np.testing.assert_allclose(y, powers / powers.sum(axis=axes, keepdims=True), rtol=1e-5, atol=1e-6)


def test_BiasSoftmax_needs_whole_rows() -> None:
    """As many as divide those of the data; where these are none there is nothing to do."""
    for bias in (draw(C - 1), draw(4, C), draw(0, C)):
        with pytest.raises(InvalidArgument, match="expected rows of 8"):
            run("BiasSoftmax", X, bias, axis=2, is_inner_broadcast=1)
    assert run("BiasSoftmax", X[:0], draw(C), axis=2, is_inner_broadcast=1).shape == (0, S, C)


@pytest.mark.parametrize("skip_shape", [(B, S, C), (1, S, C), (S, C)])
@pytest.mark.parametrize("bias", [None, BIAS])
def test_SkipLayerNormalization(skip_shape: tuple[int, ...], bias: Array | None) -> None:
    """Skip and bias are added first; the sum comes out too."""
    skip = draw(*skip_shape, seed=5)
    total = X + skip + (0 if bias is None else bias)
    y, mean, _, summed = run("SkipLayerNormalization", X, skip, GAMMA, BETA, bias, outputs=4)
    np.testing.assert_allclose(y, layer_norm(total) * GAMMA + BETA, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, total.mean(-1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(summed, total, rtol=1e-6)


def test_SkipSimplifiedLayerNormalization() -> None:
    """Root mean square, no mean."""
    skip = draw(B, S, C, seed=5)
    y, _, inverse, summed = run("SkipSimplifiedLayerNormalization", X, skip, GAMMA, BIAS, epsilon=1e-3, outputs=4)
    total = X + skip + BIAS
    np.testing.assert_allclose(y, rms_norm(total, 1e-3) * GAMMA, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(total * inverse, rms_norm(total, 1e-3), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(summed, total, rtol=1e-6)


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
@pytest.mark.parametrize("axis", [-1, 1])
def test_SimplifiedLayerNormalization_is_known_in_two_domains(domain: str, axis: int) -> None:
    """It normalizes over all axes from `axis` on and may give the inverse too."""
    scale = draw(*X.shape[axis:], seed=6)
    y, inverse = run_op("SimplifiedLayerNormalization", X, scale, domain=domain, axis=axis, outputs=2)
    flat = X.reshape(*X.shape[:axis], -1)
    np.testing.assert_allclose(y, rms_norm(flat, 1e-5).reshape(X.shape) * scale, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(y, X * inverse * scale, rtol=1e-4, atol=1e-5)


def test_SimplifiedLayerNormalization_takes_the_type_of_its_scale() -> None:
    """A float16 input with a float32 scale gives float32."""
    y = run_op("SimplifiedLayerNormalization", X.astype(np.float16), GAMMA)
    assert y.dtype == np.float32


def test_half_types_are_kept() -> None:
    """Results and sums have the type of the input."""
    half = [a.astype(np.float16) for a in (X, X, GAMMA, BETA)]
    y, _, _, total = run("SkipLayerNormalization", *half, outputs=4)
    assert (y.dtype, total.dtype) == (np.float16, np.float16)
    np.testing.assert_allclose(y, layer_norm(2 * half[0].astype(np.float64)) * GAMMA + BETA, atol=1e-2)


WORDS, POSITIONS, SEGMENTS = draw(9, C, seed=7), draw(5, C, seed=8), draw(2, C, seed=9)
IDS = np.array([[1, 8, 0], [3, 3, 3]], np.int32)


def test_EmbedLayerNormalization_adds_three_embeddings() -> None:
    """The mask's ones are counted; the sum comes out before normalization."""
    segments, mask = np.array([[0, 0, 1], [1, 1, 1]], np.int32), np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    y, counts, total = run("EmbedLayerNormalization", IDS, segments, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, mask, outputs=3)
    expected = WORDS[IDS] + POSITIONS[:3] + SEGMENTS[segments]
    np.testing.assert_allclose(total, expected, rtol=1e-6)
    np.testing.assert_allclose(y, layer_norm(expected) * GAMMA + BETA, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(counts, np.array([2, 3], np.int32))


def test_EmbedLayerNormalization_takes_positions_and_does_without_segments() -> None:
    """Without a mask the counts are zero."""
    positions = np.array([[4, 0, 2]], np.int32)
    _, counts, total = run("EmbedLayerNormalization", IDS, None, WORDS, POSITIONS, None, GAMMA, BETA, None, positions, outputs=3)
    np.testing.assert_allclose(total, WORDS[IDS] + POSITIONS[positions], rtol=1e-6)
    np.testing.assert_array_equal(counts, [0, 0])


@pytest.mark.parametrize(
    ("op_type", "inputs", "message"),
    [
        ("SkipLayerNormalization", (X, draw(S + 1, C), GAMMA), r"skip \(4, 8\)"),
        ("SkipLayerNormalization", (X, X, GAMMA[:3]), r"gamma has shape \(3,\)"),
        ("SkipLayerNormalization", (X, X, GAMMA, BETA[:3]), r"beta has shape \(3,\)"),
        ("SkipSimplifiedLayerNormalization", (X, X, GAMMA, BIAS[:3]), r"bias has shape \(3,\)"),
        ("EmbedLayerNormalization", (IDS + 5, None, WORDS, POSITIONS, None, GAMMA, BETA), "input_ids run from 5 to 13"),
        ("EmbedLayerNormalization", (IDS - 99, None, WORDS, POSITIONS, None, GAMMA, BETA), "input_ids run from -99"),
        ("EmbedLayerNormalization", (IDS, None, WORDS, POSITIONS[:2], None, GAMMA, BETA), "positions run from 0 to 2"),
        ("GatedRMSNorm", (X, GAMMA[:3], X), r"scale \(3,\)"),
        ("BranchwiseRMSNorm", (X, GAMMA[:3]), r"scale has shape \(3,\)"),
        ("EmbedLayerNormalization", (IDS[0], None, WORDS, POSITIONS, None, GAMMA, BETA), "input_ids has shape"),
    ],
)
def test_bad_inputs_are_named(op_type: str, inputs: tuple[Any, ...], message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        run(op_type, *inputs)


def test_QEmbedLayerNormalization_dequantizes_its_tables() -> None:
    """It equals EmbedLayerNormalization of the numbers behind them."""
    generator = np.random.default_rng(10)
    tables = [generator.integers(0, 256, shape).astype(np.uint8) for shape in ((9, C), (5, C), (2, C), (C,), (C,))]
    scales, zeros = (
        [np.array(v, np.float32) for v in (0.1, 0.2, 0.05, 0.01, 0.02)],
        [np.array(v, np.uint8) for v in (128, 9, 0, 5, 77)],
    )
    words, positions, segments, gamma, beta = (
        (table.astype(np.float32) - zero) * scale for table, scale, zero in zip(tables, scales, zeros, strict=True)
    )
    ids = np.array([[0, 0, 1], [1, 1, 1]], np.int32)
    y, counts = run("QEmbedLayerNormalization", IDS, ids, *tables, ids, *scales, *zeros, outputs=2)
    expected, expected_counts, _ = run("EmbedLayerNormalization", IDS, ids, words, positions, segments, gamma, beta, ids, outputs=3)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(counts, expected_counts)


@pytest.mark.parametrize("activation", ["silu", "swish", "sigmoid"])
def test_GatedRMSNorm_normalizes_groups_and_gates(activation: str) -> None:
    """The length of the scale is the size of a group."""
    gate, scale = draw(B, S, C, seed=11), draw(4, seed=12)
    y = run("GatedRMSNorm", X, scale, gate, activation=activation)
    gated = 1 / (1 + np.exp(-gate.astype(np.float64))) * (1 if activation == "sigmoid" else gate)
    expected = (rms_norm(X.reshape(B, S, 2, 4), 1e-5) * scale).reshape(X.shape) * gated
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(4,), (2, 4), (8,), None])
def test_BranchwiseRMSNorm_takes_branches_apart_or_flat(shape: tuple[int, ...] | None) -> None:
    """Scale goes by element, by branch and element, or is left out."""
    scale = None if shape is None else draw(*shape, seed=13)
    expected = rms_norm(X.reshape(B, S, 2, 4), 1e-5)
    if scale is not None:
        expected = expected * (scale if scale.shape == (4,) else scale.reshape(2, 4))
    flat = run("BranchwiseRMSNorm", X, scale, num_branches=2)
    np.testing.assert_allclose(flat, expected.reshape(X.shape), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(run("BranchwiseRMSNorm", X.reshape(B, S, 2, 4), scale), flat.reshape(B, S, 2, 4))
