"""The view of Softmax and its kin."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.softmax import Softmax


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
def test_before_13_a_row_goes_over_all_axes_from_1(op_type: str) -> None:
    """By default axis 1 begins a row, which goes to the last axis."""
    view = Softmax.of(node(op_type, 12))
    assert view == Softmax(1, is_flat=True)
    assert list(view.row(4)) == [1, 2, 3]


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
def test_since_13_a_row_goes_along_the_last_axis(op_type: str) -> None:
    """By default the last axis alone is a row."""
    view = Softmax.of(node(op_type, 13))
    assert view == Softmax(-1, is_flat=False)
    assert list(view.row(4)) == [3]


def test_a_quantized_softmax_names_its_opset() -> None:
    """QLinearSoftmax is the Softmax of the opset that its attribute says, whatever its own version."""
    assert Softmax.of(node("QLinearSoftmax", 1, domain="com.microsoft", opset=12)).is_flat
    assert not Softmax.of(node("QLinearSoftmax", 1, domain="com.microsoft", opset=13)).is_flat


def test_a_quantized_softmax_begins_at_the_last_axis() -> None:
    """By default, whatever the opset that it names: ONNX Runtime fills in the default of its own schema."""
    assert Softmax.of(node("QLinearSoftmax", 1, domain="com.microsoft", opset=12)).axis == -1


def test_negative_axes_count_from_the_end() -> None:
    """The axis of a row is counted from the front."""
    assert Softmax.of(node("Softmax", 13, axis=-2)).first(3) == 1


@pytest.mark.parametrize("version", [1, 11, 13])
def test_an_axis_that_is_not_there_is_refused(version: int) -> None:
    """The rank is no axis in any version, as in ONNX Runtime."""
    with pytest.raises(InvalidGraph, match=r"axis=3 is outside \[-3, 2\]"):
        Softmax.of(node("Softmax", version, axis=3)).row(3)


def test_another_kind_is_refused() -> None:
    """The message names the node and the kinds."""
    with pytest.raises(InvalidGraph, match=r'node "n" \(Softmax, opset 13\): attribute \'axis\' has type FLOAT .*expected INT'):
        Softmax.of(node("Softmax", 13, axis=1.0))
