"""Operators of StableHLO in TensorFlow Lite models."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import one

from sardonyx import errors

X = np.array([[1, 2], [3, 4]], np.float32)


def test_elements_are_put_around_between_and_away() -> None:
    """A padding below 0 cuts."""
    options = ("StablehloPadOptions", {"edge_padding_low": [1, -1], "edge_padding_high": [0, 2], "interior_padding": [1, 1]})
    data = one("STABLEHLO_PAD", [((2, 2), "FLOAT32"), np.array(9, np.float32)], ((4, 4), "FLOAT32"), options)
    assert run(data, X)[0].tolist() == [[9, 9, 9, 9], [9, 2, 9, 9], [9, 9, 9, 9], [9, 4, 9, 9]]


@pytest.mark.parametrize(("code", "expected"), [("ADD", [5, 5]), ("MULTIPLY", [4, 6]), ("MAXIMUM", [4, 3]), ("MINIMUM", [1, 2])])
def test_arithmetic(code: str, expected: list[int]) -> None:
    """Of two tensors."""
    data = one(f"STABLEHLO_{code}", [((2,), "INT32"), ((2,), "INT32")], ((2,), "INT32"))
    assert run(data, np.array([1, 2], np.int32), np.array([4, 3], np.int32))[0].tolist() == expected


def test_bits_that_are_shifted_out_go() -> None:
    """All of them where there are no more."""
    data = one("STABLEHLO_SHIFT_LEFT", [((3,), "INT32"), ((3,), "INT32")], ((3,), "INT32"))
    assert run(data, np.array([3, -1, 5], np.int32), np.array([2, 31, 32], np.int32))[0].tolist() == [12, -(1 << 31), 0]


def test_paddings_of_another_rank_are_refused() -> None:
    """With the numbers."""
    data = one("STABLEHLO_PAD", [((2, 2), "FLOAT32"), np.array(9, np.float32)], ((2, 2), "FLOAT32"), ("StablehloPadOptions", {}))
    with pytest.raises(errors.InvalidFlatBuffer, match="do not go with a tensor of rank 2"):
        run(data, X)
