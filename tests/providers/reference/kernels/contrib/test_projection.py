"""Projections with packed weights against their parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

RANDOM = np.random.default_rng(1)
K, OPTIONS = 40, {"bits": 4, "block_size": 32}
X, SKIP = (RANDOM.standard_normal((2, 3, K)).astype(np.float32) for _ in range(2))
SCALE = RANDOM.uniform(0.5, 1.5, K).astype(np.float32)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", K=K, **OPTIONS, **options)


def weights(N: int, seed: int) -> tuple[Array, Array, Array]:
    generator = np.random.default_rng(seed)
    packed = generator.integers(0, 256, (N, 2, 16)).astype(np.uint8)
    return packed, generator.uniform(0.01, 0.1, N * 2).astype(np.float32), generator.standard_normal(N).astype(np.float32)


def project(x: Array, part: tuple[Array, Array, Array | None]) -> Array:
    return run("MatMulNBits", x.astype(np.float32), *part[:2], None, None, part[2], N=len(part[0])).astype(np.float64)


def normalized(total: Array, epsilon: float) -> Array:
    wide = total.astype(np.float64)
    return wide / np.sqrt(np.square(wide).mean(-1, keepdims=True) + epsilon) * SCALE


@pytest.mark.parametrize("skip", [None, SKIP])
def test_MatMulNBitsMlp(skip: Array | None) -> None:
    """The sum is normalized, projected twice, and one part gates the other."""
    gate, up = weights(8, 2), weights(8, 3)
    y, total = run("MatMulNBitsMlp", X, skip, SCALE, *gate, *up[:2], outputs=2, N=8, activation="silu", epsilon=0.1)
    np.testing.assert_allclose(total, X if skip is None else X + skip, rtol=1e-6)
    x = normalized(total, 0.1)
    opened = project(x, gate)
    np.testing.assert_allclose(y, opened / (1 + np.exp(-opened)) * project(x, (*up[:2], None)), rtol=1e-4, atol=1e-5)


def test_MatMulNBitsMlp_without_a_normalization() -> None:
    """The input is projected itself; a residual belongs to a normalization."""
    gate, up = weights(8, 2), weights(8, 3)
    y, _ = run("MatMulNBitsMlp", X, None, None, *gate, *up, outputs=2, N=8, activation="silu")
    opened = project(X, gate)
    np.testing.assert_allclose(y, opened / (1 + np.exp(-opened)) * project(X, up), rtol=1e-4, atol=1e-5)
    with pytest.raises(InvalidArgument, match="without norm_scale"):
        run("MatMulNBitsMlp", X, SKIP, None, *gate, *up, outputs=2, N=8, activation="silu")


def test_MatMulNBitsMlp_knows_one_activation() -> None:
    """Another is refused by name."""
    with pytest.raises(InvalidArgument, match="activation is 'relu'"):
        run("MatMulNBitsMlp", X, None, None, *weights(8, 2), *weights(8, 3), N=8, activation="relu")


@pytest.mark.parametrize("skip", [None, SKIP])
def test_MatMulNBitsQkv(skip: Array | None) -> None:
    """One normalization, three projections of two sizes."""
    parts = weights(8, 2), weights(4, 3), weights(4, 4)
    *found, total = run("MatMulNBitsQkv", X, skip, SCALE, *parts[0], *parts[1], *parts[2], outputs=4, Nq=8, Nkv=4, epsilon=0.1)
    np.testing.assert_allclose(total, X if skip is None else X + skip, rtol=1e-6)
    for y, part in zip(found, parts, strict=True):
        np.testing.assert_allclose(y, project(normalized(total, 0.1), part), rtol=1e-4, atol=1e-5)
