"""BatchNormalization with given statistics: a factor and a summand for each channel, made when the model is compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument, substitute
from sardonyx.codegen.emit.types import Type
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Shape
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.normalize import BatchNormalization, trains
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import argument_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import MapKernel, broadcast_walk, joins_elementwise
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer


@dataclasses.dataclass(frozen=True, slots=True)
class BatchNormSpec:
    """A normalization of channels by given statistics."""

    channels: Shape
    """How a tensor with a number for each channel broadcasts to the input."""
    epsilon: float
    """What is added to the variance."""


def claim(node: Node) -> BatchNormSpec | str:
    """Return how a BatchNormalization sees channels, or why it cannot be compiled."""
    dtypes = {given(value).dtype for value in node.inputs[:5]}
    if dtypes not in ({DataType.FLOAT}, {DataType.DOUBLE}):
        return f"BatchNormalization of elements of type {', '.join(sorted(map(str, dtypes - {DataType.FLOAT})))}"
    if trains(node) or any(value.use_count for value in node.outputs[1:]):
        return "it trains"
    shape, view = shape_of(node.inputs[0]), BatchNormalization.of(node)
    if len(shape) < 2:
        return f"{len(shape)} dimensions, none of which are channels"
    if not view.is_per_channel:
        return "statistics for each activation"
    is_last = node.domain == NHWC_DOMAIN
    count = shape[-1] if is_last else shape[1]
    own = [shape_of(value) for value in node.inputs[1:5]]
    if own != [(count,)] * 4:
        return f"that the statistics have a number for each of {count} channels {open_or_wrong((count,), *own)}"
    channels: Shape = (-1,) if is_last else (-1, *[1] * (len(shape) - 2))
    return BatchNormSpec(channels, view.epsilon)


@lowers("BatchNormalization", claim=claim, joins=joins_elementwise, inputs=5)
@lowers("BatchNormalization", domain=NHWC_DOMAIN, claim=claim, joins=joins_elementwise, inputs=5)
def batch_normalization(low: Lowering, group: Group, spec: BatchNormSpec) -> None:
    """Lower to one map, with the element-wise nodes that follow."""
    node, kind = group.node, argument_of(0, group.node.outputs[0].dtype or DataType.UNDEFINED).type
    expr, tail = low.epilogue(group)
    parameters = [given(value) for value in node.inputs[1:5]]
    constants = [value.constant.numpy() for value in parameters if value.constant is not None]
    count = len(tail) + 1
    if len(constants) == 4:
        buffers = [low.constant(array) for array in _factor_and_summand(spec.epsilon, *constants)]
        element = argument(0, kind) * argument(count, kind) + argument(count + 1, kind)
    else:
        buffers = [low.of(value) for value in parameters]
        element = _from_statistics(spec.epsilon, count, kind)
    channels = [(buffer, spec.channels) for buffer in buffers]
    lower_map(low, group, substitute(expr, {0: element}), [low.of(value) for value in tail], channels)


def lower_map(low: Lowering, group: Group, expr: ElementExpr, tail: list[Buffer], channels: Sequence[tuple[Buffer, Shape]]) -> None:
    """Add the map of the anchor's input, the tail's tensors, and those with numbers for channels, each with how it broadcasts."""
    source, result = low.of(group.node.inputs[0]), low.result(group.result)
    inputs = [source, *tail, *(buffer for buffer, _ in channels)]
    shapes = [*(buffer.shape for buffer in (source, *tail)), *(shape for _, shape in channels)]
    walk = broadcast_walk(result.shape, shapes)
    kinds = tuple(argument_of(0, buffer.dtype).type for buffer in inputs)
    symbol = low.kernel(MapKernel("batch_norm", kinds, (expr,), tuple(walk.accesses())))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = walk.params(sizes)
        return params.words(), params.tasks()

    whole = [k for k, buffer in enumerate(inputs) if shapes[k] == result.shape and buffer.dtype is result.dtype]
    low.step(group, symbol, [*inputs, result], writes=[len(inputs)], plan=plan, in_place=whole)


def _factor_and_summand(epsilon: float, scale: Array, bias: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Return what x is multiplied by, and what is added then; made in float64, of the type of `scale`."""
    with np.errstate(all="ignore"):
        factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
        summand = bias - mean * factor
        return factor.astype(scale.dtype), summand.astype(scale.dtype)


def _from_statistics(epsilon: float, first: int, kind: Type) -> ElementExpr:
    scale, bias, mean, variance = (argument(first + k, kind) for k in range(4))
    deviation = OPERATORS["sqrt"](variance + epsilon)
    return (argument(0, kind) - mean) * (scale / deviation) + bias
