"""Bindings of segments to shapes."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.test_plan import MIXED, make
from support.branches import SlowDevice, plan_of
from support.cpu_run import cpu_session

from sardonyx import RunOptions
from sardonyx.dtypes import DataType
from sardonyx.provider import HOST, TensorSpec
from sardonyx.runtime.bind import segment_binder, size_bytes

CHAIN = "graph(x: float[n]) -> (y: float[n]) {\na = Relu(x)\nb = Neg(a)\nc = Add(b, x)\ny = Mul(c, c)\n}"


def test_a_known_shape_is_found_again() -> None:
    """The second look-up returns the first binding."""
    plan = make(MIXED, {"Relu", "Neg"}, {"Exp"})
    binder = segment_binder(plan)
    assert binder.find(plan.segments[1], ((2,),)) is binder.find(plan.segments[1], ((2,),))


def test_shapes_follow_through_copies_and_programs() -> None:
    """The device's output is as large as what was copied to it."""
    plan = make(MIXED, {"Relu", "Neg"}, {"Exp"})
    binding = segment_binder(plan).find(plan.segments[1], ((7,),))
    step = binding.steps[1]
    assert step is not None
    assert step.bound.outputs == (TensorSpec(DataType.FLOAT, (7,)),)


def test_the_table_is_bounded() -> None:
    """The least recently used binding goes first."""
    plan = make(MIXED, {"Relu", "Neg"}, {"Exp"})
    binder = segment_binder(plan, capacity=2)
    first = binder.find(plan.segments[1], ((1,),))
    for size in (2, 1, 3):
        binder.find(plan.segments[1], ((size,),))
    assert len(binder) == 2
    assert binder.find(plan.segments[1], ((1,),)) is first
    binder.clear()
    assert len(binder) == 0


def test_small_bindings_may_be_more() -> None:
    """A text goes through as many lengths as it has tokens; programs that say that they keep little are bound once for each.

    Runs with options do not take the native way, which binds none of them.
    """
    session = cpu_session("graph(x: float[n]) -> (y) { y = Relu(x) }")
    executor = session._runner.built.executor
    for _ in range(2):
        for size in range(1, 200):
            session.run(None, {"x": np.zeros(size, np.float32)}, RunOptions())
    assert len(executor._binder) == 199
    for size in range(1, 3000):
        executor._binder.find(executor._plan.segments[0], ((size,),))
    assert 64 <= len(executor._binder) < 2500
    assert sum(binding.kept_bytes for binding in executor._binder.known()) <= 1 << 23


def test_a_tensor_that_is_only_copied_out_lies_in_the_arena() -> None:
    """The device's output of 4,000 bytes is dead after its copy; beside it lie 256 bytes of scratch."""
    plan = make(CHAIN, {"Relu", "Neg", "Add", "Mul"}, set())
    binding = segment_binder(plan).find(plan.segments[0], ((1000,),))
    assert binding.arena_bytes == {"pretended:0": 4032 + 256}


def _is_in_the_arena(text: str) -> list[bool]:
    """For each step of the first segment whether its output is. Programs of Relu, Neg and Add say their sizes, that of Exp does not."""
    providers = [SlowDevice("A", ["Relu"]), SlowDevice("B", ["Neg"]), SlowDevice("C", ["Add"])]
    for provider in providers:
        provider.memory = HOST
    plan = plan_of(text, *providers)
    segment = plan.segments[0]
    binding = segment_binder(plan).find(segment, ((4,),) * len(segment.entries))
    return [step is not None and step.offsets[0] is not None for step in binding.steps]


def test_what_is_read_within_its_segment_lies_in_the_arena() -> None:
    """What the graph gives out does not."""
    text = "graph(x: float[4]) -> (y: float[4]) {\na = Relu(x)\nb = Neg(a)\ny = Relu(b)\n}"
    assert _is_in_the_arena(text) == [True, True, False]


def test_what_the_first_step_of_the_next_segment_reads_lies_elsewhere() -> None:
    """The arena is given back between the two."""
    text = "graph(x: float[4]) -> (y: float[4]) {\na = Relu(x)\nb = Exp(x)\ny = Add(a, b)\n}"
    assert _is_in_the_arena(text) == [False, False]


def test_what_a_program_may_return_a_view_of_lies_elsewhere() -> None:
    """One that makes its outputs may give out what it reads."""
    text = "graph(x: float[4]) -> (y: float[4]) {\na = Relu(x)\ny = Exp(a)\n}"
    assert _is_in_the_arena(text) == [False, False]


@pytest.mark.parametrize(("dtype", "size"), [(DataType.FLOAT, 24), (DataType.INT4, 6), (DataType.BOOL, 6), (DataType.STRING, 48)])
def test_sizes_in_memory(dtype: DataType, size: int) -> None:
    """Sub-byte elements take a byte each, strings a reference."""
    assert size_bytes(TensorSpec(dtype, (2, 3))) == size
