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
