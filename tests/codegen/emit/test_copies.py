"""Copies of every length, and nothing written or read beyond them, on every level."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.copies import copy_elements
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I8, I16, I32, I64, Type
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target

KINDS: dict[str, Type] = {"int8": I8, "int16": I16, "int32": I32, "int64": I64, "float32": F32, "float64": F64}
LENGTHS = [*range(70), 127, 128, 129, 160, 257, 1000]


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Kernels that copy as many elements as their parameter says, from place 1 of a buffer to place 3 of another."""
    module = Module(target)
    for name, kind in KINDS.items():
        with module.kernel(name) as b:
            copy_elements(b, b.buffer(1, kind).at(3), b.buffer(0, kind).at(1), b.param(0))
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize("name", KINDS)
def test_copies_of_every_length_end_where_they_should(engine: Engine, name: str) -> None:
    """What lies before and behind keeps its value."""
    source = np.arange(1, 1102).astype(name)
    for length in LENGTHS:
        target = np.full(1101, 99).astype(name)
        wanted = target.copy()
        wanted[3 : 3 + length] = source[1 : 1 + length]
        call(engine, name, [source, target], [length], 0, 1)
        np.testing.assert_array_equal(target, wanted)


@pytest.mark.parametrize("length", [-1, -40, -(1 << 62)])
def test_a_length_below_0_copies_nothing(engine: Engine, length: int) -> None:
    """As rows have that begin behind their end."""
    target = np.full(1000, 99, np.int8)
    call(engine, "int8", [np.zeros(1000, np.int8), target[500:]], [length], 0, 1)
    assert (target == 99).all()


def test_a_copy_to_its_own_place_changes_nothing(engine: Engine) -> None:
    """Elements that are written twice are the same, or are read before."""
    data = np.arange(1101, dtype=np.int16)
    for length in LENGTHS:
        call(engine, "int16", [data[2:], data], [length], 0, 1)
        np.testing.assert_array_equal(data, np.arange(1101))
