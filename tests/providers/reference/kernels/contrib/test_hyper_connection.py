"""Hyper-connections of com.microsoft against their formulas in float64, and against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.peer import run_peer
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

RANDOM = np.random.default_rng(5)
C, H = 3, 8
STREAMS = RANDOM.standard_normal((2, 5, C, H)).astype(np.float32)
FLAT = STREAMS.reshape(2, 5, C * H)


def run(op_type: str, *inputs: Any, **attributes: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **attributes)


def drawn(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("gates", [(2, 5, C), (2, 5, C, 1), (2, 5, C, H), (2, 5, C * H)])
def test_HyperConnectionPreMix(gates: tuple[int, ...]) -> None:
    """A gate is for a stream or for each of its features; streams may lie in one axis."""
    pre = drawn(*gates)
    expected = 0.25 * (STREAMS.astype(np.float64) * pre.reshape(2, 5, C, -1)).sum(axis=2)
    flat = run("HyperConnectionPreMix", FLAT, pre, num_branches=C, reduction_scale=0.25)
    np.testing.assert_allclose(flat, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(flat, run_peer("HyperConnectionPreMix", FLAT, pre, num_branches=C, reduction_scale=0.25)[0])
    if gates[-1] != C * H:
        np.testing.assert_array_equal(run("HyperConnectionPreMix", STREAMS, pre, reduction_scale=0.25), flat)


@pytest.mark.parametrize("gates", [(2, 5, C), (2, 5, C, 1), (2, 5, C, H)])
@pytest.mark.parametrize("has_matrix", [False, True])
def test_HyperConnectionPostMix(gates: tuple[int, ...], has_matrix: bool) -> None:
    """A stream is the sum of all, weighted by its column, and of the block's output times its gate."""
    post, block, matrix = drawn(*gates), drawn(2, 5, H), drawn(2, 5, C, C) if has_matrix else None
    wide = STREAMS.astype(np.float64)
    mixed = wide if matrix is None else np.swapaxes(matrix.astype(np.float64), -1, -2) @ wide
    expected = mixed + post.reshape(2, 5, C, -1).astype(np.float64) * block[:, :, None]
    y = run("HyperConnectionPostMix", STREAMS, block, post, matrix)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y, run_peer("HyperConnectionPostMix", STREAMS, block, post, matrix)[0], rtol=1e-6, atol=1e-6)
    flat = run("HyperConnectionPostMix", FLAT, block, post, matrix, num_branches=C)
    np.testing.assert_array_equal(flat, y.reshape(FLAT.shape))


def test_half_streams_are_rounded_once() -> None:
    """Gates may be of another type; onnxruntime's results are the same to the bit."""
    streams, gates = STREAMS.astype(np.float16), drawn(2, 5, C)
    y = run("HyperConnectionPreMix", streams, gates, reduction_scale=0.3)
    assert y.dtype == np.float16
    np.testing.assert_array_equal(y, run_peer("HyperConnectionPreMix", streams, gates, reduction_scale=0.3)[0])
    block = drawn(2, 5, H).astype(np.float16)
    y = run("HyperConnectionPostMix", streams, block, gates)
    np.testing.assert_array_equal(y, run_peer("HyperConnectionPostMix", streams, block, gates)[0])


def test_a_batch_of_nothing_mixes_to_nothing() -> None:
    """Leading axes may be empty; streams and features may not."""
    assert run("HyperConnectionPreMix", drawn(0, C, H), drawn(0, C)).shape == (0, H)
    with pytest.raises(InvalidArgument, match="at least one stream"):
        run("HyperConnectionPreMix", drawn(2, 0, H), drawn(2, 0))


@pytest.mark.parametrize(
    ("streams", "gates", "branches", "message"),
    [
        ((2, C, H), (1, C), 0, "pre_mix has shape"),
        ((2, C, H), (2, C * H), 0, "pre_mix has shape"),
        ((2, C * H), (2, H), C, "pre_mix has shape"),
        ((H,), (1,), 0, "streams have shape"),
        ((), (), C, "num_branches is 3"),
        ((2, 10), (2, 3), 3, "num_branches is 3"),
        ((2, 10), (2, 3), -5, "num_branches is -5"),
    ],
)
def test_what_HyperConnectionPreMix_refuses(streams: tuple[int, ...], gates: tuple[int, ...], branches: int, message: str) -> None:
    """Gates are not broadcast along the leading axes, and branches divide the width."""
    with pytest.raises(InvalidArgument, match=message):
        run("HyperConnectionPreMix", drawn(*streams), drawn(*gates), num_branches=branches)


@pytest.mark.parametrize(
    ("block", "post", "matrix", "message"),
    [
        ((2, 1, H), (2, 5, C), (2, 5, C, C), "block_output has shape"),
        ((2, 5, H), (2, 5, C * H), (2, 5, C, C), "post_mix has shape"),
        ((2, 5, H), (2, 5, C), (C, C), "stream_mix has shape"),
    ],
)
def test_what_HyperConnectionPostMix_refuses(
    block: tuple[int, ...], post: tuple[int, ...], matrix: tuple[int, ...], message: str
) -> None:
    """Shapes that do not fit the streams are named."""
    with pytest.raises(InvalidArgument, match=message):
        run("HyperConnectionPostMix", STREAMS, drawn(*block), drawn(*post), drawn(*matrix))


def normalized(x: Array, scale: Array, epsilon: float) -> Array:
    wide = x.astype(np.float64)
    return wide / np.sqrt(np.square(wide).mean(-1, keepdims=True) + epsilon) * scale


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_EngramGate(dtype: type) -> None:
    """The value is gated for each stream, rounded, and then normalized."""
    key, query = (drawn(2, 5, C, H).astype(dtype) for _ in range(2))
    value, scales = drawn(2, 5, H).astype(dtype), [drawn(C, H).astype(dtype) for _ in range(3)]
    found = run("EngramGate", key, query, value, *scales, outputs=2, epsilon=0.01)
    d = (normalized(key, scales[0], 0.01) * normalized(query, scales[1], 0.01)).sum(-1, keepdims=True) / np.sqrt(H)
    gated = value[:, :, None].astype(np.float64) / (1 + np.exp(-np.sign(d) * np.sqrt(np.maximum(np.abs(d), 1e-6))))
    tolerance = 4e-6 if dtype is np.float32 else 1e-3
    np.testing.assert_allclose(found[0], gated, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found[1], normalized(found[0], scales[2], 0.01), rtol=tolerance, atol=tolerance)
    for ours, theirs in zip(found, run_peer("EngramGate", key, query, value, *scales, outputs=2, epsilon=0.01), strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_a_gate_without_agreement_is_open_by_half() -> None:
    """The sign of 0 is 0."""
    zero, one = np.zeros((1, 1, 1, 4), np.float32), np.ones((1, 4), np.float32)
    (output,) = run("EngramGate", zero, zero, np.full((1, 1, 4), 3, np.float32), one, one)
    assert output.ravel().tolist() == [1.5] * 4


def test_what_EngramGate_refuses() -> None:
    """Another rank, another scale, and a normalized output without its scale."""
    key, value, scale = drawn(1, 2, C, H), drawn(1, 2, H), drawn(C, H)
    with pytest.raises(InvalidArgument, match="expected \\(B, T, C, H\\) twice"):
        run("EngramGate", key, key, drawn(1, 2, C), scale, scale)
    with pytest.raises(InvalidArgument, match="query_norm_scale has shape"):
        run("EngramGate", key, key, value, scale, scale[0])
    with pytest.raises(InvalidArgument, match="without conv_norm_scale"):
        run("EngramGate", key, key, value, scale, scale, outputs=2)
