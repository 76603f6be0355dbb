"""Normalizations: the output is as the input, and some give statistics."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import normalize_axis
from sardonyx.ops.shapes.element_type import element_type

__all__: list[str] = []


@shape_function("GroupNormalization", "InstanceNormalization", "LRN", "LpNormalization", "MeanVarianceNormalization",
                "RMSNormalization")  # fmt: skip
def same_shape(call: ShapeCall, x: Fact, *parameters: Fact | None) -> Fact:
    """The output is as the input."""
    return tensor(x.dtype, x.shape)


@shape_function("BatchNormalization")
def batch_normalization(call: ShapeCall, x: Fact, scale: Fact, b: Fact, mean: Fact, var: Fact) -> tuple[Fact, ...]:
    """The output is as the input (N, C, …); in training the statistics are (C)."""
    statistics = mean.shape
    if x.shape is not None and len(x.shape) > 1:
        _check_channels(x.shape, scale, b, mean, var)
        statistics = (x.shape[1],) if mean.shape is None else mean.shape
    running = tensor(mean.dtype, statistics)
    return (tensor(x.dtype, x.shape), running, running, running, running)[: call.output_count]


def _check_channels(shape: Shape, *parameters: Fact) -> None:
    for name, fact in zip(("scale", "B", "mean", "var"), parameters, strict=True):
        size = fact.shape[0] if fact.shape is not None and len(fact.shape) == 1 else None
        if isinstance(size, int) and isinstance(shape[1], int) and size != shape[1]:
            raise InvalidGraph(f"{name} has {size} elements for the {shape[1]} channels of X of shape {dims_text(shape)}")


@shape_function("LayerNormalization")
def layer_normalization(call: ShapeCall, x: Fact, scale: Fact, b: Fact | None = None, *, axis: int = -1,
                        stash_type: int = 1) -> tuple[Fact, ...]:  # fmt: skip
    """The output is as the input; the statistics have 1 in place of each axis from `axis` on."""
    return (tensor(x.dtype, x.shape), *[tensor(element_type(stash_type, "stash_type"), _statistics(x.shape, axis))] * 2)


@shape_function("SimplifiedLayerNormalization")
@shape_function("SimplifiedLayerNormalization", domain="com.microsoft")
def simplified_layer_normalization(
    call: ShapeCall, x: Fact, scale: Fact, *, axis: int = -1, stash_type: int = 1
) -> tuple[Fact, ...]:
    """The output has the scale's type; the inverse deviation has 1 in place of each axis from `axis` on."""
    dtype = scale.dtype if scale.dtype is not None else x.dtype
    return tensor(dtype, x.shape), tensor(element_type(stash_type, "stash_type"), _statistics(x.shape, axis))


@shape_function("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain="com.microsoft")
def skip_layer_normalization(call: ShapeCall, x: Fact, skip: Fact, *parameters: Fact | None) -> tuple[Fact, ...]:
    """Output and sum are as the input; the statistics, in float, have 1 in place of the last axis."""
    statistics = tensor(DataType.FLOAT, _statistics(x.shape, -1))
    return tensor(x.dtype, x.shape), statistics, statistics, tensor(x.dtype, x.shape)


@shape_function("EmbedLayerNormalization", domain="com.microsoft")
def embed_layer_normalization(call: ShapeCall, input_ids: Fact, segment_ids: Fact | None = None, word_embedding: Fact | None = None,
                              *parameters: Fact | None) -> tuple[Fact, ...]:  # fmt: skip
    """Ids (B, S) and embeddings (V, hidden) -> (B, S, hidden); the mask index is (B)."""
    dtype = None if word_embedding is None else word_embedding.dtype
    if input_ids.shape is None or word_embedding is None or word_embedding.shape is None:
        return tensor(dtype), tensor(DataType.INT32), tensor(dtype)
    embedded = tensor(dtype, (*input_ids.shape, word_embedding.shape[-1]))
    return embedded, tensor(DataType.INT32, input_ids.shape[:1]), embedded


def _statistics(shape: Shape | None, axis: int) -> Shape | None:
    if shape is None:
        return None
    place = normalize_axis(axis, len(shape))
    return shape[:place] + (1,) * (len(shape) - place)
