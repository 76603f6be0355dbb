"""Products of rows and weights of recurrent cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch

from sardonyx.dtypes import Array


def _rnn(weights: Array, scale: Any, **options: bool) -> bytes:
    """Return a cell that multiplies rows by weights, and whose state counts for nothing."""
    sketch, (units, columns) = Sketch(), weights.shape
    parts = [sketch.constant(weights, scale), sketch.constant(np.zeros((units, units), weights.dtype), scale)]
    parts.append(sketch.constant(np.zeros(units, np.float32)))
    made = sketch.tensor((1, units))
    state = sketch.tensor((1, units), is_variable=True)
    sketch.operator("RNN", [sketch.input((1, columns)), *parts, state], [made], ("RNNOptions", options))
    return sketch.model([made])


def test_rows_by_floats_are_not_rounded() -> None:
    """They are products of real numbers."""
    found = run(_rnn(np.array([[1, 1]], np.float32), None), np.array([[127, 0.3]], np.float32))[0]
    np.testing.assert_allclose(found, [[127.3]], rtol=1e-6)


@pytest.mark.parametrize(("asymmetric", "expected"), [(False, 127), (True, 127.5)])
def test_rows_by_integers_are_rounded_to_8_bits(asymmetric: bool, expected: float) -> None:
    """The greatest of a row is 127 steps from zero, or, where its range need not be as wide on both sides, 255 from the least."""
    data = _rnn(np.array([[1, 1]], np.int8), (np.float32(1), 0), asymmetric_quantize_inputs=asymmetric)
    found = run(data, np.array([[127, 0.4 if asymmetric else 0.3]], np.float32))[0]
    np.testing.assert_allclose(found, [[expected]], atol=0.01)


def test_a_row_of_zeros_is_zero() -> None:
    """Whose scale would be none."""
    data = _rnn(np.array([[3, 4]], np.int8), (np.float32(1), 0))
    assert run(data, np.zeros((1, 2), np.float32))[0].tolist() == [[0]]
