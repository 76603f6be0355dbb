"""Options of custom operators."""

import struct

import numpy as np
import pytest
from support.flat_models import Sketch

import sardonyx
from sardonyx import errors


def _model(options: bytes) -> bytes:
    sketch = Sketch()
    x = sketch.input((1, 2, 2, 1))
    made = [sketch.tensor((1, 1, 1, 1)) for _ in range(2)]
    sketch.operator("MaxPoolingWithArgmax2D", [x], made, custom_options=np.frombuffer(options, np.uint8))
    return sketch.model(made)


def test_a_structure_that_is_too_short_is_refused() -> None:
    """With its fields."""
    with pytest.raises(errors.InvalidFlatBuffer, match="expected 24 or more: padding stride_width"):
        sardonyx.InferenceSession(_model(struct.pack("<5i", 2, 2, 2, 2, 2)))


def test_more_bytes_than_the_structure_has_are_left_alone() -> None:
    """What the runtime computed behind it."""
    session = sardonyx.InferenceSession(_model(struct.pack("<10i", 2, 2, 2, 2, 2, 0, 9, 9, 9, 9)))
    assert session.run(None, {"t0": np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)})[0].item() == 3
