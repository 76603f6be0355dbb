"""Products of matrices of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

from sardonyx import errors

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("keeps", [False, True])
def test_rows_of_weights_are_outputs(keeps: bool) -> None:
    """The input is a list of rows, in the shape of the input where the options keep it."""
    x, w, b = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 3, 4), (5, 4), (5,)))
    options = ("FullyConnectedOptions", {"keep_num_dims": keeps})
    shape = (2, 3, 5) if keeps else (6, 5)
    found = run(one("FULLY_CONNECTED", [((2, 3, 4), "FLOAT32"), w, b], (shape, "FLOAT32"), options), x)[0]
    np.testing.assert_allclose(found, (x @ w.T + b).reshape(shape), atol=1e-5)


def test_integers_are_multiplied() -> None:
    """By scales of rows."""
    x, w = RNG.integers(-128, 128, (3, 8)).astype(np.int8), RNG.integers(-127, 128, (4, 8)).astype(np.int8)
    scales = np.array([0.01, 0.02, 0.03, 0.04], np.float32)
    sketch = Sketch()
    made = sketch.tensor((3, 4), "INT8", (0.5, 2))
    sketch.operator(
        "FULLY_CONNECTED", [sketch.input((3, 8), "INT8", (0.1, 3)), sketch.constant(w, (scales, [0] * 4, 0)), -1], [made]
    )
    real = 0.1 * (x.astype(float) - 3) @ (w * scales[:, None]).astype(float).T
    found = run(sketch.model([made]), x)[0]
    assert np.abs(found - np.clip(real / 0.5 + 2, -128, 127)).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("sides", [(False, False), (True, False), (False, True), (True, True)])
def test_sides_of_a_batch_may_be_transposed(sides: tuple[bool, bool]) -> None:
    """Leading axes are broadcast."""
    x, y = RNG.normal(size=(2, 3, 4)).astype(np.float32), RNG.normal(size=(1, 4, 5)).astype(np.float32)
    left, right = x.swapaxes(1, 2) if sides[0] else x, y.swapaxes(1, 2) if sides[1] else y
    options = ("BatchMatMulOptions", {"adj_x": sides[0], "adj_y": sides[1]})
    data = one("BATCH_MATMUL", [(left.shape, "FLOAT32"), (right.shape, "FLOAT32")], ((2, 3, 5), "FLOAT32"), options)
    np.testing.assert_allclose(run(data, left, right)[0], x @ y, atol=1e-5)


def test_shuffled_weights_are_not_implemented() -> None:
    """They are for processors without wide vectors."""
    options = ("FullyConnectedOptions", {"weights_format": 1})
    data = one("FULLY_CONNECTED", [((1, 4), "FLOAT32"), np.ones((2, 4), np.float32)], ((1, 2), "FLOAT32"), options)
    with pytest.raises(errors.NotImplemented, match="shuffled weights"):
        run(data, np.ones((1, 4), np.float32))
