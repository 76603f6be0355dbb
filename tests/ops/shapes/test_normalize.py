"""Facts about normalizations."""

from __future__ import annotations

from support.infer_op import A, B, dtype_of, error_of, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor

MICROSOFT = "com.microsoft"


def test_shape_is_kept() -> None:
    """A normalization changes no shape."""
    assert infer_shape("InstanceNormalization", floats(A, 3, 8), floats(3), floats(3)) == (A, 3, 8)
    assert infer_shape("RMSNormalization", floats(A, 8), floats(8)) == (A, 8)


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


def test_simplified_layer_normalization_has_the_type_of_the_scale() -> None:
    """The output's type is that of the scale."""
    assert dtype_of("SimplifiedLayerNormalization", floats(A, 8), tensor(DataType.FLOAT16, (8,)), version=1) is DataType.FLOAT16


def test_skip_layer_normalization_gives_the_sum() -> None:
    """The fourth output is the sum before normalization."""
    facts = infer_op("SkipLayerNormalization", floats(A, B, 8), floats(A, B, 8), floats(8), outputs=4, domain=MICROSOFT)
    assert [fact.shape for fact in facts] == [(A, B, 8), (A, B, 1), (A, B, 1), (A, B, 8)]


def test_embed_layer_normalization_looks_up() -> None:
    """Ids get the width of the embedding."""
    ids = tensor(DataType.INT32, (A, B))
    facts = infer_op("EmbedLayerNormalization", ids, ids, floats(1000, 64), floats(512, 64), outputs=2, domain=MICROSOFT)
    assert [fact.shape for fact in facts] == [(A, B, 64), (A,)]
