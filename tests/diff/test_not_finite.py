"""Where NaN and infinities come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model

from sardonyx.diff import NotFinite, diff_model

SOFTMAX = """graph(x: float16[n, 3]) -> (y: float16[n, 3]) {
axes: int64[1] = [1]
e = Exp(x) @exp
s = ReduceSum(e, axes) @sum
y = Div(e, s) @div
}"""
HALF = np.float16([[1, 2, 20]])


def _found(text: str, **feed: Any) -> tuple[NotFinite, ...]:
    plain = "level=none,provider=Reference"
    return diff_model(model(text), a=plain, b=plain, feed=feed, window=2).not_finite


def test_nan_is_led_back_to_the_overflow_that_it_was_made_of() -> None:
    """Though both sides agree on it: e^20 is more than float16 has."""
    (found,) = _found(SOFTMAX, x=HALF)
    assert (found.kind, found.value, found.node.name, found.node.index, found.count, found.elements) == ("NaN", "y", "div", 2, 1, 3)
    assert found.of_infinities
    before = found.before
    assert before is not None
    assert (before.kind, before.node.name, before.count, before.largest, before.greatest) == ("infinities", "exp", 1, 20, 65504)


def test_nan_of_finite_numbers_has_nothing_before_it() -> None:
    """The logarithm of a number below zero, which later nodes pass on; each node is named once."""
    (found,) = _found(
        "graph(x: float[n]) -> (y: float[n], z: float[n]) {\na = Log(x) @log\nb = Neg(a)\ny = Neg(b)\nz = Abs(b)\n}",
        x=np.float32([-4, 1]),
    )
    assert (found.kind, found.node.name, found.largest, found.of_infinities, found.before) == ("NaN", "log", 4, False, None)


@pytest.mark.parametrize("x", [[0.5, np.inf], [0.5, np.nan], [1, 2]])
def test_what_is_fed_comes_from_no_node(x: list[float]) -> None:
    """Nor does what is finite."""
    assert _found("graph(x: float[n]) -> (y: float[n]) {\na = Neg(x)\ny = Neg(a)\n}", x=np.float32(x)) == ()


def test_nan_of_infinities_that_are_fed_are_said_to_be() -> None:
    """The node that makes them is still the first with NaN."""
    (found,) = _found("graph(x: float[n]) -> (y: float[n]) {\ny = Sub(x, x) @sub\n}", x=np.float32([np.inf]))
    assert (found.node.name, found.of_infinities, found.before) == ("sub", True, None)


def test_values_that_are_no_floats_are_passed_over() -> None:
    """Text, truth values and sequences on the way."""
    text = "graph(x: float[n]) -> (y: float[n]) {\nk = IsNaN(x)\ns = Cast(x) {to = 8}\nl = SequenceConstruct(s)\nw = Log(x) @log\ny = Where(k, x, w)\nz = SequenceLength(l)\n}"
    assert [item.node.name for item in _found(text, x=np.float32([-1]))] == ["log"]
