"""The step that convolutions share."""

from typing import Any

import pytest
from onnx import helper
from support.channels_last import model_of, program_steps, random


def _steps(C: int, **attributes: Any) -> str:
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    return " ".join(program_steps(model_of([node], {"x": ["n", C, "h", "w"]}, {"w": random(8, C, 3, 3)})))


@pytest.mark.parametrize(("C", "pads", "padded", "bordered"), [(16, [0] * 4, 0, 0), (16, [1] * 4, 1, 0), (3, [1] * 4, 0, 1)])
def test_only_windows_that_may_leave_the_input_are_checked(C: int, pads: list[int], padded: bool, bordered: bool) -> None:
    """Without padding, and with a border around few channels, rows are addressed without a question."""
    steps = _steps(C, pads=pads, strides=[2, 2])
    assert ("_padded" in steps) == padded
    assert ("border2d" in steps) == bordered
