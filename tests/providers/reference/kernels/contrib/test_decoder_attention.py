"""Attention of one new token, against onnxruntime where it has it, and against attention of com.microsoft elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.peer import run_peer
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

B, N, P, LENGTH, D = 4, 2, 3, 6, 8
HIDDEN = N * D
OP = "DecoderMaskedMultiHeadAttention"


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **options)


def coins(*shape: int) -> Array:
    return np.random.default_rng(9).integers(0, 2, shape).astype(np.int32)


Q, K, V = (draw(B, 1, HIDDEN, seed=seed) for seed in (1, 2, 3))
BUFFERS = draw(B, N, LENGTH, D, seed=4), draw(B, N, LENGTH, D, seed=5)
USED, WIDTH = np.array([P], np.int32), np.array([2], np.int32)
BEAMS = coins(2, 2, LENGTH)
BIAS = draw(3 * HIDDEN, seed=6)


@pytest.mark.parametrize(
    "inputs",
    [
        (Q, K, V, None, None, *BUFFERS, USED),
        (Q, K, V, coins(B, P + 1), None, *BUFFERS, USED),
        (Q, K, V, None, draw(1, N, 1, P + 1, seed=7), *BUFFERS, USED),
        (Q, K, V, None, None, *BUFFERS, USED, None, None, BIAS),
        (Q, K, V, None, None, *BUFFERS, USED, WIDTH, BEAMS),
        (Q, K, V, coins(B, P + 1), draw(1, 1, 1, P + 1, seed=7), *BUFFERS, USED, WIDTH, BEAMS, BIAS),
    ],
)
def test_self_attention_is_as_in_onnxruntime(inputs: tuple[Any, ...]) -> None:
    """In a shared buffer, with mask, bias, and beams that share their past."""
    attributes = {"num_heads": N, "past_present_share_buffer": 1}
    found = run(OP, *inputs, outputs=3, **attributes)
    for ours, theirs in zip(found, run_peer(OP, *inputs, outputs=3, **attributes), strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", [None, coins(B, LENGTH)])
def test_cross_attention_is_as_in_onnxruntime(mask: Array | None) -> None:
    """Keys with their heads apart are an encoder's."""
    inputs = (Q, *BUFFERS, mask)
    (expected,) = run_peer(OP, *inputs, num_heads=N)
    np.testing.assert_allclose(run(OP, *inputs, num_heads=N)[0], expected, rtol=1e-5, atol=1e-6)


def test_without_a_shared_buffer_the_present_grows() -> None:
    """Past, packed projections and scores are those of MultiHeadAttention."""
    past = tuple(part[:, :, :P] for part in BUFFERS)
    packed = np.concatenate([Q, K, V], axis=2)
    found = run(OP, packed, None, None, None, None, *past, outputs=4, num_heads=N, output_qk=1)
    expected = run("MultiHeadAttention", Q, K, V, None, None, None, *past, outputs=4, num_heads=N)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_the_fourth_output_is_what_enters_the_softmax() -> None:
    """It is the scaled product, with mask and bias added, as in onnxruntime."""
    mask, added = np.array([[1, 1, 0, 1]] * B, np.int32), draw(1, N, 1, P + 1, seed=7)
    attributes = {"num_heads": N, "past_present_share_buffer": 1, "output_qk": 1}
    inputs = (Q, K, V, mask, added, *BUFFERS, USED)
    scores = run(OP, *inputs, outputs=4, **attributes)[3]
    keys = np.concatenate([BUFFERS[0][:, :, :P], K.reshape(B, N, 1, D)], axis=2)
    product = Q.reshape(B, N, 1, D) @ keys.swapaxes(2, 3) / np.sqrt(D)
    np.testing.assert_allclose(scores, product + added + np.where(mask, 0, -10000)[:, None, None], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(scores, run_peer(OP, *inputs, outputs=4, **attributes)[3], rtol=1e-5, atol=1e-5)


def test_DecoderMaskedSelfAttention_is_Attention_of_one_token() -> None:
    """It projects its input, and grows its past by one."""
    x, weights, past = draw(B, 1, 5, seed=11), draw(5, 3 * HIDDEN, seed=12), draw(2, B, N, P, D, seed=13)
    found = run("DecoderMaskedSelfAttention", x, weights, BIAS, None, past, None, None, outputs=2, num_heads=N)
    expected = run("Attention", x, weights, BIAS, None, past, outputs=2, num_heads=N)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    """Buffers that are full, beams that do not exist, several tokens."""
    with pytest.raises(InvalidArgument, match="space for 6 keys"):
        run(OP, Q, K, V, None, None, *BUFFERS, np.array([6], np.int32), num_heads=N, past_present_share_buffer=1)
    with pytest.raises(InvalidArgument, match="names beams"):
        run(OP, Q, K, V, None, None, *BUFFERS, USED, WIDTH, BEAMS + 7, num_heads=N, past_present_share_buffer=1)
    with pytest.raises(InvalidArgument, match="past_sequence_length is not given"):
        run(OP, Q, K, V, None, None, *BUFFERS, num_heads=N, past_present_share_buffer=1)
    with pytest.raises(InvalidArgument, match=r"expected \(B, 1, hidden\)"):
        run(OP, draw(B, 2, HIDDEN), num_heads=N)
