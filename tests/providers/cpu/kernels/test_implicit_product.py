"""The steps that convolutions share."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.channels_last import compare, model_of, program_steps, random

from sardonyx import InferenceSession


def _model(M: int, C: int, kernel: int, **attributes: Any) -> bytes:
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    return model_of(nodes, {"x": ["n", C, "h", "w"]}, {"w": random(M, C, kernel, kernel), "b": random(M)})


def _steps(C: int, **attributes: Any) -> str:
    return " ".join(program_steps(_model(8, C, 3, **attributes)))


@pytest.mark.parametrize(("C", "pads", "padded", "bordered"), [(16, [0] * 4, 0, 0), (16, [1] * 4, 1, 0), (3, [1] * 4, 0, 1)])
def test_only_windows_that_may_leave_the_input_are_checked(C: int, pads: list[int], padded: bool, bordered: bool) -> None:
    """Without padding, and with a border around few channels, rows are addressed without a question."""
    steps = _steps(C, pads=pads, strides=[2, 9])
    assert ("_padded" in steps) == padded
    assert ("border2d" in steps) == bordered


@pytest.mark.parametrize("M", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("C", "kernel", "pads"), [(20, 3, [1] * 4), (33, 1, [0] * 4), (6, 3, [1, 0, 0, 1])])
def test_few_output_channels(M: int, C: int, kernel: int, pads: list[int]) -> None:
    """Vectors lie along the input's channels, over all taps of a row where these are few."""
    model = _model(M, C, kernel, pads=pads)
    assert any(f"to{M}_" in step for step in program_steps(model)) == (M < 5)
    compare(model, [{"x": random(2, C, 9, 7)}, {"x": random(1, C, 30, 31)}])


@pytest.mark.parametrize("height", [5, 40])
@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
def test_images_of_a_batch_lie_one_after_another(op_type: str, height: int) -> None:
    """Also where places of one phase lie apart, and images are not whole numbers of their rows."""
    node = helper.make_node(op_type, ["x", "w"], ["y"], strides=[2, 2], group=17)
    model = model_of([node], {"x": ["n", 17, "h", "w"]}, {"w": random(17, 1, 3, 3)})
    compare(model, [{"x": random(3, 17, height, 7)}])


def test_a_batch_is_what_its_images_are_alone() -> None:
    """Bit for bit."""
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[3, 2], pads=[1, 0, 0, 1], group=20)
    session = InferenceSession(model_of([node], {"x": ["n", 20, "h", "w"]}, {"w": random(20, 1, 4, 3)}))
    x = random(3, 20, 9, 8)
    whole = session.run(None, {"x": x})[0]
    assert np.array_equal(whole, np.concatenate([session.run(None, {"x": x[i : i + 1]})[0] for i in range(3)]))
