"""Facts about operators of sardonyx.tflite on numbers."""

from __future__ import annotations

from support.infer_op import A, B, floats, infer_op, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor

DOMAIN = "sardonyx.tflite"


def test_two_inputs_are_broadcast() -> None:
    """As those of Add."""
    assert infer_shape("Atan2", floats(A, 1), floats(3), domain=DOMAIN) == (A, 3)


def test_parts_of_complex_numbers_are_real() -> None:
    """Of the same shape."""
    [found] = infer_op("ComplexAbs", tensor(DataType.COMPLEX64, (A, B)), domain=DOMAIN)
    assert (found.dtype, found.shape) == (DataType.FLOAT, (A, B))


def test_smaller_elements_get_an_axis() -> None:
    """And larger ones lose it."""
    assert infer_shape("Bitcast", floats(A), domain=DOMAIN, to=int(DataType.INT16)) == (A, 2)
    assert infer_shape("Bitcast", tensor(DataType.INT16, (A, 2)), domain=DOMAIN, to=int(DataType.FLOAT)) == (A,)
    assert infer_shape("Bitcast", floats(A), domain=DOMAIN, to=int(DataType.INT32)) == (A,)


def test_a_spectrum_has_half_the_columns() -> None:
    """And one more."""
    assert infer_shape("Rfft2d", floats(A, 8, 8), ints(4, 6), domain=DOMAIN) == (A, 4, 4)


def test_a_cast_has_its_type() -> None:
    """And the shape of its input."""
    [found] = infer_op("ComplexCast", floats(A), domain=DOMAIN, to=int(DataType.COMPLEX64))
    assert (found.dtype, found.shape) == (DataType.COMPLEX64, (A,))
