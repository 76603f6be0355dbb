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


def test_sizes_that_a_step_cannot_work_with_are_refused() -> None:
    """By the step, when they are bound."""
    text = "graph(x: float[1, 1, n]) -> (y: float[1, 1, m]) { y = MaxPool(x) {kernel_shape = [3]} }"
    session = cpu_session(text, layout=Layout.NHWC)
    with pytest.raises(InvalidArgument):
        session.run(None, {"x": np.ones((1, 1, 1), np.float32)})
