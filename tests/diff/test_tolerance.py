"""By how much correct computations may differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model

from sardonyx.diff.configuration import parse_configuration
from sardonyx.diff.engines import engine_for
from sardonyx.diff.slices import Part, Slices
from sardonyx.diff.tolerance import Tolerance, off_by
from sardonyx.ops.infer import infer_graph

PLAIN = engine_for(parse_configuration("level=none,provider=Reference"))
ADD = "graph(x: float[4]) -> (y: float[4]) {\ny = Neg(x)\n}"
CANCELS = "graph(x: float[4]) -> (y: float[4]) {\nk: float[1] = [10000]\na = Add(x, k)\ny = Sub(a, k)\n}"
PICKS = "graph(x: float[4]) -> (y: int64[1]) {\ny = ArgMax(x) {axis = 0}\n}"
X = np.float32([0.1, 0.2, 0.3, 0.4])


def part_of(text: str, x: Any = X) -> Part:
    held = model(text)
    infer_graph(held)
    slices = Slices(held)
    return slices.whole(slices.start({"x": x}))


def judged(tolerance: Tolerance, part: Part, b: Any) -> Any:
    a = PLAIN.load(part.model).run(part.feed)
    (error,) = tolerance.judge(part, a, [b], lambda again, feed: PLAIN.load(again).run(feed))
    return error


def test_rounding_is_accepted_and_more_is_not() -> None:
    """The limit is 32 roundings of the largest element, where one node computes."""
    assert judged(Tolerance(), part_of(ADD), -X * np.float32(1 + 1e-7)).agrees
    error = judged(Tolerance(), part_of(ADD), -X + np.float32(1e-3))
    assert not error.agrees
    assert error.limit == pytest.approx(32 * 2**-24 * 0.4, rel=1e-3) or error.limit < 1e-5


def test_limits_grow_with_the_type() -> None:
    """float16 is coarser, and so is a side that computes in bfloat16."""
    half = part_of(ADD.replace("float", "float16"), X.astype(np.float16))
    assert Tolerance().unit_of(half) == 4 * 2.0**-11
    assert Tolerance(precisions=("BF16",)).unit_of(part_of(ADD)) == 4 * 2.0**-8


def test_what_rounding_does_where_numbers_cancel_is_accepted() -> None:
    """The result is as large as the rounding errors of what it is made of."""
    part = part_of(CANCELS)
    assert judged(Tolerance(), part, X.astype(np.float32)).agrees
    assert not judged(Tolerance(), part, X + np.float32(0.5)).agrees


def test_a_choice_that_rounding_changes_may_differ() -> None:
    """Of two equal maxima either is the greatest; of others it is not."""
    tied = part_of(PICKS, np.float32([1, 1, 0, 0]))
    assert judged(Tolerance(), tied, np.int64([1])).agrees
    assert not judged(Tolerance(), part_of(PICKS), np.int64([0])).agrees


def test_limits_of_the_user_hold_element_by_element() -> None:
    """As numpy.allclose has them."""
    part = part_of(ADD)
    assert judged(Tolerance(rtol=0.1), part, -X * np.float32(1.05)).agrees
    assert not judged(Tolerance(rtol=0.1), part, -X - np.float32([0.02, 0, 0, 0])).agrees
    assert judged(Tolerance(atol=0.05), part, -X - np.float32([0.02, 0, 0, 0])).agrees
    assert not judged(Tolerance(atol=0.05), part, -X * np.float32(np.nan)).agrees


def test_another_shape_is_never_accepted() -> None:
    """Where rounding alone does not change it."""
    assert not judged(Tolerance(), part_of(ADD), np.zeros(3, np.float32)).agrees


def test_inputs_and_what_is_between_are_off() -> None:
    """Inputs by a unit in either direction, each element by itself; the rest by a quarter of it."""
    moved, feed = off_by(part_of(CANCELS), 0.5, np.random.default_rng(0))
    assert set(np.round(np.asarray(feed["x"]) / X, 6).tolist()) <= {0.5, 1.5}
    assert [node.op_type for node in moved.graph] == ["Add", "Mul", "Sub"]
    factor = next(value.constant for name, value in moved.graph.initializers.items() if name == "a/off")
    assert factor is not None
    assert float(factor.numpy()) in (0.875, 1.125)
