"""Softmax kernels: accuracy, special values, expressions around them."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import OPERATORS, argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.lines import Along, ExtraOperand, LineParams
from sardonyx.codegen.kernels.softmax import exp_of_difference, write_softmax
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_X = argument(0, F32)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Plain softmax both ways, one with a root and a sum after, and the exponential by itself."""
    module = Module(target)
    for along in Along:
        write_softmax(module, f"softmax_{along.value}", along, "softmax", after=_X, extra_operands=[])
        write_softmax(module, f"log_softmax_{along.value}", along, "log_softmax", after=_X, extra_operands=[])
        after = OPERATORS["sqrt"](_X) + argument(1, F32)
        write_softmax(
            module, f"after_{along.value}", along, "softmax", after=after, extra_operands=[ExtraOperand(F32, True, (True,))]
        )
    with module.kernel("exp") as b:
        x, y = b.buffer(0, F32), b.buffer(1, F32)
        for i, span in b.vectors(b.begin, b.end, F32):
            y.store(exp_of_difference(b, x.load(i, span), b.const(F32, 0)), i, span)
    engine = Engine(target)
    engine.add(module)
    return engine


def _softmax(engine: Engine, name: str, along: Along, x: Array, *extra_operands: Array) -> Array:
    params = LineParams(x.shape[0], x.shape[1], x.shape[2], along)
    y = np.full_like(x, 99)
    walk = [x.shape[0] * x.shape[1], x.shape[2]] if extra_operands else []
    call(engine, f"{name}_{along.value}", [x, y, *extra_operands], [*params.words(), *walk], 0, params.tasks())
    return y


def _exact(x: Array, axis: int) -> Array:
    """In float64, but for the difference: its rounding is part of softmax in float32."""
    e = np.exp((x - x.max(axis=axis, keepdims=True)).astype(np.float64))
    return np.asarray(e / e.sum(axis=axis, keepdims=True))


_SHAPES = [(1, 1, 1), (5, 1, 3), (6, 1, 16), (3, 1, 17), (2, 1, 1500), (9, 1, 67), (2, 5, 3), (1, 16, 130), (3, 300, 64)]


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("along", Along)
def test_softmax_is_that_of_float64(engine: Engine, along: Along, shape: tuple[int, int, int]) -> None:
    """And its logarithm."""
    if along is Along.ROWS:
        shape = (shape[0] * shape[1], 1, shape[2])
    x = (np.random.default_rng(0).standard_normal(shape) * 3).astype(np.float32)
    exact = _exact(x, 2 if along is Along.ROWS else 1)
    np.testing.assert_allclose(_softmax(engine, "softmax", along, x), exact, rtol=6e-7)
    np.testing.assert_allclose(_softmax(engine, "log_softmax", along, x), np.log(exact), rtol=3e-7, atol=5e-7)


@pytest.mark.parametrize("along", Along)
def test_an_expression_after(engine: Engine, along: Along) -> None:
    """A root of what is written, and an extra operand."""
    shape = (6, 1, 19) if along is Along.ROWS else (2, 3, 19)
    generator = np.random.default_rng(1)
    x, more = generator.standard_normal(shape).astype(np.float32), generator.standard_normal(shape).astype(np.float32)
    expected = np.sqrt(_exact(x, 2 if along is Along.ROWS else 1)) + more
    np.testing.assert_allclose(_softmax(engine, "after", along, x, more), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("along", Along)
def test_special_values(engine: Engine, along: Along) -> None:
    """What is masked out is exactly 0; NaN and infinity, and a row of nothing but -inf, make the whole row NaN."""
    inf, nan = np.inf, np.nan
    rows = np.array(
        [[0, -inf, 0, -inf], [nan, 1, 2, 300], [5, 300, nan, 3], [1, inf, 2, 3], [-inf] * 4, [3e38, -3e38, 3e38, 0]], np.float32
    )
    wanted = np.array([[0.5, 0, 0.5, 0], *[[nan] * 4] * 4, [0.5, 0, 0.5, 0]], np.float32)
    x = rows[:, None, :] if along is Along.ROWS else np.ascontiguousarray(rows.T[None])
    found = _softmax(engine, "softmax", along, x)
    np.testing.assert_array_equal(found[:, 0, :] if along is Along.ROWS else found[0].T, wanted)


@pytest.mark.parametrize("along", Along)
def test_in_place(engine: Engine, along: Along) -> None:
    """The result may take the place of the input."""
    x = np.random.default_rng(2).standard_normal((6, 1, 40) if along is Along.ROWS else (2, 3, 40)).astype(np.float32)
    expected = _softmax(engine, "softmax", along, x)
    params = LineParams(x.shape[0], x.shape[1], x.shape[2], along)
    call(engine, f"softmax_{along.value}", [x, x], params.words(), 0, params.tasks())
    assert x.tobytes() == expected.tobytes()


def test_exponential_of_a_difference(engine: Engine) -> None:
    """1.2 units in the last place down to the least normal number, then 0."""
    x = np.linspace(-104.0, 0.0, 200_003).astype(np.float32)
    y = np.empty_like(x)
    call(engine, "exp", [x, y], [], 0, x.size)
    exact = np.exp(x.astype(np.float64))
    normal = exact >= 2.0**-126
    ulp = np.spacing(exact[normal].astype(np.float32)).astype(np.float64)
    assert (np.abs(y[normal] - exact[normal]) / ulp).max() < 1.2
    assert y[~normal].max() < 2.0**-125
    assert (y[exact < 2.0**-127] == 0).all()
    for value, expected in ((-np.inf, 0.0), (np.nan, np.nan), (0.0, 1.0), (-200.0, 0.0)):
        x[:] = value
        call(engine, "exp", [x, y], [], 0, x.size)
        np.testing.assert_array_equal(y, np.float32(expected))
