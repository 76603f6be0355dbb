"""The sequential executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from runtime.test_plan import MIXED, make
from support.cancelling import ended_by

from sardonyx.cancellation import Flag
from sardonyx.errors import EPFail, Fail
from sardonyx.provider import HOST, Bound, PlainCalls
from sardonyx.runtime.executors.sequential import SequentialExecutor, TailedProgram
from sardonyx.runtime.plan import Plan, ProgramStep, Segment


def test_a_plan_over_two_memories_computes_what_numpy_does() -> None:
    """Programs, copies and arenas together give the right numbers, twice."""
    executor = SequentialExecutor(make(MIXED, {"Relu", "Neg"}, {"Exp"}))
    x = np.float32([-1.0, 2.0])
    for _ in range(2):
        (y,) = executor.run([x])
        np.testing.assert_allclose(y, -np.exp(np.maximum(np.exp(x), 0)), rtol=1e-6)


def test_a_new_shape_is_bound_while_running() -> None:
    """One executor serves every size."""
    executor = SequentialExecutor(make(MIXED, {"Relu", "Neg"}, {"Exp"}))
    for size in (1, 3, 0, 1000):
        assert executor.run([np.zeros(size, np.float32)])[0].shape == (size,)


def test_trim_gives_back_the_arenas() -> None:
    """After a run the arena is idle; trim returns its bytes."""
    executor = SequentialExecutor(make(MIXED, {"Relu", "Neg"}, {"Exp"}))
    executor.run([np.zeros(1000, np.float32)])
    assert executor.trim() > 0
    assert executor.trim() == 0


def test_a_cancelled_run_stops() -> None:
    """The executor asks between steps."""
    executor = SequentialExecutor(make(MIXED, {"Relu", "Neg"}, {"Exp"}))
    with ended_by(Flag(True)), pytest.raises(Fail, match="terminated"):
        executor.run([np.zeros(2, np.float32)])


class _Program:
    makes_outputs = True

    def __init__(self, result: Any) -> None:
        self._result = result

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return Bound((None,))

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result  # type: ignore[no-any-return]  # whatever the test wants a bad program to return


def _plan(program: _Program) -> Plan:
    step = ProgramStep(program, "part_0", "Odd", HOST, (0,), (1,), ())
    return Plan((step,), (Segment(0, 1, (0,), True),), 2, (0,), (), (), (1,), (0, 1), (HOST,))


def test_a_program_that_raises_is_named() -> None:
    """Whatever a plug-in raises becomes an EPFail with provider and partition."""
    with pytest.raises(EPFail, match="Odd failed to run its partition part_0: RuntimeError: broken"):
        SequentialExecutor(_plan(_Program(RuntimeError("broken")))).run([0])


def test_a_program_with_the_wrong_number_of_results_is_named() -> None:
    """A plug-in's mistake does not become a wrong result."""
    with pytest.raises(EPFail, match="Odd returned 2 values for partition part_0, expected 1"):
        SequentialExecutor(_plan(_Program([1, 2]))).run([0])


class _Filling(_Program):
    makes_outputs = False


class _Plain(_Program):
    def plain_calls(self) -> Any:
        return self._result


def _tailed(head: _Program, tail: _Program, reads: tuple[int, ...] = (1,), captures: tuple[int, ...] = ()) -> TailedProgram | None:
    steps = ProgramStep(head, "part_0", "Odd", HOST, (0,), (1, 2), ()), ProgramStep(tail, "part_1", "Odd", HOST, reads, (3,), ())
    plan = Plan(steps, (Segment(0, 2, (0,), False),), 4, (0,), captures, (), (2, 3), (0, 1, 2, 2), (HOST,))
    return SequentialExecutor(plan).find_tailed()


def test_a_program_with_a_tail_is_found() -> None:
    """What follows reads its results by their places, and adds its own."""
    found = _tailed(_Filling([]), _Plain(PlainCalls(((len, (0,)),), (1,))))
    assert found is not None
    assert found.head.results == (0, 1)
    assert found.tail == ((len, (0,)),)
    assert found.results == (1, 2)


def test_what_a_tail_makes_on_its_way_has_a_place() -> None:
    """Between the results of the first program and what is an output."""
    found = _tailed(_Filling([]), _Plain(PlainCalls(((len, (0,)), (abs, (1,))), (2,))))
    assert found is not None
    assert found.tail == ((len, (0,)), (abs, (2,)))
    assert found.results == (1, 3)


@pytest.mark.parametrize(
    ("head", "tail", "more"),
    [
        (_Program([]), _Plain(PlainCalls(((len, (0,)),), (1,))), {}),
        (_Filling([]), _Plain(None), {}),
        (_Filling([]), _Program([]), {}),
        (_Filling([]), _Plain(PlainCalls(((len, (0,)),), (1,))), {"reads": (0,)}),
        (_Filling([]), _Plain(PlainCalls(((len, (0,)),), (1,))), {"captures": (0,)}),
    ],
)
def test_other_plans_have_no_tail(head: _Program, tail: _Program, more: dict[str, Any]) -> None:
    """The first program makes its outputs, the others cannot be called as they are or read more, or there are captures."""
    assert _tailed(head, tail, **more) is None
