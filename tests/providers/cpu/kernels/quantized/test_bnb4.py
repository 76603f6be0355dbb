"""MatMulBnb4: both tables, blocks and tails against the reference; what is left to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.constant_nodes import declined_of, node_model, open_session
from support.cpu_run import LEVELS, assert_same_bits

from sardonyx.dtypes import Array
from sardonyx.ops.views.quantize import BNB4_VALUES


def _a(rows: int, K: int) -> Array:
    return np.random.default_rng(rows).standard_normal((rows, K)).astype(np.float32)


def _weights(K: int, N: int, size: int) -> tuple[Array, Array]:
    generator = np.random.default_rng(K)
    return generator.integers(0, 256, (N * K + 1) // 2, dtype=np.uint8), generator.random(-(-N * K // size)).astype(np.float32)


def _model(K: int, N: int, size: int, code: int = 1, *, scales: Array | None = None, **more: Any) -> bytes:
    weights, absmax = _weights(K, N, size)
    inputs = [("a", _a(1, K)), weights, absmax if scales is None else scales]
    return node_model("MatMulBnb4", inputs, shapes={"a": ["M", K]}, K=K, N=N, block_size=size, **({"quant_type": code} | more))


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(
    ("K", "N", "size"), [(64, 67, 64), (48, 3, 32), (320, 130, 64), (128, 5, 4096), (80, 9, 128), (272, 1, 16)]
)
def test_results_are_those_of_the_definition(
    K: int, N: int, size: int, code: int, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one row and many, in one session; blocks within a row, of several rows, and across their ends."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    model = _model(K, N, size, code)
    session, reference = open_session(model), open_session(model, "Reference")
    for rows in (0, 1, 6, 13):
        found, exact = (which.run(None, {"a": _a(rows, K)})[0] for which in (session, reference))
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)


def test_against_float64() -> None:
    """A code is the value of its table times the largest of its block."""
    K, N, size = 128, 6, 64
    weights, absmax = _weights(K, N, size)
    codes = np.stack([weights >> 4, weights & 15], axis=1).reshape(-1)
    matrix = (np.array(BNB4_VALUES[1])[codes] * np.repeat(absmax, size)).reshape(N, K)
    found = open_session(_model(K, N, size)).run(None, {"a": _a(5, K)})[0]
    np.testing.assert_allclose(found, _a(5, K).astype(np.float64) @ matrix.T, rtol=1e-5, atol=1e-5)


def test_threads_and_batches_do_not_change_bits() -> None:
    """A row is computed as it is alone."""
    model, a = _model(320, 200, 64), _a(70, 320)
    whole = open_session(model, threads=2).run(None, {"a": a})[0]
    session = open_session(model)
    for row in (0, 33, 69):
        assert_same_bits(session.run(None, {"a": a[row : row + 1]})[0], whole[row : row + 1])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (_model(66, 4, 64), "which share no 16"),
        (_model(64, 64, 64, transB=0), "not transposed"),
        (_model(64, 4, 64, scales=np.ones(3, np.float32)), "3 scales"),
        (_model(64, 4, 64, 2), "of type 2"),
    ],
)
def test_what_is_left_to_others(model: bytes, reason: str) -> None:
    """Blocks that are no parts of rows, and what is wrong."""
    assert reason in declined_of(model)
