"""Convolutions of images as they come: read from their planes, with nothing copied before."""

from typing import Any

import pytest
from onnx import helper
from support.channels_last import compare, model_of, program_steps, random

_SIZES = [(2, 9, 37), (1, 24, 16), (3, 4, 4), (0, 9, 9)]


def _model(x: list[int | str], w: tuple[int, ...], **attributes: Any) -> bytes:
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    return model_of(nodes, {"x": x}, {"w": random(*w), "b": random(w[0], seed=1)})


@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((16, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ((64, 3, 7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
        ((70, 3, 4, 4), {"strides": [4, 4]}),
        ((24, 1, 5, 5), {"auto_pad": "SAME_UPPER"}),
        ((24, 4, 2, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
        ((5, 8, 1, 3), {"pads": [0, 0, 2, 5]}),
    ],
)
def test_images(w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """One session serves every batch and image size, and needs one kernel but for the transposed result."""
    model = _model(["n", w[1], "h", "w"], w, **attributes)
    assert [step for step in program_steps(model) if "planes_f32" in step]
    assert not [step for step in program_steps(model) if "border" in step or "interleave_3" in step.replace("deinterleave", "")]
    compare(model, [{"x": random(n, w[1], height, width)} for n, height, width in _SIZES])


def test_sequences() -> None:
    """They are images of one row."""
    model = _model(["n", 2, "t"], (40, 2, 10), strides=[5], pads=[4, 3])
    assert [step for step in program_steps(model) if "planes_f32" in step]
    compare(model, [{"x": random(2, 2, 301)}, {"x": random(1, 2, 10)}])


@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((16, 9, 3, 3), {}),
        ((16, 3, 3, 12), {}),
        ((16, 3, 17, 3), {}),
        ((16, 3, 3, 3), {"dilations": [1, 2]}),
        ((16, 3, 3, 3), {"strides": [1, 9]}),
        ((768, 3, 8, 8), {"strides": [8, 8]}),
        ((16, 4, 3, 3), {"group": 2}),
    ],
)
def test_others_go_the_general_way(w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """Many channels, long or dilated windows, long strides, many filters and groups."""
    C = w[1] * attributes.get("group", 1)
    model = _model(["n", C, "h", "w"], w, **attributes)
    assert not [step for step in program_steps(model) if "planes_f32" in step]
    compare(model, [{"x": random(1, C, 20, 24)}])


def test_images_with_the_channels_last_go_the_general_way() -> None:
    """Their elements do not lie plane by plane."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["t", "w"], ["y"], pads=[1, 1, 1, 1]),
    ]
    model = model_of(nodes, {"x": ["n", "h", "w", 3]}, {"w": random(16, 3, 3, 3)})
    assert not [step for step in program_steps(model) if "planes_f32" in step]
    compare(model, [{"x": random(2, 7, 9, 3)}])


def test_an_image_that_others_read_too_is_transposed_for_them() -> None:
    """Two convolutions, of which only one reads planes."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["x", "v"], ["b"], pads=[2, 2, 2, 2], dilations=[2, 2]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    constants = {"w": random(16, 3, 3, 3), "v": random(16, 3, 3, 3, seed=1)}
    compare(model_of(nodes, {"x": ["n", 3, "h", "w"]}, constants), [{"x": random(2, 3, 7, 9)}])
