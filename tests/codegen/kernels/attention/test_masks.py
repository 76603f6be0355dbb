"""Tests of masks that end before the keys do."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.attention.masks import write_whole_rows
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize(("own", "T"), [(0, 3), (1, 1), (1, 40), (5, 5), (5, 37), (33, 34), (64, 64)])
def test_rows_are_as_long_as_there_are_keys(target: Target, own: int, T: int) -> None:
    """One number is for all keys, behind more of them keys are hidden."""
    engine, module = Engine(target), Module(target)
    write_whole_rows(module, "whole")
    engine.add(module)
    rows, found = np.random.default_rng(own).standard_normal((3, own)).astype(np.float32), np.full((3, T), 7, np.float32)
    call(engine, "whole", [rows, found], [own, T], 1, 3)
    expected = np.full((3, T), -np.inf, np.float32)
    expected[:, : T if own == 1 else own] = rows
    np.testing.assert_array_equal(found[1:], expected[1:])
    assert (found[0] == 7).all()
