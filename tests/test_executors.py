"""What a package needs to bring an executor."""

from __future__ import annotations

import numpy as np
from support.branches import SlowDevice, plan_of

from sardonyx import executors
from sardonyx.executors import DataflowExecutor, RunsPlan


def test_the_names_are_there() -> None:
    """Each of them; those of the protocol are what an executor has."""
    assert all(hasattr(executors, name) for name in executors.__all__)
    plan = plan_of("graph(x: float[n]) -> (y: float[n]) {\na = Relu(x)\ny = Neg(a)\n}", SlowDevice("A", ["Relu"]))
    executor: RunsPlan = DataflowExecutor(plan)
    x = np.array([1, -2], np.float32)
    np.testing.assert_array_equal(np.asarray(executor.run([x])[0]), -np.maximum(x, 0))
    assert executor.trim() >= 0
