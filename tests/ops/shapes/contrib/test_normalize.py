"""Facts about normalizations of com.microsoft."""

from __future__ import annotations

from typing import Any

from support.infer_op import A, B, dtype_of, error_of, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, tensor

BYTE = tensor(DataType.UINT8, (A, 4))
POINT = tensor(DataType.UINT8, ())
MICROSOFT = "com.microsoft"


def shape_of(op_type: str, *inputs: Fact | None, **attributes: Any) -> Shape | None:
    return infer_shape(op_type, *inputs, domain=MICROSOFT, **attributes)


def test_simplified_layer_normalization_has_the_type_of_the_scale() -> None:
    """The output's type is that of the scale, in ai.onnx too, where ONNX Runtime registers it."""
    assert dtype_of("SimplifiedLayerNormalization", floats(A, 8), tensor(DataType.FLOAT16, (8,)), version=1) is DataType.FLOAT16
    assert shape_of("SimplifiedLayerNormalization", floats(A, 8), floats(8)) == (A, 8)


def test_skip_layer_normalization_gives_the_sum() -> None:
    """The fourth output is the sum before normalization."""
    facts = infer_op("SkipLayerNormalization", floats(A, B, 8), floats(A, B, 8), floats(8), outputs=4, domain=MICROSOFT)
    assert [fact.shape for fact in facts] == [(A, B, 8), (A, B, 1), (A, B, 1), (A, B, 8)]


def test_embed_layer_normalization_looks_up() -> None:
    """Ids get the width of the embedding."""
    ids = tensor(DataType.INT32, (A, B))
    facts = infer_op("EmbedLayerNormalization", ids, ids, floats(1000, 64), floats(512, 64), outputs=2, domain=MICROSOFT)
    assert [fact.shape for fact in facts] == [(A, B, 64), (A,)]
    table = tensor(DataType.UINT8, (1000, 64))
    (fact, _) = infer_op("QEmbedLayerNormalization", ids, ids, table, table, outputs=2, domain=MICROSOFT)
    assert (fact.dtype, fact.shape) == (DataType.FLOAT, (A, B, 64))


def test_parameters_show_how_long_the_last_axis_is() -> None:
    """Where the input or the table does not say it."""
    facts = infer_op("SkipLayerNormalization", floats(A, B), floats(A, B), floats(8), outputs=4, domain=MICROSOFT)
    assert facts[0].shape == facts[3].shape == (A, 8)
    ids = tensor(DataType.INT32, (A, B))
    tables = [floats(1000, A), None, None, floats(64)]
    (fact, _) = infer_op("EmbedLayerNormalization", ids, ids, *tables, outputs=2, domain=MICROSOFT)
    assert fact.shape == (A, B, 64)


def test_a_residual_is_no_larger_than_the_input() -> None:
    """It may broadcast to it; otherwise the model is refused."""
    assert shape_of("SkipLayerNormalization", floats(2, 3, 8), floats(1, 3, 8), floats(8)) == (2, 3, 8)
    assert shape_of("SkipLayerNormalization", floats(2, 3, 8), floats(3, 8), floats(8)) == (2, 3, 8)
    for skip in (floats(4, 3, 8), floats(1, 2, 3, 8)):
        message = error_of("SkipLayerNormalization", floats(2, 3, 8), skip, floats(8), domain=MICROSOFT)
        assert "expected that of the input, [2, 3, 8], or one that broadcasts to it" in message


def test_others_keep_the_shape() -> None:
    """Gated and branch-wise normalization change no shape."""
    assert shape_of("GatedRMSNorm", floats(A, 8), floats(4), floats(A, 8)) == (A, 8)
    assert shape_of("BranchwiseRMSNorm", floats(A, 2, 8)) == (A, 2, 8)
    assert shape_of("BiasSoftmax", floats(A, 2, 8), floats(8), axis=2, is_inner_broadcast=1) == (A, 2, 8)
