"""Folds of short lines and rows: the same answers as those of long ones, whatever fits a vector."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.folds import MAX, MIN, SUM
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I8, I32, I64, Type
from sardonyx.codegen.kernels.lines import Along, LineParams
from sardonyx.codegen.kernels.short_lines import GatheredStrip, mapped_rows, packed_strips, reduced_strips
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_KINDS: dict[str, tuple[Type, type]] = {
    "f32": (F32, np.float32),
    "f64": (F64, np.float64),
    "i32": (I32, np.int32),
    "i64": (I64, np.int64),
    "i8": (I8, np.int8),
}
_WAYS = {"packed": packed_strips, "reduced": reduced_strips}


def _write_folds(module: Module, symbol: str, way: str, along: Along, kind: Type) -> None:
    """Write sums; where they are packed also the greatest less each element, and the last line of each column."""
    with module.kernel(symbol) as b:
        x, y = b.buffer(0, kind), b.buffer(1, kind)
        for strip in _WAYS[way](b, along, kind):
            strip.put(y, strip.fold(SUM, lambda place, strip=strip: strip.load(x, place)))
            last = strip.fold(MAX, lambda place, strip=strip: strip.position(place, I32), I32)
            strip.put(b.buffer(2, I32), last)


def _write_map(module: Module, symbol: str, kind: Type) -> None:
    """Write the greatest and the least of each column, found in one pass, less each element."""
    with module.kernel(symbol) as b:
        x, y = b.buffer(0, kind), b.buffer(1, kind)
        for strip in packed_strips(b, Along.COLUMNS, kind):
            greatest = strip.fold(MAX, lambda place: x.load(place.offset, place.span))
            least, again = strip.fold_all(
                MIN, [lambda place: x.load(place.offset, place.span), lambda place: x.load(place.offset, place.span) + 1]
            )
            for lines in strip.each_line():
                for places in strip.each_place(lines):
                    for place in places:
                        number = place.number
                        value = greatest[number] + least[number] + again[number] - x.load(place.offset, place.span)
                        y.store(value, place.offset, place.span)


def _write_spread(module: Module, symbol: str, kind: Type) -> None:
    """Write the sum of each row less each element."""
    with module.kernel(symbol) as b:
        x, y = b.buffer(0, kind), b.buffer(1, kind)
        for strip in mapped_rows(b, kind):
            totals = strip.fold(SUM, lambda place, strip=strip: strip.load(x, place))
            if isinstance(strip, GatheredStrip):
                for place, (total,) in strip.spread([totals]):
                    y.store(total - x.load(place.offset, place.span), place.offset, place.span)
                continue
            for lines in strip.each_line():
                for places in strip.each_place(lines):
                    for place in places:
                        value = totals[place.number].splat(place.span.lanes) - x.load(place.offset, place.span)
                        y.store(value, place.offset, place.span)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Every way and type."""
    module = Module(target)
    for (key, (kind, _)), way, along in itertools.product(_KINDS.items(), _WAYS, Along):
        _write_folds(module, f"{way}_{key}_{along.value}", way, along, kind)
    for key, (kind, _) in _KINDS.items():
        _write_map(module, f"map_{key}", kind)
        _write_spread(module, f"spread_{key}", kind)
    engine = Engine(target)
    engine.add(module)
    return engine


_LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33]
_LINES = [1, 2, 3, 15, 16, 17, 64, 65, 127, 300]


def _shapes(lengths: Sequence[int] = _LENGTHS) -> list[tuple[int, int, int]]:
    return [
        (outer, lines, length)
        for outer, (lines, length) in zip(itertools.cycle([1, 2, 5, 9, 33]), itertools.product(_LINES, lengths))
    ]


def _drawn(shape: Sequence[int], dtype: type) -> Array:
    """Whole numbers, so that every sum is exact."""
    drawn: Array = np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(dtype)
    return drawn


@pytest.mark.parametrize("key", _KINDS)
@pytest.mark.parametrize("way", _WAYS)
def test_columns_of_short_lines_are_summed(engine: Engine, way: str, key: str) -> None:
    """Of every length and number of lines around those that fit vectors, task by task, and nothing beside the result is written."""
    for shape in _shapes():
        outer, lines, length = shape
        params, x = LineParams(outer, lines, length, Along.COLUMNS), _drawn(shape, _KINDS[key][1])
        y, last = np.full(outer * length + 64, 99, x.dtype), np.full(outer * length + 64, 99, np.int32)
        cut = params.tasks() // 2
        for begin, end in ((cut, params.tasks()), (0, cut)):
            call(engine, f"{way}_{key}_columns", [x, y, last], params.words(), begin, end)
        np.testing.assert_array_equal(y[: outer * length].reshape(outer, length), x.sum(1, dtype=x.dtype), str(shape))
        np.testing.assert_array_equal(last[: outer * length], lines - 1, str(shape))
        assert (y[outer * length :] == 99).all()
        assert (last[outer * length :] == 99).all()


@pytest.mark.parametrize("key", _KINDS)
@pytest.mark.parametrize("way", _WAYS)
def test_short_rows_are_summed(engine: Engine, way: str, key: str) -> None:
    """Of every length around those that are gathered."""
    for length, rows in itertools.product(_LENGTHS, (1, 7, 70)):
        params, x = LineParams(rows, 1, length, Along.ROWS), _drawn((rows, length), _KINDS[key][1])
        y, last = np.full(rows + 64, 99, x.dtype), np.full(rows + 64, 99, np.int32)
        call(engine, f"{way}_{key}_rows", [x, y, last], params.words(), 0, params.tasks())
        np.testing.assert_array_equal(y[:rows], x.sum(1, dtype=x.dtype), str((rows, length)))
        np.testing.assert_array_equal(last[:rows], length - 1)
        assert (y[rows:] == 99).all()


@pytest.mark.parametrize("key", _KINDS)
def test_every_element_is_written_of_what_its_column_was_folded_to(engine: Engine, key: str) -> None:
    """In every lane of a vector that has several lines."""
    for shape in _shapes():
        params, x = LineParams(*shape, Along.COLUMNS), _drawn(shape, _KINDS[key][1])
        y = np.full(x.size + 64, 99, x.dtype)
        call(engine, f"map_{key}", [x, y], params.words(), 0, params.tasks())
        expected = x.max(1, keepdims=True) + 2 * x.min(1, keepdims=True) + 1 - x
        np.testing.assert_array_equal(y[: x.size].reshape(shape), expected, str(shape))
        assert (y[x.size :] == 99).all()


@pytest.mark.parametrize("key", _KINDS)
def test_folds_of_rows_are_spread_over_their_elements(engine: Engine, key: str) -> None:
    """Of rows that are gathered, and of longer ones; nothing behind them is written."""
    for length, rows in itertools.product(_LENGTHS, (1, 7, 33, 70)):
        params, x = LineParams(rows, 1, length, Along.ROWS), _drawn((rows, length), _KINDS[key][1])
        y = np.full(x.size + 64, 99, x.dtype)
        call(engine, f"spread_{key}", [x, y], params.words(), 0, params.tasks())
        np.testing.assert_array_equal(y[: x.size].reshape(x.shape), x.sum(1, keepdims=True, dtype=x.dtype) - x, str(x.shape))
        assert (y[x.size :] == 99).all()


@pytest.mark.parametrize("way", _WAYS)
def test_an_outer_index_alone_has_the_same_bits(engine: Engine, way: str) -> None:
    """As among others: which lanes it lies in changes no sum."""
    for lines, length in itertools.product((3, 12, 40, 500), (1, 2, 3, 4, 7)):
        x = np.random.default_rng(length).standard_normal((9, lines, length)).astype(np.float32)
        params, y = LineParams(9, lines, length, Along.COLUMNS), np.zeros((9, length), np.float32)
        last = np.zeros((9, length), np.int32)
        call(engine, f"{way}_f32_columns", [x, y, last], params.words(), 0, params.tasks())
        for outer in range(9):
            alone, one = np.zeros(length, np.float32), LineParams(1, lines, length, Along.COLUMNS)
            call(engine, f"{way}_f32_columns", [x[outer], alone, last], one.words(), 0, one.tasks())
            np.testing.assert_array_equal(alone.view(np.int32), y[outer].view(np.int32))


@pytest.mark.parametrize("way", _WAYS)
def test_nothing_is_folded_to_the_neutral_element(engine: Engine, way: str) -> None:
    """Of no lines; and no elements of a line are nothing to write."""
    y, last = np.full(6, 99, np.float32), np.zeros(6, np.int32)
    for shape in ((2, 0, 3), (2, 3, 0), (0, 3, 3)):
        params = LineParams(*shape, Along.COLUMNS)
        y[:] = 99
        call(engine, f"{way}_f32_columns", [np.empty(shape, np.float32), y, last], params.words(), 0, params.tasks())
        np.testing.assert_array_equal(y, 0 if shape == (2, 0, 3) else 99)
