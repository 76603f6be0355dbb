"""GroupNormalization over channels-last data."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support.channels_last import compare, compiled, model_of, program_steps, random


def _model(shape: tuple[int | str, ...], groups: int, opset: int = 21, tail: bool = True) -> bytes:
    """A convolution, so that data is channels-last, the normalization, and Swish written out with a residual."""
    channels, rank = int(shape[1]), len(shape)
    count = channels if opset >= 21 else groups
    nodes: list[onnx.NodeProto] = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("GroupNormalization", ["c", "scale", "bias"], ["n"], num_groups=groups, epsilon=1e-3),
    ]
    if tail:
        nodes += [
            helper.make_node("Sigmoid", ["n"], ["s"]),
            helper.make_node("Mul", ["n", "s"], ["m"]),
            helper.make_node("Add", ["m", "c"], ["y"]),
        ]
    else:
        nodes[-1].output[0] = "y"
    constants = {
        "w": random(channels, channels, *[1] * (rank - 2), seed=1),
        "scale": random(count, seed=2),
        "bias": random(count, seed=3),
    }
    return model_of(nodes, {"x": shape}, constants, opset=opset)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("spatial", [(1, 1), (5, 3), (17, 13), (7,), (2, 3, 4)])
def test_groups_of_any_width(groups: int, spatial: tuple[int, ...]) -> None:
    """From all channels at once to each on its own; images of one pixel give the bias."""
    names = [f"d{k}" for k in range(len(spatial))]
    compare(_model(("n", 6, *names), groups), [{"x": random(batch, 6, *spatial)} for batch in (2, 1)], tolerance=1e-5)


def test_more_channels_than_a_vector_has_lanes() -> None:
    """Widths that do not fit the vectors: 36 channels in 12 groups."""
    compare(_model((2, 36, 9, 5), 12, tail=False), [{"x": random(2, 36, 9, 5)}], tolerance=1e-5)


def test_elements_far_from_zero_keep_their_accuracy() -> None:
    """The mean is a thousand times the deviation."""
    node = helper.make_node("GroupNormalization", ["c", "scale", "bias"], ["y"], num_groups=2)
    pool = helper.make_node("MaxPool", ["x"], ["c"], kernel_shape=[1, 1])
    constants = {"scale": np.ones(4, np.float32), "bias": np.zeros(4, np.float32)}
    model = model_of([pool, node], {"x": [2, 4, 30, 30]}, constants, opset=21)
    compare(model, [{"x": random(2, 4, 30, 30) + 1000}], tolerance=2e-5)


def test_what_rounding_the_mean_loses_is_made_up_for() -> None:
    """Numbers that are a few units in the last place apart have a mean between two floats."""
    node = helper.make_node("GroupNormalization", ["c", "scale", "bias"], ["y"], num_groups=2)
    pool = helper.make_node("MaxPool", ["x"], ["c"], kernel_shape=[1, 1])
    constants = {"scale": np.ones(4, np.float32), "bias": np.zeros(4, np.float32)}
    x = (2.0**21 + np.random.default_rng(0).integers(0, 4, (2, 4, 9, 7)) ** 2 / 4).astype(np.float32)
    groups = x.reshape(2, 2, -1).astype(np.float64)
    exact = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    found = compiled(model_of([pool, node], {"x": [2, 4, 9, 7]}, constants, opset=21)).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, exact.reshape(x.shape), atol=1e-6)


def test_what_follows_is_computed_in_the_store() -> None:
    """Three steps, of which the last takes up the element-wise nodes."""
    steps = [step for step in program_steps(_model((1, 6, 5, 5), 2)) if "GroupNormalization" in step]
    assert len(steps) == 3


def test_a_scale_for_each_group_stays_in_nchw() -> None:
    """Opset 18 gave numbers to groups, not to channels."""
    compare(_model((1, 6, 5, 5), 2, opset=18), [{"x": random(1, 6, 5, 5)}], tolerance=1e-5)
