"""Tests of steps whose arrays stay where they are."""

from __future__ import annotations

import numpy as np
from support.session_models import session

from sardonyx.generate.bound_step import BoundStep

TEXT = "graph(x: float[n], cache: float[m]) -> (y: float[n], grown: float[m]) {\ny = Neg(x)\ngrown = Add(cache, cache)\n}"


def test_runs_read_the_newest_contents_and_fill_the_same_arrays() -> None:
    """Also after the session has learnt to run the binding natively; a cache goes on from what it became."""
    held, cache, y = session(TEXT), np.ones(3, np.float32), np.zeros(2, np.float32)
    step = BoundStep(held, {"x": np.zeros(2, np.float32)}, {"cache": cache}, {"y": y, "grown": cache})
    for value in range(1, 8):
        step.run({"x": np.full(2, value, np.float32)})
        assert y.tolist() == [-value] * 2
        assert cache.tolist() == [2.0**value] * 3


def test_other_shapes_and_targets_do_not_fit() -> None:
    """They need a binding of their own."""
    held, y = session("graph(x: float[n]) -> (y: float[n]) {\ny = Neg(x)\n}"), np.zeros(2, np.float32)
    feeds = {"x": np.zeros(2, np.float32)}
    step = BoundStep(held, feeds, {}, {"y": y})
    assert step.fits(held, feeds, y)
    assert not step.fits(held, {"x": np.zeros(3, np.float32)}, y)
    assert not step.fits(held, feeds, y.copy())
