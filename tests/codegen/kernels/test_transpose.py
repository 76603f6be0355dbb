"""Transposition of planes: tiles, edges, streams, strides."""

import ctypes
import faulthandler
import os

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, I16, I32, I64, of_dtype
from sardonyx.codegen.kernels.transpose import PlaneParams, tile_side, write_deinterleave, write_interleave, write_transpose
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.providers.cpu.guard import Fence

_ELEMENTS = {1: I8, 2: I16, 4: I32, 8: I64}
_STREAMS = (2, 3, 4, 5)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """All kernels for all sizes of elements."""
    module = Module(target)
    for size, element in _ELEMENTS.items():
        write_transpose(module, f"transpose_{size}", element)
        for streams in _STREAMS:
            write_interleave(module, f"interleave_{size}_{streams}", element, streams)
            write_deinterleave(module, f"deinterleave_{size}_{streams}", element, streams)
    engine = Engine(target)
    engine.add(module)
    return engine


def _filled(shape: tuple[int, ...], size: int) -> Array:
    kind = f"int{8 * size}"
    return np.random.default_rng(0).integers(-100, 100, shape).astype(kind)


def _run(engine: Engine, symbol: str, source: Array, outer: int, **blocks: int) -> Array:
    """Transpose `source` (…, rows, columns) with guards around the result."""
    *around, rows, columns = source.shape
    dims, reach = [], rows * columns
    for size in reversed(around):
        dims.append((size, reach, reach))
        reach *= size
    guarded = np.full(source.size + 2 * 64, 77, source.dtype)
    result = guarded[64:-64]
    params = PlaneParams.blocked(rows, columns, columns, rows, dims[::-1], **blocks)
    for task in reversed(range(params.tasks())):
        call(engine, symbol, [np.ascontiguousarray(source), result], params.words(), task, task + 1)
    assert (guarded[:64] == 77).all()
    assert (guarded[-64:] == 77).all()
    return result.reshape(*around, columns, rows)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child process reads up to an unmapped page")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("size", list(_ELEMENTS))
def test_nothing_behind_the_source_is_read(engine: Engine, target: Target, size: int) -> None:
    """Where the last rows and columns fill a part of a tile."""
    side = tile_side(target, _ELEMENTS[size])
    for rows, columns in ((1, side - 1), (side + 1, side + 1), (side - 1, 2 * side)):
        source, result = _filled((rows, columns), size), np.zeros((columns, rows), f"int{8 * size}")
        fence = Fence([source.nbytes])
        fence.fill(0, source)
        memory = (ctypes.c_char * source.nbytes).from_address(fence.address_of(0))
        fenced = np.frombuffer(memory, source.dtype).reshape(rows, columns)
        params = PlaneParams.blocked(rows, columns, columns, rows, ())
        child = os.fork()
        if child == 0:
            faulthandler.disable()
            call(engine, f"transpose_{size}", [fenced, result], params.words(), 0, params.tasks())
            os._exit(0 if (result == source.T).all() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("size", list(_ELEMENTS))
def test_every_plane_is_transposed(engine: Engine, target: Target, size: int) -> None:
    """Rows and columns below, at and above the side of a tile and of a block."""
    side = tile_side(target, _ELEMENTS[size])
    for rows in (0, 1, side - 1, side, side + 1, 37):
        for columns in (0, 1, side - 1, side, side + 1, 37):
            source = _filled((2, rows, columns), size)
            for blocks in ({}, {"side": 16, "grain": 1}):
                np.testing.assert_array_equal(_run(engine, f"transpose_{size}", source, 1, **blocks), source.swapaxes(-1, -2))


@pytest.mark.parametrize("size", list(_ELEMENTS))
def test_rows_that_share_sets_of_the_cache_are_transposed(engine: Engine, target: Target, size: int) -> None:
    """Rows a multiple of 512 bytes apart, with whole groups of tiles and without, wider and narrower than a tile."""
    side = tile_side(target, _ELEMENTS[size])
    for rows in (1, side - 1, side, 2 * side + 1):
        for columns in (512 // size, 1024 // size):
            source = _filled((2, rows, columns), size)
            for blocks in ({}, {"side": side + 1, "grain": 1}):
                np.testing.assert_array_equal(_run(engine, f"transpose_{size}", source, 1, **blocks), source.swapaxes(-1, -2))


@pytest.mark.parametrize("size", list(_ELEMENTS))
@pytest.mark.parametrize("streams", _STREAMS)
def test_a_few_rows_become_the_last_dimension(engine: Engine, target: Target, size: int, streams: int) -> None:
    """(3, W) -> (W, 3), as (C, H, W) becomes (H, W, C)."""
    side = tile_side(target, _ELEMENTS[size])
    for columns in (0, 1, side - 1, side, side + 1, 3 * side + 1, 67):
        source = _filled((2, streams, columns), size)
        for blocks in ({}, {"side": 16, "grain": 1}):
            found = _run(engine, f"interleave_{size}_{streams}", source, 1, **blocks)
            np.testing.assert_array_equal(found, source.swapaxes(-1, -2))


@pytest.mark.parametrize("size", list(_ELEMENTS))
@pytest.mark.parametrize("streams", _STREAMS)
def test_a_last_dimension_becomes_a_few_rows(engine: Engine, target: Target, size: int, streams: int) -> None:
    """(W, 3) -> (3, W), as (H, W, C) becomes (C, H, W)."""
    side = tile_side(target, _ELEMENTS[size])
    for rows in (0, 1, side - 1, side, side + 1, 3 * side + 1, 67):
        source = _filled((2, rows, streams), size)
        for blocks in ({}, {"side": 16, "grain": 1}):
            found = _run(engine, f"deinterleave_{size}_{streams}", source, 1, **blocks)
            np.testing.assert_array_equal(found, source.swapaxes(-1, -2))


def test_strides_and_outer_dimensions_are_parameters(engine: Engine) -> None:
    """Heads of attention: (N, T, H, D) -> (N, H, D, T)."""
    N, T, H, D = 2, 5, 3, 18
    source = np.random.default_rng(0).standard_normal((N, T, H, D)).astype(np.float32)
    result = np.zeros((N, H, D, T), np.float32)
    params = PlaneParams.blocked(T, D, H * D, T, [(N, T * H * D, H * D * T), (H, D, D * T)], grain=100)
    call(engine, "transpose_4", [source, result], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(result, source.transpose(0, 2, 3, 1))


def test_a_side_fits_registers() -> None:
    """Elements are integers of one, two, four or eight bytes."""
    assert [of_dtype(np.dtype(f"i{size}")) for size in _ELEMENTS] == list(_ELEMENTS.values())
