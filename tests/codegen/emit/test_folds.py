"""Folding by blocks, and code side by side."""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.folds import MAX, MIN, PRODUCT, SUM, Folding, across, in_turns
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I16, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, host_target


def _elements_of(x: Pointer) -> Callable[[Register], list[Register]]:
    return lambda i: [x.load(i)]


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Sums of scalars, of each depth and number of chains."""
    module = Module(target)
    for depth in (1, 2):
        for chains in (1, 2):
            with module.kernel(f"sum_{depth}_{chains}") as b:
                x, y = b.buffer(0, F32), b.buffer(1, F32)
                folding = Folding(b, SUM, F32, 1, 1, chains)
                totals = folding.totals()
                folding.take_range(totals, b.begin, b.end, _elements_of(x), depth)
                y.store(totals[0].value)
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize("count", [0, 2, 30, 32, 34, 64, 66, 2048, 2050, 5000])
def test_every_term_is_taken_once(engine: Engine, count: int) -> None:
    """Whole numbers add up exactly, around the sizes of blocks."""
    x, y = np.arange(count, dtype=np.float32), np.zeros(1, np.float32)
    for depth in (1, 2):
        for chains in (1, 2):
            call(engine, f"sum_{depth}_{chains}", [x, y], [], 0, count)
            assert y[0] == x.sum()


def test_depth_keeps_errors_small(engine: Engine) -> None:
    """A million tenths: blocks of blocks err less than blocks, and both less than a chain."""
    x, y = np.full(1 << 20, 0.1, np.float32), np.zeros(1, np.float32)
    exact = x.astype(np.float64).sum()
    errors = []
    for depth in (1, 2):
        call(engine, f"sum_{depth}_1", [x, y], [], 0, x.size)
        errors.append(abs(y[0] / exact - 1))
    assert errors[1] < errors[0] < abs(np.cumsum(x)[-1] / exact - 1)
    assert errors[1] < 2e-5


def test_neutral_elements() -> None:
    """Of numbers and of signed integers."""
    assert [fold.neutral(F32) for fold in (SUM, PRODUCT, MAX, MIN)] == [0, 1, -math.inf, math.inf]
    assert [fold.neutral(I32) for fold in (MAX, MIN)] == [-(2**31), 2**31 - 1]
    assert [fold.neutral(I64) for fold in (MAX, MIN)] == [-(2**63), 2**63 - 1]


def test_code_in_turns_is_interleaved() -> None:
    """The first instructions of all writers come first, then the second ones."""
    module = Module(host_target())
    with module.kernel("k") as b:
        x = b.param(0)
        before = len(b.lines)
        in_turns(b, [functools.partial(lambda number: x * number + 1, number) for number in (3, 5)])
        assert _operations(b.lines[before:]) == ["mul", "mul", "add", "add"]


def test_code_with_branches_stays_in_order() -> None:
    """Where a writer makes a block, the next one's code begins after it."""
    module = Module(host_target())
    with module.kernel("k") as b:
        found = b.variable(b.const(I32, 0))

        def write(number: int) -> Register:
            with b.when(b.param(0) > number):
                found.set(number)
            return found.value

        in_turns(b, [functools.partial(write, number) for number in (1, 2)])
    Engine(module.target).add(module)


def _operations(lines: Sequence[str]) -> list[str]:
    return [line.split()[2] for line in lines]


@pytest.mark.parametrize("kind", [F32, I64, I16])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_several_vectors_are_folded_across_in_the_order_of_one(target: Target, kind: Type, count: int) -> None:
    """The same bits, for any number of them, also where lanes are too narrow to be brought together."""
    module, lanes = Module(target), target.lanes(kind.bits)
    with module.kernel("across") as b:
        x, y = b.buffer(0, kind), b.buffer(1, kind)
        vectors = [x.load(number * lanes, lanes) for number in range(count)]
        alone = [b.reduce(vector, lambda low, high: SUM.combine(b, low, high)) for vector in vectors]
        for number, value in enumerate([*across(b, SUM, vectors), *alone]):
            y.store(value, number)
    engine = Engine(target)
    engine.add(module)
    drawn = np.random.default_rng(count).standard_normal(count * lanes) * 1000
    data, found = (array.astype({32: np.float32, 64: np.int64, 16: np.int16}[kind.bits]) for array in (drawn, np.zeros(2 * count)))
    call(engine, "across", [data, found], [], 0, 1)
    np.testing.assert_array_equal(found[:count], found[count:])
    np.testing.assert_allclose(found[:count], data.reshape(count, lanes).sum(1), rtol=1e-4)


@pytest.mark.parametrize("kind", [F32, F64])
def test_the_greatest_and_the_least_keep_nan_wherever_it_is(target: Target, kind: Type) -> None:
    """On either side of each number; of zeros of both signs it is -0, in either order."""
    engine, module = Engine(target), Module(target)
    for name, fold in (("max", MAX), ("min", MIN)):
        with module.kernel(name) as b:
            x, y, found = (b.buffer(place, kind) for place in range(3))
            for i, span in b.vectors(0, b.param(0), kind):
                found.store(fold.combine(b, x.load(i, span), y.load(i, span)), i, span)
    engine.add(module)
    numbers = np.array([np.nan, -np.nan, 0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e-300, 3e38], "f4" if kind == F32 else "f8")
    x, y = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(numbers, numbers))
    for name, function in (("max", np.maximum), ("min", np.minimum)):
        found = np.empty_like(x)
        call(engine, name, [x, y, found], [x.size])
        np.testing.assert_array_equal(found, function(x, y))
        assert np.signbit(found[(x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))]).all()
