"""When minimal filtering is chosen, and what it gives within a model."""

import numpy as np
import pytest
from onnx import helper
from support.channels_last import compare, model_of, program_steps, random

from sardonyx.ir import Node, Shape
from sardonyx.ir.shape import symbol
from sardonyx.ops.views.window import Sliding
from sardonyx.providers.cpu.kernels.winograd import suits_winograd


def _suits(M: int, C: int, places: Shape = (14, 14), groups: int = 1, **attributes: object) -> bool:
    window = Sliding.of(Node("Conv", [], 1, attributes, version=22)).over((3, 3))
    return suits_winograd(window, groups, np.empty((M, C, 3, 3), np.float32), places)


def test_what_suits() -> None:
    """Windows of 3 x 3 that move by one element, over some channels."""
    assert _suits(64, 64)
    assert _suits(512, 512, (symbol("h"), 16))
    assert not _suits(64, 8)
    assert not _suits(4, 64)
    assert not _suits(64, 64, strides=(2, 2))
    assert not _suits(64, 64, dilations=(1, 2))
    assert not _suits(64, 32, groups=2)


def test_many_filters_for_few_places_do_not_suit() -> None:
    """Filters that grow would be read from memory for nothing."""
    assert not _suits(512, 512, (7, 7))
    assert not _suits(2048, 2048)


@pytest.mark.parametrize("attributes", [{"pads": [1, 1, 1, 1]}, {"auto_pad": "SAME_LOWER"}, {"pads": [0, 1, 2, 0]}, {}])
def test_in_a_model(attributes: dict[str, object]) -> None:
    """One session serves every batch and image size, with what follows in the store."""
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    constants = {"w": random(33, 24, 3, 3), "b": random(33)}
    model = model_of(nodes, {"x": ["n", 24, "h", "w"]}, constants)
    assert any("winograd" in step for step in program_steps(model))
    feeds = [{"x": random(*shape)} for shape in [(2, 24, 9, 7), (1, 24, 30, 31), (0, 24, 9, 9), (1, 24, 3, 3)]]
    compare(model, feeds)
