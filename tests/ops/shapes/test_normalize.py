"""Facts about normalizations."""

from __future__ import annotations

from support.infer_op import A, B, error_of, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor


def test_shape_is_kept() -> None:
    """A normalization changes no shape."""
    assert infer_shape("InstanceNormalization", floats(A, 3, 8), floats(3), floats(3)) == (A, 3, 8)
    assert infer_shape("RMSNormalization", floats(A, 8), floats(8)) == (A, 8)


def test_a_root_mean_square_normalization_has_the_type_of_its_scale() -> None:
    """As the standard says, where that is another than the input's."""
    assert infer_op("RMSNormalization", floats(A, 8), tensor(DataType.FLOAT16, (8,))) == (tensor(DataType.FLOAT16, (A, 8)),)


def test_batch_normalization_gives_statistics_in_training() -> None:
    """The running mean and variance are vectors of the channels."""
    vector = floats(3)
    facts = infer_op("BatchNormalization", floats(A, 3, 8), vector, vector, vector, vector, outputs=3)
    assert [fact.shape for fact in facts] == [(A, 3, 8), (3,), (3,)]
    assert "mean has 4 elements for the 3 channels" in error_of(
        "BatchNormalization", floats(A, 3), vector, vector, floats(4), vector
    )


def test_layer_normalization_gives_statistics() -> None:
    """The statistics have 1 in place of each normalized axis, in the type of the computation."""
    facts = infer_op("LayerNormalization", tensor(DataType.FLOAT16, (A, B, 64)), floats(64), outputs=3, axis=-2)
    assert [fact.shape for fact in facts] == [(A, B, 64), (A, 1, 1), (A, 1, 1)]
    assert [fact.dtype for fact in facts] == [DataType.FLOAT16, DataType.FLOAT, DataType.FLOAT]


def test_a_layer_normalization_before_the_standard_has_the_type_of_its_scale() -> None:
    """From operator set 17 on there is one type for both."""
    x, scale = tensor(DataType.FLOAT16, (A, 4)), floats(4)
    assert infer_op("LayerNormalization", x, scale, version=12)[0].dtype is DataType.FLOAT
    assert infer_op("LayerNormalization", x, x, version=17)[0].dtype is DataType.FLOAT16
