"""The choice of an executor for a plan."""

from __future__ import annotations

import pytest
from support.branches import SlowDevice, plan_of

from sardonyx.runtime.executor import EXECUTORS, make_executor
from sardonyx.runtime.executors.dataflow import DataflowExecutor
from sardonyx.runtime.executors.parallel import ParallelExecutor
from sardonyx.runtime.executors.sequential import SequentialExecutor

_TEXT = "graph(x: float[n]) -> (y: float[n]) {\na = Relu(x)\ny = Neg(a)\n}"
_KINDS = {"sequential": SequentialExecutor, "dataflow": DataflowExecutor, "parallel": ParallelExecutor}


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_name_is_an_executor(name: str) -> None:
    """For a plan of one step it is the sequential one."""
    assert type(make_executor(plan_of(_TEXT, SlowDevice("A", ["Relu"]), SlowDevice("B", ["Neg"])), name, 2)) is _KINDS[name]
    assert type(make_executor(plan_of(_TEXT), name, 2)) is SequentialExecutor
