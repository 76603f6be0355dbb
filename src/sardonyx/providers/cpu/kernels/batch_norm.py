"""BatchNormalization with given statistics: a factor and a summand for each channel, made when the model is compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.codegen.emit.expr import OPERATORS, Expr, argument, substitute
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.elementwise import write_map
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Shape, Value
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.expressions import argument_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import broadcast_walk, joins_elementwise
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer


def _check(node: Node) -> str | None:
    if len(node.inputs) != 5 or any(value is None or value.dtype is not DataType.FLOAT for value in node.inputs):
        return "an input is left out or not float32"
    if node.get("training_mode", 0) or any(value.use_count for value in node.outputs[1:]) or _trains(node):
        return "it trains"
    shape = _shape(node)
    if len(shape) < 2 or not node.get("spatial", 1):
        return "statistics for each activation, or no channels"
    if any(value is None or value.shape != (_channels(node, shape),) for value in node.inputs[1:]):
        return "the statistics are not known to have a number for each channel"
    return None


def _trains(node: Node) -> bool:
    return node.version < 7 and not node.get("is_test", 0)


def _shape(node: Node) -> Shape:
    x = node.inputs[0]
    return (x.shape if x is not None else None) or ()


def _channels(node: Node, shape: Shape) -> object:
    return shape[-1] if node.domain == NHWC_DOMAIN else shape[1]


def _joins(group: Group, node: Node, value: Value) -> bool:
    return joins_elementwise(group, node, value)


@lowers("BatchNormalization", check=_check, joins=_joins)
@lowers("BatchNormalization", domain=NHWC_DOMAIN, check=_check, joins=_joins)
def batch_normalization(low: Lowering, group: Group) -> None:
    """Lower to one map, with the element-wise nodes that follow."""
    node = group.anchor
    expr, tail = low.epilogue(group)
    parameters = [value for value in node.inputs[1:] if value is not None]
    constants = [value.constant.numpy() for value in parameters if value.constant is not None]
    count = len(tail) + 1
    if len(constants) == 4:
        buffers = [low.constant(array) for array in _factor_and_summand(node, *constants)]
        element = argument(0, F32) * argument(count, F32) + argument(count + 1, F32)
    else:
        buffers = [low.of(value) for value in parameters]
        element = _from_statistics(node, count)
    rank = len(_shape(node))
    own: Shape = (-1,) if node.domain == NHWC_DOMAIN else (-1, *[1] * (rank - 2))
    lower_map(low, group, substitute(expr, {0: element}), [low.of(value) for value in tail], [(buffer, own) for buffer in buffers])


def lower_map(low: Lowering, group: Group, expr: Expr, tail: list[Buffer], channels: Sequence[tuple[Buffer, Shape]]) -> None:
    """Add the map of the anchor's input, the tail's tensors, and those with numbers for channels, each with how it broadcasts."""
    source, result = low.of(group.anchor.inputs[0]), low.result(group.result)
    inputs = [source, *tail, *(buffer for buffer, _ in channels)]
    shapes = [*(buffer.shape for buffer in (source, *tail)), *(shape for _, shape in channels)]
    walk = broadcast_walk(result.shape, shapes)
    accesses = walk.accesses()
    symbol = low.symbol("batch_norm", [expr], "".join(access.name[0].lower() for access in accesses))
    kinds = [argument_of(0, buffer.dtype).type for buffer in inputs]
    low.kernel(symbol, lambda module, name: write_map(module, name, kinds, [expr], accesses))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = walk.params(sizes)
        return params.words(), params.tasks()

    whole = [k for k, buffer in enumerate(inputs) if shapes[k] == result.shape and buffer.dtype is result.dtype]
    low.step(group, symbol, [*inputs, result], writes=[len(inputs)], plan=plan, in_place=whole)


def _factor_and_summand(node: Node, scale: Array, bias: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """What x is multiplied by, and what is added then; made in float64."""
    with np.errstate(all="ignore"):
        factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + node.get("epsilon", 1e-5))
        summand = bias - mean * factor
        return factor.astype(np.float32), summand.astype(np.float32)


def _from_statistics(node: Node, first: int) -> Expr:
    scale, bias, mean, variance = (argument(first + k, F32) for k in range(4))
    deviation = OPERATORS["sqrt"](variance + node.get("epsilon", 1e-5))
    return (argument(0, F32) - mean) * (scale / deviation) + bias
