"""Elementary functions against float64, on dense sweeps and at special values, on every level."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_INF, _NAN = math.inf, math.nan
_LEAST_NORMAL = np.float32(2.0**-126)
_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, e, 1) / (1 + e))


_REFERENCES: dict[str, tuple[Callable[[Array], Array], float]] = {
    "acos": (np.arccos, 1.1),
    "acosh": (np.arccosh, 2.3),
    "asin": (np.arcsin, 2.3),
    "asinh": (np.arcsinh, 2),
    "atan": (np.arctan, 1.5),
    "atanh": (np.arctanh, 2),
    "cos": (np.cos, 1.6),
    "cosh": (np.cosh, 2),
    "erf": (_erf, 1.5),
    "exp": (np.exp, 1.1),
    "expm1": (np.expm1, 1.7),
    "log": (np.log, 1),
    "log1p": (np.log1p, 1),
    "sigmoid": (_sigmoid, 2.1),
    "sin": (np.sin, 1.6),
    "sinh": (np.sinh, 2),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), 2),
    "tan": (np.tan, 3.4),
    "tanh": (np.tanh, 2.5),
}
"""What each function is in float64, and the bound of its error in ulp."""


def _write(module: Module, symbol: str, name: str, kind: Type) -> None:
    with module.kernel(symbol) as b:
        x, y = b.buffer(0, kind), b.buffer(1, kind)
        for i, span in b.vectors(b.begin, b.end, kind):
            y.store(mathlib.FUNCTIONS[name](b, x.load(i, span)), i, span)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """All functions, of float32 as `k_<name>`, of float64 as `d_<name>`, and power."""
    module = Module(target)
    for name in mathlib.FUNCTIONS:
        _write(module, f"k_{name}", name, F32)
        _write(module, f"d_{name}", name, F64)
    for symbol, kind in (("k_power", F32), ("d_power", F64)):
        with module.kernel(symbol) as b:
            x, y, z = b.buffer(0, kind), b.buffer(1, kind), b.buffer(2, kind)
            for i, span in b.vectors(b.begin, b.end, kind):
                z.store(mathlib.power(b, x.load(i, span), y.load(i, span)), i, span)
    engine = Engine(target)
    engine.add(module)
    return engine


def _apply(engine: Engine, name: str, *arguments: Array) -> Array:
    result = np.empty_like(arguments[0])
    prefix = "k" if result.dtype == np.float32 else "d"
    call(engine, f"{prefix}_{name}", [*arguments, result], [], 0, result.size)
    return result


def _sweep() -> Array:
    """Numbers near 0, near 1, of everyday size, and of every exponent."""
    rng = np.random.default_rng(0)
    parts = [
        rng.standard_normal(20_000) * 3,
        rng.uniform(-1, 1, 20_000),
        rng.uniform(-105, 105, 20_000),
        10.0 ** rng.uniform(-44, 38, 20_000) * rng.choice([-1, 1], 20_000),
        1 + rng.standard_normal(5_000) * 1e-3,
    ]
    return np.concatenate(parts).astype(np.float32)


_SWEEP = _sweep()


def _error_ulp(result: Array, exact: Array) -> Array:
    """The distance to the exact value in units of the last place of a float32, those of the least normal number below it."""
    rounded = exact.astype(np.float32)
    unit = np.spacing(np.maximum(np.abs(rounded), _LEAST_NORMAL)).astype(np.float64)
    same = (np.isnan(result) & np.isnan(exact)) | (result == rounded)
    error = np.where(same, 0, np.abs(result.astype(np.float64) - exact) / unit)
    return np.where(np.isnan(error), _INF, error)


@pytest.mark.parametrize("name", list(_REFERENCES))
def test_errors_stay_within_the_stated_bound(engine: Engine, name: str) -> None:
    """On a dense sweep, inside and outside the domain, no result is further from float64 than the docstring says."""
    reference, bound = _REFERENCES[name]
    with np.errstate(all="ignore"):
        error = _error_ulp(_apply(engine, name, _SWEEP), reference(_SWEEP.astype(np.float64)))
    worst = int(error.argmax())
    assert error[worst] <= bound, f"{name}({_SWEEP[worst]!r}) is off by {error[worst]:.2f} ulp"


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
def test_gelu_is_exact_where_it_matters(engine: Engine, name: str) -> None:
    """A few ulp above -1; below, where the result vanishes, a tiny part of x."""
    x = _SWEEP[np.abs(_SWEEP) < 1e12].astype(np.float64)
    cube = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    exact = x * _sigmoid(2 * cube) if name == "gelu_tanh" else x * 0.5 * (1 + _erf(x / np.sqrt(2)))
    result = _apply(engine, name, x.astype(np.float32))
    error = np.abs(result - exact)
    assert (error <= 2.0**-24 * np.abs(x) + 4 * np.spacing(np.abs(exact).astype(np.float32))).all()


_SPECIAL: list[tuple[str, float, float]] = [
    *[(name, _NAN, _NAN) for name in mathlib.FUNCTIONS],
    *[(name, -0.0, -0.0) for name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "expm1", "log1p")],
    *[(name, _INF, _NAN) for name in ("sin", "cos", "tan", "asin", "acos", "atanh")],
    *[(name, _INF, 1.0) for name in ("tanh", "erf", "sigmoid")],
    *[(name, -_INF, -1.0) for name in ("tanh", "erf", "expm1")],
    *[(name, -_INF, 0.0) for name in ("exp", "sigmoid", "softplus")],
    *[(name, _INF, _INF) for name in ("exp", "expm1", "log", "log1p", "softplus", "sinh", "cosh", "asinh", "acosh", "gelu")],
    ("exp", 88.72, float(np.float32(np.exp(np.float64(np.float32(88.72)))))),
    ("exp", 88.73, _INF),
    ("exp", -103.9, 1e-45),
    ("exp", -104.0, 0.0),
    ("log", 0.0, -_INF),
    ("log", -0.0, -_INF),
    ("log", -1.0, _NAN),
    ("log", 1e-45, -103.27893),
    ("log1p", -1.0, -_INF),
    ("log1p", -2.0, _NAN),
    ("log1p", 1e-45, 1e-45),
    ("acosh", 0.5, _NAN),
    ("acosh", -1e10, _NAN),
    ("atanh", 1.0, _INF),
    ("atanh", -1.0, -_INF),
    ("acos", 1.0, 0.0),
    ("cosh", -_INF, _INF),
    ("sin", 1e10, float(np.float32(np.sin(1e10)))),
]


@pytest.mark.parametrize(("name", "x", "expected"), _SPECIAL)
def test_special_values(engine: Engine, name: str, x: float, expected: float) -> None:
    """Infinities, NaN, -0, denormals and the edges of overflow give what the docstring says, sign of zero included."""
    result = _apply(engine, name, np.full(3, x, np.float32))
    np.testing.assert_array_equal(result, np.full(3, expected, np.float32))
    assert (np.signbit(result) == np.signbit(np.float32(expected))).all() or math.isnan(expected)


@pytest.mark.parametrize("name", list(_REFERENCES))
def test_float64_is_accurate_too(engine: Engine, name: str) -> None:
    """Double precision agrees with NumPy to a few ulp, NaN and infinities included."""
    x = np.concatenate([_SWEEP[::50].astype(np.float64) * 1.1, [0.0, -0.0, _INF, -_INF, _NAN, 5e-324]])
    with np.errstate(all="ignore"):
        expected = _REFERENCES[name][0](x)
    np.testing.assert_allclose(_apply(engine, name, x), expected, rtol=4e-15, atol=1e-320)


def test_power_follows_c(engine: Engine) -> None:
    """Every pair of special bases and exponents gives what C's pow says, and so does double precision."""
    numbers = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, _INF, -_INF, _NAN, 1e-40, 16777217.0]
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        x, y = (grid.ravel().astype(dtype) for grid in np.meshgrid(numbers, numbers))
        with np.errstate(all="ignore"):
            expected: Array = np.power(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
        result = _apply(engine, "power", x, y)
        np.testing.assert_allclose(result, expected, rtol=1e-7)
        numeric = ~np.isnan(expected)
        assert (np.signbit(result) == np.signbit(expected))[numeric].all()


def test_power_is_rounded_once(engine: Engine) -> None:
    """Over the whole range of results the error is at most 1 ulp."""
    rng = np.random.default_rng(1)
    x = (10.0 ** rng.uniform(-30, 30, 50_000)).astype(np.float32)
    y = (rng.uniform(-40, 40, 50_000) / np.maximum(np.abs(np.log10(x.astype(np.float64))), 1)).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        error = _error_ulp(_apply(engine, "power", x, y), exact)
    assert error.max() <= 1


def test_tails_give_the_bits_of_whole_vectors(engine: Engine) -> None:
    """An element's value does not depend on its place in the array."""
    x = _SWEEP[:40]
    for name in mathlib.FUNCTIONS:
        alone = np.concatenate([_apply(engine, name, x[i : i + 1].copy()) for i in range(40)])
        np.testing.assert_array_equal(alone, _apply(engine, name, x), err_msg=name)
