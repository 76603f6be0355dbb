"""Folds along rows and columns: order, special values, extra operands."""

import itertools

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.folds import MAX, MIN, SUM, Fold
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.lines import FIRST_FREE, TASK_ELEMENTS, Along, ExtraOperand, LineParams, Operands, strips, write_lines
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_FOLDS = {"sum": SUM, "max": MAX, "min": MIN}
_BESIDES = [ExtraOperand(F32, True, (False, True)), ExtraOperand(F32, False, (True, False))]


def _write_fold(module: Module, symbol: str, along: Along, fold: Fold) -> None:
    with module.kernel(symbol) as b:
        x, y = b.buffer(0, F32), b.buffer(1, F32)
        for strip in strips(b, along):
            strip.put(y, strip.fold(fold, lambda place: x.load(place.offset, place.span)))


def _write_beside(module: Module, symbol: str, along: Along) -> None:
    """Write y = 2 x + p - q, where p goes along lines, and q does not."""
    with module.kernel(symbol) as b:
        x, y = b.buffer(0, F32), b.buffer(1, F32)
        operands = Operands(b, _BESIDES, first_buffer=2, first_param=FIRST_FREE)
        expr = argument(0, F32) + argument(1, F32) - argument(2, F32)
        for strip in strips(b, along):
            write_lines(strip, y, expr, operands, lambda place: x.load(place.offset, place.span) * 2)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Folds and maps both ways."""
    module = Module(target)
    for along, (name, fold) in itertools.product(Along, _FOLDS.items()):
        _write_fold(module, f"{name}_{along.value}", along, fold)
    for along in Along:
        _write_beside(module, f"beside_{along.value}", along)
    engine = Engine(target)
    engine.add(module)
    return engine


def _fold(engine: Engine, name: str, along: Along, x: Array) -> Array:
    outer, lines, length = x.shape
    params = LineParams(outer, lines, length, along)
    y = np.full((outer,) if along is Along.ROWS else (outer, length), 99, np.float32)
    for task in reversed(range(params.tasks())):
        call(engine, f"{name}_{along.value}", [x, y], params.words(), task, task + 1)
    return y


_AXES: dict[Along, tuple[int, ...]] = {Along.ROWS: (1, 2), Along.COLUMNS: (1,)}
_SHAPES = [(1, 1, 1), (5, 1, 7), (4, 1, 16), (9, 1, 17), (3, 2, 33), (2, 300, 5), (1, 1, 9001), (2, 67, 131), (0, 3, 4), (3, 0, 4)]


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("along", Along)
def test_sum_is_that_of_float64(engine: Engine, along: Along, shape: tuple[int, ...]) -> None:
    """On sizes around vectors, pairs of them, strips and blocks."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    exact = x.astype(np.float64).sum(axis=_AXES[along])
    np.testing.assert_allclose(_fold(engine, "sum", along, x), exact, rtol=0, atol=3e-7 * np.sqrt(max(x.size, 1)) + 1e-6)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("along", Along)
def test_extremes_are_exact(engine: Engine, along: Along, name: str) -> None:
    """The greatest and the least are elements; of nothing they are infinite."""
    x = np.random.default_rng(1).standard_normal((3, 5, 37)).astype(np.float32)
    np.testing.assert_array_equal(_fold(engine, name, along, x), getattr(np, name)(x, axis=_AXES[along]))
    nothing = _fold(engine, name, along, np.empty((2, 0, 3), np.float32))
    assert (nothing == (-np.inf if name == "max" else np.inf)).all()


@pytest.mark.parametrize("place", [0, 15, 16, 31, 36])
@pytest.mark.parametrize("along", Along)
def test_nan_is_never_lost(engine: Engine, along: Along, place: int) -> None:
    """Wherever it stands, whatever comes after."""
    x = np.ones((2, 37, 37), np.float32)
    x[1, place, place] = np.nan
    expected = np.max(x, axis=_AXES[along])
    for name in ("max", "min"):
        np.testing.assert_array_equal(_fold(engine, name, along, x), expected)


def test_a_row_alone_gives_the_bits_that_it_has_in_a_batch(engine: Engine) -> None:
    """Rows are folded several at a time or one by one in the same order."""
    for length in (5, 16, 49, 197, 1024):
        x = np.random.default_rng(length).standard_normal((7, 1, length)).astype(np.float32)
        batch = _fold(engine, "sum", Along.ROWS, x)
        alone = [_fold(engine, "sum", Along.ROWS, np.ascontiguousarray(row[None])) for row in x]
        assert batch.tobytes() == np.concatenate(alone).tobytes()


def test_long_sums_keep_their_accuracy(engine: Engine) -> None:
    """Ones and tenths add up to within a few units in the last place, not one for each element."""
    x = np.full((1, 1, 3_000_000), 0.1, np.float32)
    exact = x.astype(np.float64).sum()
    assert abs(_fold(engine, "sum", Along.ROWS, x)[0] / exact - 1) < 1e-5
    assert abs(_fold(engine, "sum", Along.COLUMNS, x.reshape(1, 100_000, 30))[0, 7] / (exact / 30) - 1) < 1e-5


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 16), (2, 5, 67), (1, 1, 1)])
@pytest.mark.parametrize("along", Along)
def test_tensors_beside_are_broadcast(engine: Engine, along: Along, shape: tuple[int, int, int]) -> None:
    """One goes along every line and from line to line, the other is a number for each outer index."""
    outer, lines, length = shape
    generator = np.random.default_rng(2)
    x, p, q = (generator.standard_normal(size).astype(np.float32) for size in (shape, (lines, length), (outer, 1, 1)))
    y = np.zeros(shape, np.float32)
    params = LineParams(outer, lines, length, along)
    walk = [outer, 0, 1, lines, length, 0]
    call(engine, f"beside_{along.value}", [x, y, p, q], [*params.words(), *walk], 0, params.tasks())
    np.testing.assert_allclose(y, 2 * x + p - q, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1000, 1, 3), (3, 1, 100_000), (2, 500, 10), (1, 3, 5000), (0, 2, 2), (2, 0, 2)])
@pytest.mark.parametrize("along", Along)
def test_tasks_cover_everything_once(along: Along, shape: tuple[int, int, int]) -> None:
    """The blocks of rows, or of columns of each outer index, and none is much larger than one task should be."""
    params = LineParams(*shape, along)
    whole = params.outer if along is Along.ROWS else params.length
    assert params.tasks() == -(-whole // params.block) * (1 if along is Along.ROWS else params.outer)
    unit = params.lines * params.length if along is Along.ROWS else params.lines
    assert params.block == 1 or params.block * unit <= TASK_ELEMENTS or (along is Along.COLUMNS and params.block == 64)
