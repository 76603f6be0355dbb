"""Hashes of text and numbers, random bits; what they compute is compared in tests/formats/tflite/test_cases.py."""

import numpy as np
import pytest
from support.flat_models import one

import sardonyx
from sardonyx import errors


def test_a_projection_of_no_type_is_refused() -> None:
    """With the types that there are."""
    data = one(
        "LSH_PROJECTION", [((1, 2), "FLOAT32"), ((3,), "INT32")], ((2,), "INT32"), ("LSHProjectionOptions", {"type": "UNKNOWN"})
    )
    with pytest.raises(errors.InvalidFlatBuffer, match="SPARSE or DENSE"):
        sardonyx.InferenceSession(data)


def test_text_is_no_input_of_a_projection() -> None:
    """Which hashes numbers."""
    options = ("LSHProjectionOptions", {"type": "DENSE"})
    data = one("LSH_PROJECTION", [((1, 2), "FLOAT32"), np.array(["a"], object)], ((2,), "INT32"), options)
    with pytest.raises(errors.NotImplemented, match="text is not hashed"):
        sardonyx.InferenceSession(data)
