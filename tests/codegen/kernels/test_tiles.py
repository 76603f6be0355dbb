"""How tiles cover a matrix."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.kernels.tiles import Tiling, cover_columns, cover_rows, tile_spans
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target

_HEIGHTS = (6, 4, 1)


@pytest.mark.parametrize(("M", "N"), [(0, 3), (1, 1), (5, 7), (6, 16), (13, 17), (19, 31), (24, 48)])
def test_every_element_is_covered_once(target: Target, M: int, N: int) -> None:
    """Whole panels, narrower tiles, and the rest of a vector."""
    lanes = target.lanes(32)
    shape, module = Tiling(lanes, ((2, _HEIGHTS), (1, _HEIGHTS))), Module(target)
    with module.kernel("count") as b:
        rows, columns = b.param(0), b.param(1)
        for vectors, heights, (left, right) in cover_columns(b, shape, (rows.like(0), columns)):
            with b.loop(left, right, vectors * lanes) as n:
                for height, (top, bottom) in cover_rows(heights, (rows.like(0), rows)):
                    with b.loop(top, bottom, height) as m, b.loop(m, m + height) as row:
                        for j, span in enumerate(tile_spans(b, shape, vectors, columns - n)):
                            place = b.buffer(0, I32).at(row * columns + n + j * lanes)
                            place.store(place.load(0, span) + 1, 0, span)
    engine, counts = Engine(target), np.zeros(M * N + 64, np.int32)
    engine.add(module)
    call(engine, "count", [counts], [M, N])
    assert (counts[: M * N] == 1).all()
    assert (counts[M * N :] == 0).all()


def test_a_tiling_is_named_by_its_largest_tile() -> None:
    """Rows and columns."""
    shape = Tiling(16, ((4, _HEIGHTS), (1, (8, 1))))
    assert (shape.panel, shape.name) == (64, "6x64")
