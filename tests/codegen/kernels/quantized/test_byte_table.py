"""Bytes looked up in tables of 256."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.quantized.byte_table import ENTRIES, TableParams, write_byte_table
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """The kernel."""
    module, engine = Module(target), Engine(target)
    write_byte_table(module, "look_up")
    engine.add(module)
    return engine


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 200, 65535, 65536, 65537, 200_003])
def test_each_byte_is_its_entry(engine: Engine, size: int) -> None:
    """Of one task and many, of unaligned arrays, and nothing behind the array is written."""
    generator = np.random.default_rng(size)
    table = generator.integers(0, 256, ENTRIES).astype(np.uint8)
    x, y = generator.integers(0, 256, size + 1).astype(np.uint8)[1:], np.full(size + 64, 7, np.uint8)
    params = TableParams(size)
    call(engine, "look_up", [x, table, y], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(y[:size], table[x])
    assert (y[size:] == 7).all()


def test_in_place(engine: Engine) -> None:
    """The result may lie where the bytes are."""
    x, table = np.arange(ENTRIES, dtype=np.uint8), np.arange(ENTRIES, dtype=np.uint8)[::-1].copy()
    params = TableParams(x.size)
    call(engine, "look_up", [x, table, x], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(x, table)
