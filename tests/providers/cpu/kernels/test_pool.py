"""Pools on the CPU provider, in one to three axes."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.channels_last import compare, model_of, nhwc, random

from sardonyx import InferenceSession

_OPERATORS = ["MaxPool", "AveragePool", "LpPool"]


def _model(op_type: str, x: list[int | str], **attributes: Any) -> bytes:
    return model_of([helper.make_node(op_type, ["x"], ["y"], **attributes)], {"x": x}, {}, opset=22)


@pytest.mark.parametrize("op_type", _OPERATORS)
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1], "dilations": [2, 1], "ceil_mode": 1},
        {"kernel_shape": [3, 4], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ],
)
def test_two_axes(op_type: str, attributes: dict[str, Any]) -> None:
    """One session serves every batch, image size and number of channels."""
    feeds = [{"x": random(*shape)} for shape in [(2, 20, 9, 7), (1, 70, 12, 13), (0, 20, 9, 9), (3, 1, 6, 5)]]
    compare(_model(op_type, ["n", "c", "h", "w"], **attributes), feeds)


@pytest.mark.parametrize("op_type", _OPERATORS)
def test_one_and_three_axes(op_type: str) -> None:
    """Sequences and volumes."""
    compare(_model(op_type, ["n", 20, "t"], kernel_shape=[4], strides=[4]), [{"x": random(2, 20, 99)}])
    volume = _model(op_type, ["n", 20, "d", "h", "w"], kernel_shape=[2, 3, 2], strides=[1, 2, 2], auto_pad="SAME_LOWER")
    compare(volume, [{"x": random(2, 20, 5, 6, 9)}])


@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_padding_may_count(ceil_mode: int) -> None:
    """With count_include_pad the declared padding is part of the mean, what hangs over it is not."""
    model = _model(
        "AveragePool",
        ["n", 20, "h", "w"],
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 2, 2],
        ceil_mode=ceil_mode,
        count_include_pad=1,
    )
    compare(model, [{"x": random(2, 20, 9, 8)}, {"x": random(1, 20, 6, 6)}])


def test_what_hangs_over_the_padding_does_not_count() -> None:
    """The last windows of 8 places, one of padding and strides of 3 have 3 of their 4 taps within them."""
    attributes = {"kernel_shape": [4, 4], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1, "count_include_pad": 1}
    ones = np.ones((1, 20, 8, 8), np.float32)
    compare(_model("AveragePool", ["n", 20, "h", "w"], **attributes), [{"x": ones}, {"x": random(2, 20, 8, 11)}])


@pytest.mark.parametrize("p", [1, 2])
def test_norms(p: int) -> None:
    """Sums of magnitudes, and roots of sums of squares."""
    compare(_model("LpPool", ["n", 20, "h", "w"], kernel_shape=[2, 2], p=p), [{"x": random(1, 20, 5, 5)}])


def test_other_norms_and_indices_are_left_to_the_reference() -> None:
    """What is not compiled is said."""
    third = _model("LpPool", [1, 3, 5, 5], kernel_shape=[2, 2], p=3)
    node = helper.make_node("MaxPool", ["x"], ["z", "y"], kernel_shape=[2, 2])
    graph = model_of([node, helper.make_node("Cast", ["y"], ["f"], to=1)], {"x": [1, 3, 5, 5]}, {}, ["z", "f"])
    for model, reason in ((third, "order 3"), (graph, "greatest elements are is asked for")):
        first = InferenceSession(model, providers=[nhwc()]).explain()[0]
        assert reason in next(iter(first.declined.values()))


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [2, 2, 2, 2]])
def test_axes_without_elements_have_the_places_of_their_padding(op_type: str, pads: list[int]) -> None:
    """With what a window of no elements gives."""
    model = model_of([helper.make_node(op_type, ["x"], ["y"], kernel_shape=[3, 3], pads=pads)], {"x": ["n", 16, "h", "w"]}, {})
    for size in ((0, 7), (7, 0), (0, 0)):
        found, wanted = (
            InferenceSession(model, providers=[name]).run(None, {"x": random(2, 16, *size)})[0]
            for name in ("CPUExecutionProvider", "ReferenceExecutionProvider")
        )
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_a_window_larger_than_the_image_may_hang_over_its_end(op_type: str) -> None:
    """In ceil mode: it has the elements that there are."""
    attributes = {"kernel_shape": [2, 3], "strides": [2, 3], "ceil_mode": 1}
    model = model_of([helper.make_node(op_type, ["x"], ["y"], **attributes)], {"x": ["n", 16, "h", "w"]}, {}, opset=22)
    compare(model, [{"x": random(2, 16, *size)} for size in ((1, 1), (3, 2), (1, 4))])
