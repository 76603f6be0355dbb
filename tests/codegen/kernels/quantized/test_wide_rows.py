"""Which convolutions widen their rows, and how far these lie apart; what is computed of them is in test_dot_conv.py."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, U8
from sardonyx.codegen.kernels.conv_rows import MOST_ROWS
from sardonyx.codegen.kernels.quantized.wide_rows import WIDE_ELEMENTS, last_bytes, rows_at_once, wide_pitch, widens_rows
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, emulated_target


def test_rows_are_widened_where_pairs_are_multiplied_and_some_fit() -> None:
    """Not with an instruction for four bytes; runs are filled up to fours, and rows lie a cache line apart."""
    pairs = emulated_target("avx2", ["avx2"])
    longest = WIDE_ELEMENTS // MOST_ROWS - 32
    assert widens_rows(pairs, longest, 1)
    assert not widens_rows(pairs, longest + 1, 1)
    assert widens_rows(pairs, 1, longest // 4)
    assert not widens_rows(pairs, 1, longest // 4 + 1)
    assert not widens_rows(emulated_target("avx2", ["avxvnni"]), 4, 1)


def test_rows_at_once_are_whole_tiles_that_fit(target: Target) -> None:
    """As many as there is room for, at least one tile."""
    module, engine = Module(target), Engine(target)
    with module.kernel("rows") as b:
        pitch = wide_pitch({"runs": b.param(0), "depth": b.param(1)})
        b.buffer(0, I64).store(pitch, 0)
        b.buffer(0, I64).store(rows_at_once(b, pitch, 6), 1)
    engine.add(module)
    for runs, depth in ((9, 512), (1, 3), (9, 900)):
        found = np.zeros(2, np.int64)
        call(engine, "rows", [found], [runs, depth])
        elements = runs * -(-depth // 4) * 4 + 32
        assert found.tolist() == [elements, WIDE_ELEMENTS // elements // 6 * 6]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_last_bytes_of_a_run_are_followed_by_zeros(target: Target, count: int) -> None:
    """Whatever is behind them in memory."""
    module, engine = Module(target), Engine(target)
    with module.kernel("last") as b:
        b.buffer(1, U8).store(last_bytes(b.buffer(0, U8), count).bits_as(U8.vector(4)), 0, 4)
    engine.add(module)
    result = np.zeros(4, np.uint8)
    call(engine, "last", [np.array([1, 2, 3, 4, 5], np.uint8), result], [])
    assert result.tolist() == [*range(1, count + 1), *[0] * (4 - count)]
