"""Reductions, positions of extremes, running sums: on every type that they are defined for."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.folds import SUM
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64, Type
from sardonyx.codegen.kernels.lines import Along, LineParams
from sardonyx.codegen.kernels.reduce import (
    CUMULATIVE_BLOCK,
    REDUCTIONS,
    CumulativeParams,
    write_cumulative,
    write_cumulative_rows,
    write_cumulative_totals,
    write_extreme,
    write_reduce,
)
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_KINDS: Mapping[str, tuple[Type, type]] = {"f32": (F32, np.float32), "i32": (I32, np.int32), "i64": (I64, np.int64)}
_NAMES: Mapping[str, Sequence[str]] = {
    "f32": sorted(REDUCTIONS),
    "i32": ("max", "sum"),
    "i64": ("max", "min", "norm_1", "prod", "sum", "sum_square"),
}
_AXES: dict[Along, tuple[int, ...]] = {Along.ROWS: (1, 2), Along.COLUMNS: (1,)}


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """All kernels, each in a module of its own, as a session compiles them."""
    modules = []
    for along in Along:
        for key, (kind, _) in _KINDS.items():
            for name in _NAMES[key]:
                modules.append(Module(target))
                write_reduce(modules[-1], f"{name}_{key}_{along.value}", along, name, kind, argument(0, kind))
        for last in (False, True):
            modules.append(Module(target))
            write_extreme(modules[-1], f"arg_max_{last}_{along.value}", along, F32, greatest=True, last=last)
            write_extreme(modules[-1], f"arg_min_{last}_{along.value}", along, I64, greatest=False, last=last)
    for key, (kind, _) in _KINDS.items():
        modules.append(Module(target))
        write_cumulative(modules[-1], f"sum_{key}", SUM, kind, exclusive=False, reverse=False)
        write_cumulative(modules[-1], f"back_{key}", SUM, kind, exclusive=True, reverse=True)
        for name, way in {"sum": False, "back": True}.items():
            write_cumulative_totals(modules[-1], f"{name}_totals_{key}", SUM, kind, reverse=way)
            write_cumulative_rows(modules[-1], f"{name}_rows_{key}", SUM, kind, exclusive=way, reverse=way)
    engine = Engine(target)
    engine.add(*modules)
    return engine


def _reduce(engine: Engine, symbol: str, along: Along, x: Array, out: type) -> Array:
    params = LineParams(x.shape[0], x.shape[1], x.shape[2], along)
    y = np.full(x.shape[:1] if along is Along.ROWS else (x.shape[0], x.shape[2]), 99, out)
    count = float(x.shape[1] * x.shape[2] if along is Along.ROWS else x.shape[1])
    call(engine, f"{symbol}_{along.value}", [x, y], [*params.words(), count], 0, params.tasks())
    return y


_EXACT: dict[str, Callable[[Array, tuple[int, ...]], Array]] = {
    "log_sum": lambda x, axes: np.log(x.sum(axes)),
    "log_sum_exp": lambda x, axes: np.log(np.exp(x).sum(axes)),
    "max": lambda x, axes: x.max(axes),
    "mean": lambda x, axes: x.mean(axes),
    "min": lambda x, axes: x.min(axes),
    "norm_1": lambda x, axes: np.abs(x).sum(axes),
    "norm_2": lambda x, axes: np.sqrt(np.square(x).sum(axes)),
    "prod": lambda x, axes: x.prod(axes),
    "root": lambda x, axes: np.sqrt(x.sum(axes)),
    "sum": lambda x, axes: x.sum(axes),
    "sum_square": lambda x, axes: np.square(x).sum(axes),
}


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 1, 17), (2, 3, 33), (3, 67, 9)])
@pytest.mark.parametrize("along", Along)
def test_float_reductions_are_those_of_float64(engine: Engine, along: Along, shape: tuple[int, int, int]) -> None:
    """Every reduction, of positive numbers around 1."""
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(np.float32)
    for name in REDUCTIONS:
        exact = _EXACT[name](x.astype(np.float64), _AXES[along])
        np.testing.assert_allclose(_reduce(engine, f"{name}_f32", along, x, np.float32), exact, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("key", ["i32", "i64"])
@pytest.mark.parametrize("along", Along)
def test_integer_reductions_are_exact(engine: Engine, along: Along, key: str) -> None:
    """Wrapping around as NumPy's do, of the least integer too."""
    dtype = _KINDS[key][1]
    x: Array = np.random.default_rng(1).integers(-5, 6, (3, 4, 35)).astype(dtype)
    x[1, 2, 3] = np.iinfo(dtype).min
    for name in _NAMES[key]:
        with np.errstate(over="ignore"):
            exact: Array = _EXACT[name](x, _AXES[along]).astype(dtype)
        np.testing.assert_array_equal(_reduce(engine, f"{name}_{key}", along, x, dtype), exact)


@pytest.mark.parametrize("name", ["sum", "log_sum_exp", "norm_2"])
@pytest.mark.parametrize("length", [15, 63, 64, 65, 80, 145, 200])
def test_a_column_gives_the_same_bits_wherever_it_is(engine: Engine, name: str, length: int) -> None:
    """In strips of many vectors, of few, and in what is left."""
    x = np.random.default_rng(2).random((2, 37, length)).astype(np.float32)
    found = _reduce(engine, f"{name}_f32", Along.COLUMNS, x, np.float32)
    for column in range(0, length, 7):
        turned = np.ascontiguousarray(np.roll(x, -column, 2)[:, :, :9])
        alone = _reduce(engine, f"{name}_f32", Along.COLUMNS, turned, np.float32)
        np.testing.assert_array_equal(found[:, column], alone[:, 0])


@pytest.mark.parametrize("along", Along)
def test_nothing_reduces_to_the_neutral_element(engine: Engine, along: Along) -> None:
    """0 for sums, 1 for products, infinities for extremes, NaN for the mean."""
    x = np.empty((2, 0, 3), np.float32)
    expected = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf, "mean": np.nan, "log_sum_exp": -np.inf}
    for name, value in expected.items():
        np.testing.assert_array_equal(_reduce(engine, f"{name}_f32", along, x, np.float32), np.float32(value))


@pytest.mark.parametrize("along", Along)
def test_log_sum_exp_of_large_and_infinite_elements(engine: Engine, along: Along) -> None:
    """Nothing overflows, -inf counts for nothing, and inf and NaN stay."""
    inf, nan = np.inf, np.nan
    rows = np.array([[1000, 1000], [-1000, -1000], [-inf, 3], [-inf, -inf], [inf, 0], [inf, -inf], [nan, 0]], np.float32)
    x = rows[:, None, :] if along is Along.ROWS else np.ascontiguousarray(rows.T[None])
    half = np.log(2)
    expected = [1000 + half, -1000 + half, 3, -inf, inf, inf, nan]
    np.testing.assert_allclose(_reduce(engine, "log_sum_exp_f32", along, x, np.float32).reshape(-1), expected, rtol=1e-6)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("along", Along)
def test_extremes_are_found_where_they_are(engine: Engine, along: Along, length: int) -> None:
    """The first or the last of equal ones."""
    x = np.random.default_rng(length).integers(0, 5, (3, 1, length) if along is Along.ROWS else (2, length, 5))
    axis = 2 if along is Along.ROWS else 1
    last = length - 1
    cases = {
        "arg_max_False": x.argmax(axis),
        "arg_max_True": last - np.flip(x, axis).argmax(axis),
        "arg_min_False": x.argmin(axis),
        "arg_min_True": last - np.flip(x, axis).argmin(axis),
    }
    for name, expected in cases.items():
        array = np.ascontiguousarray(x.astype(np.float32 if "max" in name else np.int64))
        wanted = expected[:, 0] if along is Along.ROWS else expected
        np.testing.assert_array_equal(_reduce(engine, name, along, array, np.int64), wanted)


def test_nan_is_the_extreme(engine: Engine) -> None:
    """The first NaN, or the last, whatever else there is; of nothing but -inf the first or last."""
    x = np.array([[[1, np.nan, np.inf, np.nan, 2]], [[-np.inf] * 5]], np.float32)
    assert _reduce(engine, "arg_max_False", Along.ROWS, x, np.int64).tolist() == [1, 0]
    assert _reduce(engine, "arg_max_True", Along.ROWS, x, np.int64).tolist() == [3, 4]


@pytest.mark.parametrize("key", list(_KINDS))
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 7, 1), (3, 5, 33), (1, 300, 70), (2, 0, 3), (2, 4, 1100)])
def test_running_sums(engine: Engine, key: str, shape: tuple[int, int, int]) -> None:
    """Forwards with the element itself, backwards without it, and in place."""
    dtype = _KINDS[key][1]
    x: Array = np.random.default_rng(3).integers(-9, 9, shape).astype(dtype)
    params = CumulativeParams.shared(*shape, 1)
    forwards, backwards = np.empty_like(x), x.copy()
    call(engine, f"sum_{key}", [x, forwards], params.words(), 0, params.tasks())
    call(engine, f"back_{key}", [backwards, backwards], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(forwards, x.cumsum(1, dtype=dtype))
    np.testing.assert_array_equal(backwards, np.flip(np.flip(x, 1).cumsum(1, dtype=dtype), 1) - x)


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("shape", [(1, 3, 1), (1, 1000, 5000), (3, 10, 70), (2, 0, 3), (0, 4, 4), (1, 1 << 40, 100)])
def test_blocks_of_columns(shape: tuple[int, int, int], threads: int) -> None:
    """They are as wide as the folds on the stack at most, and cover each line once."""
    params = CumulativeParams.shared(*shape, threads)
    assert 0 < params.block <= 1024
    assert params.tasks() == shape[0] * len(range(0, shape[2], params.block))


@pytest.mark.parametrize("key", list(_KINDS))
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 19])
@pytest.mark.parametrize("length", [0, 1, 33, 2 * CUMULATIVE_BLOCK + 3])
def test_running_sums_of_rows(engine: Engine, key: str, rows: int, length: int) -> None:
    """The same, in blocks where rows are long."""
    dtype = _KINDS[key][1]
    x: Array = np.random.default_rng(4).integers(-9, 9, (rows, length)).astype(dtype)
    blocks, together = max(-(-length // CUMULATIVE_BLOCK), 1), 16 if length < CUMULATIVE_BLOCK else 1
    params, tasks = [rows, length, blocks, together], -(-rows // together) * blocks
    forwards, backwards, totals = np.empty_like(x), x.copy(), np.zeros((rows, blocks), dtype)
    for name, y, given in (("sum", forwards, x), ("back", backwards, backwards)):
        call(engine, f"{name}_totals_{key}", [given, totals], params, 0, rows * blocks)
        call(engine, f"{name}_rows_{key}", [given, y, totals], params, 0, tasks)
    np.testing.assert_array_equal(forwards, x.cumsum(1, dtype=dtype))
    np.testing.assert_array_equal(backwards, np.flip(np.flip(x, 1).cumsum(1, dtype=dtype), 1) - x)


_SHORT_KINDS: dict[str, Type] = {"float32": F32, "float64": F64, "int32": I32, "int64": I64}


@pytest.fixture(scope="module")
def short_engine(target: Target) -> Engine:
    """Sums, and the first and last places of extremes."""
    module = Module(target)
    for name, kind in _SHORT_KINDS.items():
        write_reduce(module, f"sum_{name}", Along.ROWS, "sum", kind, argument(0, kind))
        write_extreme(module, f"first_{name}", Along.ROWS, kind, greatest=True, last=False)
        write_extreme(module, f"last_{name}", Along.ROWS, kind, greatest=False, last=True)
    write_reduce(module, "log_sum_exp", Along.ROWS, "log_sum_exp", F32, argument(0, F32))
    engine = Engine(target)
    engine.add(module)
    return engine


def _short(engine: Engine, symbol: str, x: Array, kind: type, *more: float) -> Array:
    """Reduce the rows of x, and see that nothing beside the results is written."""
    result = np.full(len(x) + 2, 77, kind)
    params = LineParams(*x.shape[:1], 1, x.shape[1], Along.ROWS)
    call(engine, symbol, [x, result[1:]], [*params.words(), *more], end=params.tasks())
    assert result[[0, -1]].tolist() == [77, 77]
    return result[1:-1]


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 101, 9001])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 10, 16, 17])
@pytest.mark.parametrize("name", _SHORT_KINDS)
def test_rows_of_few_elements(short_engine: Engine, name: str, length: int, rows: int) -> None:
    """Any number of rows, with elements that occur more than once."""
    x = np.random.default_rng(0).integers(-9, 9, (rows, length)).astype(name)
    np.testing.assert_array_equal(_short(short_engine, f"sum_{name}", x, x.dtype.type, float(length)), x.sum(1))
    np.testing.assert_array_equal(_short(short_engine, f"first_{name}", x, np.int64), x.argmax(1))
    np.testing.assert_array_equal(_short(short_engine, f"last_{name}", x, np.int64), length - 1 - x[:, ::-1].argmin(1))


def test_nan_and_infinities(short_engine: Engine) -> None:
    """NaN is the greatest; infinite rows have infinite logarithms of sums."""
    x = np.zeros((64, 3), np.float32)
    x[5] = [1, np.nan, np.nan]
    x[6] = [-np.inf, -np.inf, -np.inf]
    x[7] = [0, np.inf, np.inf]
    assert _short(short_engine, "first_float32", x, np.int64)[5:8].tolist() == [1, 0, 1]
    found = _short(short_engine, "log_sum_exp", x, np.float32, 3.0)
    np.testing.assert_array_equal(found[5:8], [np.nan, -np.inf, np.inf])
    np.testing.assert_allclose(found[8], np.log(3), rtol=1e-6)


@pytest.mark.parametrize("length", [4, 7, 16, 17])
def test_a_row_gives_the_same_bits_wherever_it_is(short_engine: Engine, length: int) -> None:
    """In a strip of many rows, and alone."""
    x = (np.random.default_rng(0).standard_normal((75, length)) * 1000).astype(np.float32)
    found = _short(short_engine, "sum_float32", x, np.float32, float(length))
    alone = [_short(short_engine, "sum_float32", row[None], np.float32, float(length))[0] for row in x]
    np.testing.assert_array_equal(found, np.array(alone))
