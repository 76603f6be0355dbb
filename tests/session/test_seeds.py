"""Random numbers repeat where one asks for it."""

from __future__ import annotations

import numpy as np
from support.models import model

import sardonyx
from sardonyx.formats.onnx import to_bytes

TEXT = "graph(x: float[4]) -> (y: float[4], z: float[4]) {\ny = RandomNormalLike(x)\nz = RandomUniformLike(x) {seed = 3.0}\n}"
DRAW = to_bytes(model(TEXT))
X = np.zeros(4, np.float32)


def test_the_same_seed_draws_the_same_numbers() -> None:
    """Runs after a seed give what runs after the same seed gave; without it they differ."""
    session = sardonyx.InferenceSession(DRAW)
    sardonyx.set_seed(7)
    first, second = session.run(["y"], {"x": X})[0], session.run(["y"], {"x": X})[0]
    sardonyx.set_seed(7)
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], first)
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], second)
    assert (first != second).any()


def test_a_node_with_a_seed_of_its_own_is_not_touched() -> None:
    """It draws the same at every run, in every session."""
    expected = sardonyx.InferenceSession(DRAW).run(["z"], {"x": X})[0]
    sardonyx.set_seed(8)
    np.testing.assert_array_equal(sardonyx.InferenceSession(DRAW).run(["z"], {"x": X})[0], expected)


def test_a_seed_may_be_negative() -> None:
    """As in onnxruntime; the same numbers come again."""
    drawn = []
    for seed in (-1, -2, -1):
        sardonyx.set_seed(seed)
        drawn.append(sardonyx.InferenceSession(DRAW).run(["y"], {"x": X})[0].tolist())
    assert drawn[0] == drawn[2] != drawn[1]
