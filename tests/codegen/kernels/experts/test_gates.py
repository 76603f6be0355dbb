"""What stands between the two products of an expert."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.experts.gates import ACTIVATIONS, SWIGLU, write_gates
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)
_BY_HAND = {
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Each activation, with and without a factor beside it and biases."""
    engine, module = Engine(target), Module(target)
    for name in (*ACTIVATIONS, SWIGLU):
        for is_gated in (False, True) if name != SWIGLU else (True,):
            for has_bias in (False, True):
                write_gates(module, _symbol(name, is_gated, has_bias), name, is_gated=is_gated, has_bias=has_bias)
    engine.add(module)
    return engine


def _symbol(name: str, is_gated: bool, has_bias: bool) -> str:
    return f"{name}{int(is_gated)}{int(has_bias)}"


def _made(engine: Engine, symbol: str, hidden: Array, biases: Array, inner: int, *numbers: float) -> Array:
    owners, y = np.array([1, 0, 1], np.int32), np.full((3, inner), 7, np.float32)
    call(engine, symbol, [hidden, owners, y, biases], [inner, *numbers], 0, 3)
    return y


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("is_gated", [False, True])
@pytest.mark.parametrize("inner", [1, 8, 17, 35])
@pytest.mark.parametrize("name", _BY_HAND)
def test_activations(engine: Engine, name: str, inner: int, is_gated: bool, has_bias: bool) -> None:
    """The bias of the row's expert comes first, the factor last."""
    across = 2 * inner if is_gated else inner
    hidden, biases = (_RNG.standard_normal((count, across)).astype(np.float32) for count in (3, 2))
    added = hidden.astype(np.float64) + (biases[[1, 0, 1]] if has_bias else 0)
    exact = _BY_HAND[name](added[:, :inner]) * (added[:, inner:] if is_gated else 1)
    found = _made(engine, _symbol(name, is_gated, has_bias), hidden, biases, inner)
    np.testing.assert_allclose(found, exact, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("limit", [1.0, np.inf])
@pytest.mark.parametrize("inner", [1, 8, 17, 35])
def test_swiglu(engine: Engine, inner: int, limit: float) -> None:
    """Both halves are clamped after the biases."""
    hidden, biases = (_RNG.standard_normal((count, 2 * inner)).astype(np.float32) for count in (3, 2))
    added = hidden.astype(np.float64) + biases[[1, 0, 1]]
    gate, linear = np.minimum(added[:, :inner], limit), np.clip(added[:, inner:], -limit, limit)
    exact = gate / (1 + np.exp(-1.5 * gate)) * (linear + 0.5)
    found = _made(engine, "swiglu11", hidden, biases, inner, 1.5, 0.5, limit)
    np.testing.assert_allclose(found, exact, rtol=2e-5, atol=1e-6)


def test_nan_stays(engine: Engine) -> None:
    """In a plain activation and where SwiGLU clamps."""
    hidden = np.full((3, 4), np.nan, np.float32)
    assert np.isnan(_made(engine, "relu00", hidden, hidden, 4)).all()
    assert np.isnan(_made(engine, "swiglu10", hidden, hidden, 2, 1.0, 0.0, 1.0)).all()
