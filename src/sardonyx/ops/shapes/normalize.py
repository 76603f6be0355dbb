"""Normalizations: the output is as the input, and some give statistics."""

from __future__ import annotations

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.element_type import element_type
from sardonyx.ops.views.normalize import LayerNormalization

__all__: list[str] = []


@shape_function("GroupNormalization", "InstanceNormalization", "LRN", "LpNormalization", "MeanVarianceNormalization")
def same_shape(call: ShapeCall, x: Fact, *parameters: Fact | None) -> Fact:
    """Give the output the shape and type of the input."""
    return tensor(x.dtype, x.shape)


@shape_function("RMSNormalization")
def rms_normalization(call: ShapeCall, x: Fact, scale: Fact) -> Fact:
    """Return the shape of the input, the type of the scale."""
    return tensor(scale.dtype, x.shape)


@shape_function("BatchNormalization")
def batch_normalization(call: ShapeCall, x: Fact, scale: Fact, b: Fact, mean: Fact, var: Fact) -> tuple[Fact, ...]:
    """Give the output the shape and type of the input (N, C, …); in training the statistics are (C)."""
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


@shape_function("LayerNormalization", since=17)
def layer_normalization(call: ShapeCall, x: Fact, scale: Fact, b: Fact | None = None) -> tuple[Fact, ...]:
    """Give the output the shape and type of the input; the statistics have 1 in place of each axis from `axis` on."""
    return (tensor(x.dtype, x.shape), *[statistics(LayerNormalization.of(call), x)] * 2)


@shape_function("LayerNormalization")
def layer_normalization_1(call: ShapeCall, x: Fact, scale: Fact, b: Fact | None = None) -> tuple[Fact, ...]:
    """Give the output the shape of the input in the type of the scale, as ONNX Runtime has it before the standard."""
    return (tensor(scale.dtype, x.shape), *[statistics(LayerNormalization.of(call), x)] * 2)


def statistics(view: LayerNormalization, x: Fact) -> Fact:
    """Return the mean, or the inverse deviation: of the type `stash_type`, with 1 in place of each axis from `axis` on."""
    return tensor(element_type(view.stash_type, "stash_type"), statistics_shape(x.shape, view.axis))


def statistics_shape(shape: Shape | None, axis: int) -> Shape | None:
    """Return 1 in place of each axis from `axis` on."""
    if shape is None:
        return None
    place = normalize_axis(axis, len(shape))
    return shape[:place] + (1,) * (len(shape) - place)
