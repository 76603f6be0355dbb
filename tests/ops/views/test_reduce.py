"""Views of reductions and running sums."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.inputs import COMPUTED, constants
from sardonyx.ops.views.reduce import ArgExtreme, Cumulative, Reduce, takes_axes_input


@pytest.mark.parametrize(("op_type", "version"), [("ReduceSum", 11), ("ReduceMean", 13)])
def test_axes_were_an_attribute(op_type: str, version: int) -> None:
    """Before opset 13 of ReduceSum, 18 of the others."""
    assert Reduce.of(node(op_type, version, axes=[-1])).places(3) == (2,)


@pytest.mark.parametrize(("op_type", "version"), [("ReduceSum", 13), ("ReduceMean", 18)])
def test_axes_are_an_input(op_type: str, version: int) -> None:
    """A constant is known, what is computed is not."""
    constant, computed = node(op_type, version, ["x", [0, -1]]), node(op_type, version, ["x", "axes"])
    assert Reduce.of(constant, constants(constant)).places(3) == (0, 2)
    view = Reduce.of(computed, constants(computed))
    assert (view.axes, view.places(3)) == (COMPUTED, None)


def test_no_axes_are_all() -> None:
    """Unless `noop_with_empty_axes` says none."""
    for inputs in (["x"], ["x", []]):
        every, none = node("ReduceSum", 13, inputs), node("ReduceSum", 13, inputs, noop_with_empty_axes=1)
        assert Reduce.of(every, constants(every)).places(2) == (0, 1)
        assert Reduce.of(none, constants(none)).places(2) == ()


def test_an_axis_may_be_named_twice() -> None:
    """As in ONNX Runtime it is reduced once."""
    assert Reduce.of(node("ReduceMax", 11, axes=[0, -2])).places(2) == (0,)


def test_axes_stay_by_default() -> None:
    """They become 1."""
    assert Reduce.of(node("ReduceMax", 11)).keeps_axes
    assert not Reduce.of(node("ReduceMax", 11, keepdims=0)).keeps_axes


def test_an_axis_that_is_not_there_is_refused() -> None:
    """The message says the range."""
    with pytest.raises(InvalidGraph, match=r"axes=2 is outside \[-2, 1\]"):
        Reduce.of(node("ReduceMax", 11, axes=[2])).places(2)
    with pytest.raises(InvalidGraph, match=r"axis=2 is outside \[-2, 1\]"):
        ArgExtreme.of(node("ArgMax", 13, axis=2)).place(2)


def test_an_extreme_is_the_first_along_the_first_axis() -> None:
    """By default, and the axis becomes 1."""
    view = ArgExtreme.of(node("ArgMax", 13))
    assert view == ArgExtreme(0, keeps_axis=True, takes_last=False)
    assert ArgExtreme.of(node("ArgMin", 13, axis=-1)).place(3) == 2


def test_a_running_sum_goes_forwards_and_counts_itself() -> None:
    """By default."""
    assert Cumulative.of(node("CumSum", 14)) == Cumulative(is_exclusive=False, is_reversed=False)
    assert Cumulative.of(node("CumSum", 14, exclusive=1, reverse=1)) == Cumulative(is_exclusive=True, is_reversed=True)


def test_axes_became_inputs() -> None:
    """ReduceSum, Squeeze and Unsqueeze take their axes as an input from opset 13 on, the other reductions from 18."""
    assert [takes_axes_input(name, 13) for name in ("ReduceSum", "Squeeze", "Unsqueeze", "ReduceMean")] == [True, True, True, False]
    assert (takes_axes_input("ReduceSum", 12), takes_axes_input("ReduceMean", 18), takes_axes_input("Softmax", 18)) == (
        False,
        True,
        False,
    )


@pytest.mark.parametrize("number", [0, 2, -1])
def test_only_1_keeps_axes(number: int) -> None:
    """Any other number drops them, as in ONNX Runtime."""
    assert not Reduce.of(node("ReduceSum", 13, keepdims=number)).keeps_axes
    assert not ArgExtreme.of(node("ArgMax", 13, keepdims=number)).keeps_axis
