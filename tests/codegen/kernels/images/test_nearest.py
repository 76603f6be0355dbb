"""Elements taken by tables, within windows and beyond them."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, I16, I32, I64
from sardonyx.codegen.kernels.images.nearest import has_windows, write_nearest, write_plane_table, write_windows
from sardonyx.codegen.kernels.resize import ResizeParams
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, emulated_target, host_target
from sardonyx.dtypes import Array

_ELEMENTS = {8: I8, 16: I16, 32: I32, 64: I64}


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Kernels of all the widths of elements that the level has windows for."""
    module = Module(target)
    write_plane_table(module, "plane")
    for bits, element in _ELEMENTS.items():
        if has_windows(target, bits):
            write_windows(module, f"windows_{bits}", target.lanes(bits))
            for axes in (1, 2):
                write_nearest(module, f"nearest_{bits}_{axes}", element, axes)
    engine = Engine(target)
    engine.add(module)
    return engine


def _windows(engine: Engine, target: Target, bits: int, table: Array, size: int) -> list[Array]:
    lanes = target.lanes(bits)
    windows, places = np.full(-(-len(table) // lanes), -9, np.int32), np.zeros(len(table), np.uint8)
    call(engine, f"windows_{bits}", [table, windows, places], [size, len(table)])
    return [windows, places]


def _tables(size: int, output: int) -> list[Array]:
    """Tables that grow, shrink, go backwards, and jump about."""
    grown = (np.arange(output) * size // output).astype(np.int32)
    return [grown, grown[::-1].copy(), np.random.default_rng(0).integers(0, size, output).astype(np.int32)]


@pytest.mark.parametrize("bits", _ELEMENTS)
@pytest.mark.parametrize(("size", "output"), [(1, 1), (3, 7), (16, 32), (17, 200), (40, 20), (131, 300), (300, 131), (999, 64)])
def test_one_axis(engine: Engine, target: Target, bits: int, size: int, output: int) -> None:
    """Every element is the one that the table names, in tasks of any size, and nothing beside the result is written."""
    if not has_windows(target, bits):
        pytest.skip("the level permutes no elements of this width")
    source = np.random.default_rng(1).integers(-100, 100, (5, size)).astype(f"int{bits}")
    for table in _tables(size, output):
        result = np.full((7, output), 55, source.dtype)
        for block in (64, 1 << 14):
            params = ResizeParams(5, (size,), (output,), 1, block)
            more = _windows(engine, target, bits, table, size)
            call(engine, f"nearest_{bits}_1", [source, result[1:], table, *more], params.words(), end=params.tasks())
            np.testing.assert_array_equal(result[1:-1], source[:, table])
        assert (result[[0, -1]] == 55).all()


@pytest.mark.parametrize("bits", _ELEMENTS)
def test_two_axes(engine: Engine, target: Target, bits: int) -> None:
    """Rows are chosen by one table, elements of them by the other; a plane's table is that of both."""
    if not has_windows(target, bits):
        pytest.skip("the level permutes no elements of this width")
    sizes, outputs = (4, 35), (9, 70)
    source = np.random.default_rng(1).integers(-100, 100, (3, *sizes)).astype(f"int{bits}")
    for rows, columns in zip(_tables(sizes[0], outputs[0]), _tables(sizes[1], outputs[1]), strict=True):
        wanted, result = source[:, rows][:, :, columns], np.zeros((3, *outputs), source.dtype)
        windows = _windows(engine, target, bits, columns, sizes[1])
        params = ResizeParams(3, sizes, outputs, 1, 64)
        call(engine, f"nearest_{bits}_2", [source, result, rows, columns, *windows], params.words(), end=params.tasks())
        np.testing.assert_array_equal(result, wanted)
        plane = np.zeros(outputs[0] * outputs[1], np.int32)
        call(engine, "plane", [rows, columns, plane], [*outputs, sizes[1]])
        windows, result = _windows(engine, target, bits, plane, sizes[0] * sizes[1]), np.zeros_like(result)
        params = ResizeParams(3, (sizes[0] * sizes[1],), (plane.size,), 1, 1 << 14)
        call(engine, f"nearest_{bits}_1", [source, result, plane, *windows], params.words(), end=params.tasks())
        np.testing.assert_array_equal(result, wanted)


def test_windows_lie_within_the_row(engine: Engine, target: Target) -> None:
    """The last one begins two vectors before the end; elements further apart than that have none."""
    if not has_windows(target, 32):
        pytest.skip("the level permutes no elements of 32 bits")
    lanes, table = target.lanes(32), np.zeros(3 * target.lanes(32), np.int32)
    table[lanes : 2 * lanes] = 99
    table[-1] = 99
    windows, places = _windows(engine, target, 32, table, 100)
    assert windows.tolist() == [0, 100 - 2 * lanes, -1]
    assert places[lanes : 2 * lanes].tolist() == [2 * lanes - 1] * lanes


def test_levels_that_permute() -> None:
    """None where instructions are emulated."""
    assert not has_windows(emulated_target("avx512", ["avx512vbmi"]), 8)
    assert not has_windows(host_target("portable"), 32)
