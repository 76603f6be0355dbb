"""Operators of sardonyx.tflite on numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument

Z = np.array([3 + 4j, -1j], np.complex64)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="sardonyx.tflite", **options)


def test_angles_have_the_quadrant_of_the_point() -> None:
    """From -pi to pi."""
    found = run("Atan2", np.array([1, 1, -1], np.float32), np.array([1, -1, -1], np.float32))
    np.testing.assert_allclose(found, np.array([0.25, 0.75, -0.75]) * np.pi, rtol=1e-6)


def test_complex_numbers() -> None:
    """Their parts, absolute values, sums, differences and products."""
    assert run("ComplexAbs", Z).tolist() == [5, 1]
    assert (run("ComplexReal", Z).tolist(), run("ComplexImag", Z).tolist()) == ([3, 0], [4, -1])
    assert (run("ComplexAdd", Z, Z).tolist(), run("ComplexSub", Z, Z[:1]).tolist()) == ((2 * Z).tolist(), (Z - Z[0]).tolist())
    assert run("ComplexMul", Z, Z).tolist() == (Z * Z).tolist()
    assert run("ComplexCast", Z, to=int(DataType.FLOAT)).tolist() == [3, 0]


def test_bits_are_read_as_another_type() -> None:
    """Two of 16 bits are one of 32."""
    x = np.array([1.5, -2], np.float32)
    halves = run("Bitcast", x, to=int(DataType.INT16))
    np.testing.assert_array_equal(halves, x.view(np.int16).reshape(2, 2))
    np.testing.assert_array_equal(run("Bitcast", halves, to=int(DataType.FLOAT)), x)
    with pytest.raises(InvalidArgument, match="must fill one float32"):
        run("Bitcast", np.zeros((2, 3), np.int16), to=int(DataType.FLOAT))


def test_a_spectrum_is_that_of_numpy() -> None:
    """Of an image padded to the lengths."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(run("Rfft2d", x, np.array([4, 8], np.int32)), np.fft.rfft2(x, (4, 8)), atol=1e-4)
    with pytest.raises(InvalidArgument, match="lengths are 0 and 8"):
        run("Rfft2d", x, np.array([0, 8], np.int32))
