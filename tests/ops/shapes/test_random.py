"""Facts about random operators."""

from __future__ import annotations

from support.infer_op import A, dtype_of, error_of, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType


def test_shape_comes_from_attributes() -> None:
    """RandomNormal is as its attributes say."""
    assert infer_shape("RandomNormal", shape=(2, 3)) == (2, 3)
    assert dtype_of("RandomUniform", shape=(2,), dtype=11) is DataType.DOUBLE
    assert "attribute 'dtype'" in error_of("RandomNormal", shape=(2,), dtype=-1)


def test_like_keeps_the_shape() -> None:
    """The Like variants keep the shape and may change the type."""
    assert infer_shape("RandomNormalLike", floats(A, 3)) == (A, 3)
    assert dtype_of("Bernoulli", floats(A), dtype=6) is DataType.INT32


def test_multinomial_has_a_row_for_each_input_row() -> None:
    """(N, classes) gives (N, samples)."""
    assert infer_shape("Multinomial", floats(A, 10), sample_size=4) == (A, 4)


def test_mask_of_dropout_is_bool_since_10() -> None:
    """Before opset 10 the mask had the input's type."""
    assert infer_op("Dropout", floats(A), outputs=2)[1].dtype is DataType.BOOL
    assert infer_op("Dropout", floats(A), outputs=2, version=7)[1].dtype is DataType.FLOAT
