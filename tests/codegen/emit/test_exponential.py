"""The forms of the exponential against float64, on every level; what is made of them is tested with `mathlib`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit import exponential
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

FORMS: dict[str, tuple[Callable[..., Array], float]] = {
    "exp_below_zero": (np.exp, 1.2),
}
"""Form -> what it is in float64, and the bound of its error in ulp."""


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    module = Module(target)
    for name in (*FORMS, "exp_of_sigmoid", "half_expm1_of_double"):
        with module.kernel(name) as b:
            x, y = b.buffer(0, F32), b.buffer(1, F32)
            for i, span in b.vectors(b.begin, b.end, F32):
                y.store(getattr(exponential, name)(b, x.load(i, span)), i, span)
    made = Engine(target)
    made.add(module)
    return made


def apply(engine: Engine, name: str, x: Array) -> Array:
    y = np.empty_like(x)
    call(engine, name, [x, y], [], 0, x.size)
    return y


@pytest.mark.parametrize("name", list(FORMS))
def test_errors_of_numbers_below_zero(engine: Engine, name: str) -> None:
    """Within the bound wherever the result is normal; of the least normal number's unit below that, where it is not cut off."""
    exact, bound = FORMS[name]
    rng = np.random.default_rng(0)
    x = -np.concatenate([rng.uniform(0, 110, 40_000), rng.uniform(0, 1, 20_000), 10.0 ** rng.uniform(-40, 2, 20_000)])
    x = x.astype(np.float32)
    x = x[x > -87.3]
    wanted = exact(x.astype(np.float64))
    unit = np.spacing(np.maximum(np.abs(wanted.astype(np.float32)), np.float32(2.0**-126))).astype(np.float64)
    assert (np.abs(apply(engine, name, x) - wanted) / unit).max() <= bound


@pytest.mark.parametrize("name", list(FORMS))
def test_special_values(engine: Engine, name: str) -> None:
    """The ends of the range, and NaN."""
    x = np.array([0.0, -0.0, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(apply(engine, name, x), np.array([1.0, 1.0, 0.0, np.nan], np.float32))


def test_errors_of_the_exponential_of_a_sigmoid(engine: Engine) -> None:
    """Within its range; it is the unit times e^x, and stays at the ends of the range beyond them."""
    x = np.random.default_rng(0).uniform(-20, 104, 80_000).astype(np.float32)
    wanted = np.exp(x.astype(np.float64)) * exponential.SIGMOID_UNIT
    unit = np.spacing(wanted.astype(np.float32)).astype(np.float64)
    assert (np.abs(apply(engine, "exp_of_sigmoid", x) - wanted) / unit).max() <= 1.2
    beyond = np.array([-np.inf, -1e9, -20, 104, 1e9, np.inf, np.nan], np.float32)
    least, _, again, greatest, _, greatest_again, nan = apply(engine, "exp_of_sigmoid", beyond)
    assert (least, greatest) == (again, greatest_again)
    assert np.isfinite(greatest)
    assert np.isnan(nan)


def test_errors_of_half_the_exponential_of_the_double_less_1(engine: Engine) -> None:
    """Within the bound up to where it no longer grows, from the least numbers on."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 10, 40_000), rng.uniform(0, 1, 20_000), 10.0 ** rng.uniform(-37, 1, 20_000)])
    x = x.astype(np.float32)
    wanted = np.expm1(2 * x.astype(np.float64)) / 2
    unit = np.spacing(wanted.astype(np.float32)).astype(np.float64)
    weight = 1 / (wanted + 1)  # what of the error is left in the hyperbolic tangent
    assert (np.abs(apply(engine, "half_expm1_of_double", x) - wanted) / unit * weight).max() <= 1.7


def test_special_values_of_half_the_exponential_of_the_double_less_1(engine: Engine) -> None:
    """Zeros, the end of the range and what is beyond it, and NaN."""
    found = apply(engine, "half_expm1_of_double", np.array([0.0, -0.0, 10.0, np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(found, np.array([0.0, 0.0, found[2], found[2], np.nan], np.float32))
