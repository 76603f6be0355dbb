"""What a program does for given sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cpu_run import cpu_session

from sardonyx.errors import InvalidArgument
from sardonyx.provider import Layout
from sardonyx.providers.cpu.planner import ABSOLUTE, ARENA, FIRST_INPUT, Planner
from sardonyx.providers.cpu.sizes import Sizes

_CHAIN = """graph(x: float[n, 6]) -> (y: float[n, 5]) {
    w: float[6, 5] = ... 1
    p = MatMul(x, w)
    y = Softmax(p) }"""


def _program(text: str) -> Any:
    return cpu_session(text)._runner.built.plans[0].steps[0].program  # type: ignore[attr-defined]


def _planner(text: str) -> Planner:
    planner: Planner = _program(text).planner
    return planner


def _symbols(planner: Planner, size: int) -> Sizes:
    return Sizes({str(dim): size for buffer in planner.outputs for dim in buffer.shape if not isinstance(dim, int)})


def test_buffers_are_relative_to_what_changes_from_run_to_run() -> None:
    """Inputs, outputs and the arena; constants are where they are."""
    planner = _planner(_CHAIN)
    plan = planner.plan(_symbols(planner, 3))
    bases = {buffer.base for call in plan.calls for buffer in call.buffers}
    assert {ABSOLUTE, FIRST_INPUT, FIRST_INPUT + 1} <= bases
    assert (ARENA in bases) == (plan.arena_bytes > 0)
    assert not plan.broken


def test_outputs_have_the_sizes_of_the_binding() -> None:
    """Whatever they are."""
    planner = _planner(_CHAIN)
    assert [planner.specs(_symbols(planner, size))[0].shape for size in (1, 7)] == [(1, 5), (7, 5)]  # type: ignore[union-attr]


def test_the_planner_of_a_program_stays_the_same() -> None:
    """It is made once."""
    program = _program(_CHAIN)
    assert program.planner is program.planner


@pytest.mark.parametrize(("rows", "length", "is_long"), [(1, 1 << 23, True), (1 << 13, 1 << 10, False), (1, 1 << 10, False)])
def test_a_task_of_very_many_elements_is_long(rows: int, length: int, is_long: bool) -> None:
    """One row of them, but not as many in rows of their own, nor what a constant has."""
    planner = _planner(
        "graph(x: float[n, m], i: int64[1]) -> (y: float[n, m], z: float[1, 4096]) {\n"
        "w: float[4096, 4096] = ...\ny = Softmax(x)\nz = Gather(w, i)\n}"
    )
    sizes = Sizes({"n": rows, "m": length})
    tasks = [call.tasks for call in planner.plan(sizes).calls]
    assert planner.has_long_task(sizes, tasks) is is_long


def test_tasks_that_go_on_with_one_another_count_as_a_few() -> None:
    """One of a sort may take a large part of it."""
    planner = _planner(
        "graph(x: float[n]) -> (y: float[1000000], i: int64[1000000]) {\nk: int64[1] = [1000000]\ny, i = TopK(x, k)\n}"
    )
    for size, is_long in ((1 << 24, True), (1 << 20, False)):
        sizes = Sizes({"n": size})
        tasks = [call.tasks for call in planner.plan(sizes).calls]
        assert planner.has_long_task(sizes, tasks) is is_long


def test_sizes_that_a_step_cannot_work_with_are_refused() -> None:
    """By the step, when they are bound."""
    text = "graph(x: float[1, 1, n]) -> (y: float[1, 1, m]) { y = MaxPool(x) {kernel_shape = [3]} }"
    session = cpu_session(text, layout=Layout.NHWC)
    with pytest.raises(InvalidArgument):
        session.run(None, {"x": np.ones((1, 1, 1), np.float32)})
