"""The dataflow executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime.test_plan import MIXED, make
from support.branches import SlowDevice, branching_text, plan_of
from support.cancelling import ended_by

from sardonyx.cancellation import Flag
from sardonyx.errors import EPFail, Fail
from sardonyx.runtime.executors.dataflow import DataflowExecutor
from sardonyx.runtime.executors.sequential import SequentialExecutor


def _devices() -> list[SlowDevice]:
    return [SlowDevice("A", ["Relu", "Add"]), SlowDevice("B", ["Neg"]), SlowDevice("C", ["Mul"])]


def test_a_plan_over_two_memories_computes_what_numpy_does() -> None:
    """Programs, copies and arenas together give the right numbers, twice."""
    executor = DataflowExecutor(make(MIXED, {"Relu", "Neg"}, {"Exp"}))
    x = np.float32([-1.0, 2.0])
    for _ in range(2):
        (y,) = executor.run([x])
        np.testing.assert_allclose(y, -np.exp(np.maximum(np.exp(x), 0)), rtol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_results_are_those_of_the_sequential_executor(seed: int) -> None:
    """Bit for bit, for several sizes one after another."""
    plan = plan_of(branching_text(seed, 30), *_devices())
    one, other = SequentialExecutor(plan), DataflowExecutor(plan)
    for size in (5, 1000, 0, 5):
        x = np.random.default_rng(seed).uniform(-1, 1, size).astype(np.float32)
        for left, right in zip(one.run([x]), other.run([x]), strict=True):
            np.testing.assert_array_equal(left, right)


def test_the_longest_way_is_begun_first() -> None:
    """A branch of three steps comes before one of a single step, which the plan has first."""
    text = "graph(x: float[n]) -> (y: float[n]) {\na = Relu(x)\nb = Neg(x)\nc = Mul(b, b)\nd = Neg(c)\ny = Add(a, d)\n}"
    seen: list[str] = []

    class Watched(SlowDevice):
        def _sleep(self) -> None:
            seen.append(self.name)

    plan = plan_of(text, Watched("A", ["Relu"]), Watched("B", ["Neg"]), Watched("C", ["Mul"]), Watched("D", ["Add"]))
    DataflowExecutor(plan).run([np.ones(3, np.float32)])
    assert seen.index("A") > seen.index("B")
    assert seen[-1] == "D"


def test_an_error_ends_the_run_and_the_executor_goes_on() -> None:
    """Arenas come back, and the next run is right."""
    broken = [True]

    class Failing(SlowDevice):
        def _sleep(self) -> None:
            if broken[0]:
                raise RuntimeError("device lost")

    plan = plan_of(
        "graph(x: float[n]) -> (y: float[n]) {\na = Relu(x)\nb = Neg(a)\ny = Relu(b)\n}",
        SlowDevice("A", ["Relu"]),
        Failing("B", ["Neg"]),
    )
    executor = DataflowExecutor(plan)
    with pytest.raises(EPFail, match="B failed to run its partition .*: RuntimeError: device lost"):
        executor.run([np.ones(3, np.float32)])
    broken[0] = False
    assert executor.run([np.float32([-1, 2])])[0].tolist() == [0, 0]
    assert executor.trim() > 0
    assert executor.trim() == 0


def test_a_cancelled_run_stops() -> None:
    """The executor asks between steps."""
    executor = DataflowExecutor(make(MIXED, {"Relu", "Neg"}, {"Exp"}))
    with ended_by(Flag(True)), pytest.raises(Fail, match="terminated"):
        executor.run([np.zeros(2, np.float32)])


def test_an_input_and_a_constant_may_be_given_out() -> None:
    """They have slots that no step fills."""
    plan = plan_of("graph(x: float[n]) -> (x, k: float[2], y: float[n]) {\nk: float[2] = [1, 2]\ny = Neg(x)\n}", *_devices())
    results: list[Any] = DataflowExecutor(plan).run([np.float32([3])])
    assert [item.tolist() for item in results] == [[3], [1, 2], [-3]]
