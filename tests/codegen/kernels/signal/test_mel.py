"""Filters on the mel scale."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I64
from sardonyx.codegen.kernels.signal.mel import write_mel_edges, write_mel_filters
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("bands", [0, 1, 6, 7, 80])
def test_edges_lie_evenly_between_mels(target: Target, bands: int) -> None:
    """Each at a whole bin, the first where the lowest frequency is."""
    engine, module = Engine(target), Module(target)
    write_mel_edges(module, "edges", I64, F32)
    engine.add(module)
    edges = np.empty(bands + 2)
    numbers = [np.array([1023]), np.array([16000]), np.array([1000], np.float32), np.array([7600], np.float32)]
    call(engine, "edges", [*numbers, edges], [bands])
    mels = 2595 * np.log10(1 + np.array([1000, 7600]) / 700)
    hertz = 700 * (10 ** ((mels[0] + np.arange(bands + 2) * (mels[1] - mels[0]) / (bands + 2)) / 2595) - 1)
    np.testing.assert_array_equal(edges, np.floor(hertz * 1024 / 16000 + 1e-9))
    assert edges[0] == 64


def test_a_filter_rises_to_its_middle_and_falls_behind_it(target: Target) -> None:
    """Also where edges coincide."""
    engine, module = Engine(target), Module(target)
    write_mel_filters(module, "filters", F64)
    engine.add(module)
    filters = np.empty((7, 3))
    call(engine, "filters", [np.array([1.0, 3.0, 3.0, 6.0, 6.0]), filters], [3], 0, 7)
    expected = [[0, 0, 0.5, 1, 0, 0, 0], [0, 0, 0, 1, 2 / 3, 1 / 3, 0], [0, 0, 0, 0, 1 / 3, 2 / 3, 1]]
    np.testing.assert_allclose(filters.T, expected, atol=1e-15)
