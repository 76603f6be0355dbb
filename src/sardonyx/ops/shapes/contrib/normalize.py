"""Normalizations of com.microsoft."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import merge_width
from sardonyx.ops.shapes.normalize import statistics, statistics_shape
from sardonyx.ops.views.normalize import LayerNormalization

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("SimplifiedLayerNormalization")
@shape_function("SimplifiedLayerNormalization", domain=_MICROSOFT)
def simplified_layer_normalization(call: ShapeCall, x: Fact, scale: Fact) -> tuple[Fact, ...]:
    """Give the output the scale's type; the inverse deviation has 1 in place of each axis from `axis` on."""
    dtype = scale.dtype if scale.dtype is not None else x.dtype
    return tensor(dtype, x.shape), statistics(LayerNormalization.of(call), x)


@shape_function("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=_MICROSOFT)
def skip_layer_normalization(call: ShapeCall, x: Fact, skip: Fact, *parameters: Fact | None) -> tuple[Fact, ...]:
    """Give output and sum the shape and type of the input; the statistics, in float, have 1 in place of the last axis."""
    statistics = tensor(DataType.FLOAT, statistics_shape(x.shape, -1))
    _require_within(skip.shape, x.shape)
    total = tensor(x.dtype, merge_width(x.shape, *parameters))
    return total, statistics, statistics, total


def _require_within(skip: Shape | None, shape: Shape | None) -> None:
    """Raise InvalidGraph where a residual would make the sum larger than the input."""
    if skip is None or shape is None:
        return
    pairs = zip(reversed(skip), reversed(shape), strict=False)
    if len(skip) > len(shape) or any(isinstance(a, int) and isinstance(b, int) and a not in (1, b) for a, b in pairs):
        wanted = f"that of the input, {dims_text(shape)}, or one that broadcasts to it"
        raise InvalidGraph(f"skip has shape {dims_text(skip)}; expected {wanted}")


@shape_function("EmbedLayerNormalization", domain=_MICROSOFT)
def embed_layer_normalization(
    call: ShapeCall, input_ids: Fact, segment_ids: Fact | None = None, word_embedding: Fact | None = None, *parameters: Fact | None
) -> tuple[Fact, ...]:
    """Infer ids (B, S) and embeddings (V, hidden) -> (B, S, hidden); the mask index is (B)."""
    dtype = None if word_embedding is None else word_embedding.dtype
    if input_ids.shape is None or word_embedding is None or word_embedding.shape is None:
        return tensor(dtype), tensor(DataType.INT32), tensor(dtype)
    embedded = tensor(dtype, merge_width((*input_ids.shape, word_embedding.shape[-1]), *parameters[2:4]))
    return embedded, tensor(DataType.INT32, input_ids.shape[:1]), embedded


@shape_function("QEmbedLayerNormalization", domain=_MICROSOFT)
def q_embed_layer_normalization(
    call: ShapeCall, input_ids: Fact, segment_ids: Fact | None = None, word_embedding: Fact | None = None, *parameters: Fact | None
) -> tuple[Fact, ...]:
    """Return the same with 8-bit embeddings, in float."""
    width = anonymous() if word_embedding is None or not word_embedding.shape else word_embedding.shape[-1]
    ids = input_ids.shape
    return tensor(DataType.FLOAT, None if ids is None else (*ids, width)), tensor(DataType.INT32, None if ids is None else ids[:1])


@shape_function("BiasSoftmax", "BranchwiseRMSNorm", "GatedRMSNorm", domain=_MICROSOFT)
def same_shape(call: ShapeCall, x: Fact, *parameters: Fact | None) -> Fact:
    """Give the output the shape and type of the input."""
    return tensor(x.dtype, x.shape)
