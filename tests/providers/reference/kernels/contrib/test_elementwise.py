"""The Gelu family against its formula in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

X = np.linspace(-6, 6, 24, dtype=np.float32).reshape(4, 6)
BIAS = np.linspace(-1, 1, 6, dtype=np.float32)


def exact(x: Array) -> Array:
    return x / 2 * (1 + np.vectorize(math.erf)(x.astype(np.float64) / math.sqrt(2)))


def by_tanh(x: Array) -> Array:
    wide = x.astype(np.float64)
    return wide / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "expected"),
    [
        ("Gelu", (X,), {}, exact(X)),
        ("BiasGelu", (X, BIAS), {}, exact(X + BIAS)),
        ("FastGelu", (X,), {}, by_tanh(X)),
        ("FastGelu", (X, BIAS), {}, by_tanh(X + BIAS)),
        ("QuickGelu", (X,), {}, X / (1 + np.exp(-1.702 * X.astype(np.float64)))),
        ("QuickGelu", (X,), {"alpha": 0.5}, X / (1 + np.exp(-0.5 * X.astype(np.float64)))),
        ("BiasSplitGelu", (X, BIAS), {}, (X + BIAS)[:, :3] * exact(X + BIAS)[:, 3:]),
        ("BiasAdd", (X, BIAS, X), {}, 2 * X + BIAS),
    ],
)
@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-6), (np.float16, 2e-3)])
def test_formulas(
    op_type: str, inputs: tuple[Array, ...], attributes: dict[str, Any], expected: Array, dtype: Any, error: float
) -> None:
    """The result has the type of X; half types are rounded once."""
    y = run_op(op_type, *(x.astype(dtype) for x in inputs), domain="com.microsoft", **attributes)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, expected, rtol=10 * error, atol=10 * error)


@pytest.mark.parametrize("op_type", ["BiasGelu", "FastGelu", "BiasSplitGelu"])
def test_a_bias_of_another_length_is_an_error(op_type: str) -> None:
    """The message holds both shapes."""
    with pytest.raises(InvalidArgument, match=r"the bias has shape \(5,\) and X \(4, 6\)"):
        run_op(op_type, X, BIAS[:5], domain="com.microsoft")


def test_BiasSplitGelu_needs_two_halves() -> None:
    """An odd last dimension is an error."""
    with pytest.raises(InvalidArgument, match="even last dimension"):
        run_op("BiasSplitGelu", X[:, :5], BIAS[:5], domain="com.microsoft")


def test_GatedAdd_rounds_the_product_first() -> None:
    """As separate Mul and Add would, in half types."""
    x, y, gate = (np.array([[v]], np.float16) for v in (2048.0, 1.001, 1.001))
    result = run_op("GatedAdd", x, y, gate, domain="com.microsoft")
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, x + y * gate)


def test_GatedAdd_needs_one_gate_per_row() -> None:
    """A gate as wide as the rows is an error."""
    with pytest.raises(InvalidArgument, match=r"\(\.\.\., 1\) for gate"):
        run_op("GatedAdd", X, X, X, domain="com.microsoft")


@pytest.mark.parametrize(("inputs", "attributes"), [((np.float32(0.5),), {}), ((), {"alpha": 0.5})])
def test_ScaledSiLU_scales_first(inputs: tuple[Any, ...], attributes: dict[str, float]) -> None:
    """The scale is an input, or else alpha."""
    y = run_op("ScaledSiLU", X, *inputs, domain="com.microsoft", **attributes)
    z = X.astype(np.float64) / 2
    np.testing.assert_allclose(y, z / (1 + np.exp(-z)), rtol=1e-5, atol=1e-6)


def test_LinearAttentionGate_makes_decay_and_beta() -> None:
    """Beta only where its projection is given."""
    a, scale = X[None], -np.abs(BIAS)
    decay, beta = run_op("LinearAttentionGate", a, BIAS, scale, a, domain="com.microsoft", outputs=2)
    np.testing.assert_allclose(decay, scale * np.log1p(np.exp(a.astype(np.float64) + BIAS)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(beta, 1 / (1 + np.exp(-a.astype(np.float64))), rtol=1e-5)
    assert run_op("LinearAttentionGate", a, BIAS, scale, domain="com.microsoft", outputs=2)[1] is None
