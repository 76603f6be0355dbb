"""Frames around arrays."""

import itertools
from typing import Any

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.kernels.pad import MODES, PadDim, PadParams, write_pad
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """A kernel for each mode."""
    module = Module(target)
    for mode in MODES:
        write_pad(module, mode, I32, mode)
    engine = Engine(target)
    engine.add(module)
    return engine


def _padded(engine: Engine, source: Array, pads: list[tuple[int, int]], mode: str, grain: int = 7) -> Array:
    dims = [PadDim.of(size, *pair) for size, pair in zip(source.shape, pads, strict=True)]
    shape = tuple(dim.out for dim in dims)
    guarded = np.full(np.prod(shape, dtype=int) + 128, 77, np.int32)
    params = PadParams.over(dims, mode, grain)
    for task in range(params.tasks()):
        call(engine, mode, [source, np.array([-5], np.int32), guarded[64:-64]], params.words(), task, task + 1)
    assert (guarded[:64] == 77).all()
    assert (guarded[-64:] == 77).all()
    return guarded[64:-64].reshape(shape)


_PADS = [
    [(0, 0), (0, 0), (0, 0)],
    [(1, 2), (0, 0), (0, 0)],
    [(0, 0), (3, 9), (20, 1)],
    [(0, 1), (0, 0), (2, 0)],
]


@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("pads", _PADS)
def test_as_numpy_pads(engine: Engine, mode: str, pads: list[tuple[int, int]]) -> None:
    """Before and behind, on whole and padded axes, by more than there is."""
    for shape in ((2, 3, 4), (1, 1, 1), (2, 2, 37)):
        source = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        how: dict[str, Any] = {"constant_values": -5} if mode == "constant" else {"mode": mode}
        wanted = np.pad(source, pads, **how)
        np.testing.assert_array_equal(_padded(engine, source, pads, mode), wanted)


def test_crops_come_first(engine: Engine) -> None:
    """What is cut off is not repeated either."""
    source = np.arange(6, dtype=np.int32)
    assert _padded(engine, source, [(-2, 2)], "edge").tolist() == [2, 3, 4, 5, 5, 5]
    assert _padded(engine, source, [(2, -3)], "reflect").tolist() == [2, 1, 0, 1, 2]
    assert _padded(engine, source, [(-7, 3)], "constant").tolist() == [-5, -5]


def test_a_crop_takes_away_what_was_added() -> None:
    """A negative pad may reach through the source into the padding on its other side: nothing is written beyond the result."""
    assert PadDim.of(4, 9, -7) == PadDim(6, 6, 0, 0, 4)
    assert PadDim.of(4, -7, 9) == PadDim(6, 0, 0, 4, 4)
    assert PadDim.of(4, 2000000, -1999998) == PadDim(6, 6, 0, 0, 4)
    assert PadDim.of(4, 9, -13) == PadDim(0, 0, 0, 0, 4)


def test_parts_never_reach_beyond_what_they_are_parts_of() -> None:
    """For all sizes and pads, also those beyond any memory, the source lies in the result, and what is kept in the source."""
    pads = [*range(-6, 7), 2**40, -(2**40), 2**63 - 1, -(2**63)]
    for size, before, after in itertools.product(range(4), pads, pads):
        dim = PadDim.of(size, before, after)
        assert min(dim.out, dim.begin, dim.length, dim.skip) >= 0
        assert dim.begin <= dim.out
        assert size + before + after < 0 or dim.begin + dim.length <= dim.out
        assert dim.skip + dim.length <= size


@pytest.mark.parametrize("pads", [[(9, -7)], [(-7, 9)], [(9, -9)], [(12, -13)]])
def test_rows_of_padding_alone(engine: Engine, pads: list[tuple[int, int]]) -> None:
    """A row that is cut from the padding has its constant only."""
    found = _padded(engine, np.arange(4, dtype=np.int32), pads, "constant")
    assert found.tolist() == [-5] * (4 + sum(pads[0]))


def test_whole_axes_are_taken_together() -> None:
    """Rows are as long as they can be."""
    dims = [PadDim.of(2, 0, 0), PadDim.of(5, 1, 1), PadDim.of(8, 0, 0)]
    assert PadParams.over(dims, "constant", 100).inner == PadDim(56, 8, 40, 0, 40)
    assert PadParams.over(dims, "edge", 100).inner == PadDim(8, 0, 8, 0, 8)
