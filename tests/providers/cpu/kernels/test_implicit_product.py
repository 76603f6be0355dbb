"""The step that convolutions share."""

from typing import Any

import pytest
from onnx import helper
from support.channels_last import compare, model_of, program_steps, random


def _model(M: int, C: int, kernel: int, **attributes: Any) -> bytes:
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    return model_of(nodes, {"x": ["n", C, "h", "w"]}, {"w": random(M, C, kernel, kernel), "b": random(M)})


def _steps(C: int, **attributes: Any) -> str:
    return " ".join(program_steps(_model(8, C, 3, **attributes)))


@pytest.mark.parametrize(("C", "pads", "padded", "bordered"), [(16, [0] * 4, 0, 0), (16, [1] * 4, 1, 0), (3, [1] * 4, 0, 1)])
def test_only_windows_that_may_leave_the_input_are_checked(C: int, pads: list[int], padded: bool, bordered: bool) -> None:
    """Without padding, and with a border around few channels, rows are addressed without a question."""
    steps = _steps(C, pads=pads, strides=[2, 2])
    assert ("_padded" in steps) == padded
    assert ("border2d" in steps) == bordered


@pytest.mark.parametrize("M", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("C", "kernel", "pads"), [(20, 3, [1] * 4), (33, 1, [0] * 4), (6, 3, [1, 0, 0, 1])])
def test_few_output_channels(M: int, C: int, kernel: int, pads: list[int]) -> None:
    """Vectors lie along the input's channels, over all taps of a row where these are few."""
    model = _model(M, C, kernel, pads=pads)
    assert any(f"to{M}_" in step for step in program_steps(model)) == (M < 5)
    compare(model, [{"x": random(2, C, 9, 7)}, {"x": random(1, C, 30, 31)}])
