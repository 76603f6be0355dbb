"""Custom operators of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from support.flat_models import Sketch

import sardonyx
from sardonyx import errors


def _model(options: bytes = b"") -> bytes:
    sketch = Sketch()
    x, y = sketch.input((2,)), sketch.tensor((2,))
    sketch.operator("Scaled", [x], [y], custom_options=options)
    return sketch.model([y])


@sardonyx.op("tflite", "Scaled", outputs=["x"], types={"x": ["float"]}, shape=lambda x: x)
def _scaled(x: np.ndarray, *, factor: int = 3) -> np.ndarray:  # type: ignore[type-arg]  # as users write it
    return x * np.float32(factor)


def test_an_operator_of_a_user_runs() -> None:
    """Of the domain tflite; its options are attributes."""
    options = sardonyx.SessionOptions()
    options.add_operator(_scaled)
    feed = {"t0": np.array([1, 2], np.float32)}
    assert sardonyx.InferenceSession(_model(), options).run(None, feed)[0].tolist() == [3, 6]
    # {"factor": 5}: the key, the vector of keys, the map of one number of a byte, its type, the root
    data = b"factor\0" + b"\x01\x08" + b"\x01\x01" + b"\x01\x05\x04" + b"\x02\x24\x01"
    assert sardonyx.InferenceSession(_model(data), options).run(None, feed)[0].tolist() == [5, 10]


def test_an_operator_that_nobody_knows_is_named() -> None:
    """With its domain, for the decorator."""
    with pytest.raises(errors.SardonyxError, match="tflite.Scaled"):
        sardonyx.InferenceSession(_model())
