"""Chosen rows as the columns of panels."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.pack_rows import write_pack_rows
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import available_levels, host_target

LEVELS = [level for level in available_levels() if level != "amx"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("K", [0, 1, 5])
def test_rows_in_any_order(level: str, K: int) -> None:
    """A row may come twice or not at all; below 0 there are zeros, also in rows that begin far from one another."""
    width = 32
    module = Module(host_target(level))
    write_pack_rows(module, "pack", width)
    engine = Engine(module.target)
    engine.add(module)
    rng = np.random.default_rng(0)
    rows, places = rng.standard_normal((20, K)).astype(np.float32), rng.integers(-3, 20, (3, width))
    panels = np.full((3, K, width), np.nan, np.float32)
    call(engine, "pack", [rows, places, panels], [K], 0, 2)
    call(engine, "pack", [rows, places, panels], [K], 2, 3)
    expected = np.where(places[:, :, np.newaxis] < 0, 0, rows[places]).transpose(0, 2, 1)
    np.testing.assert_array_equal(panels, expected)
