"""What convolutions compute in their store."""

import pytest
from onnx import helper
from support.channels_last import compare, model_of, program_steps, random

_WAYS = [((12, 12, 3, 3), {"pads": [1, 1, 1, 1]}), ((12, 12, 1, 1), {}), ((12, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 12})]
"""Tap by tap, as a plain product, and depthwise."""


@pytest.mark.parametrize(("w", "attributes"), _WAYS)
def test_activations_are_no_steps(w: tuple[int, ...], attributes: dict[str, object]) -> None:
    """A chain of activations, short or long, runs in the step of the convolution."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes),
        helper.make_node("HardSwish", ["c"], ["d"]),
        helper.make_node("Tanh", ["d"], ["e"]),
        helper.make_node("Mul", ["e", "half"], ["y"]),
    ]
    constants = {"w": random(*w) / 10, "b": random(12), "half": random(1)}
    model = model_of(nodes, {"x": ["n", 12, "h", "w"]}, constants)
    assert sum("Conv+HardSwish+Tanh+Mul" in step for step in program_steps(model)) == 1
    compare(model, [{"x": random(2, 12, 5, 11)}, {"x": random(1, 12, 7, 3)}])


@pytest.mark.parametrize(("w", "attributes"), _WAYS)
def test_a_residual_is_no_step(w: tuple[int, ...], attributes: dict[str, object]) -> None:
    """What another convolution made is added in the store."""
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["r"]),
        helper.make_node("Conv", ["r", "w", "b"], ["c"], **attributes),
        helper.make_node("Add", ["c", "r"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    constants = {"v": random(12, 12, 1, 1), "w": random(*w), "b": random(12)}
    model = model_of(nodes, {"x": ["n", 12, "h", "w"]}, constants)
    assert sum("Conv+Add+Relu" in step for step in program_steps(model)) == 1
    compare(model, [{"x": random(2, 12, 5, 11)}, {"x": random(1, 12, 7, 3)}])


def test_one_number_for_each_channel() -> None:
    """A scale that was (C, 1, 1) goes along the channels."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["c", "scale"], ["y"]),
    ]
    constants = {"w": random(20, 12, 3, 3), "scale": random(20, 1, 1)}
    compare(model_of(nodes, {"x": ["n", 12, "h", "w"]}, constants), [{"x": random(2, 12, 5, 6)}])
