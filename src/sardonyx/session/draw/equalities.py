"""Dimensions that have to be equal for a node to run, read off the shapes of its inputs.

Broadcasting would also allow a dimension of 1; of equal sizes every operator here is content, so equality is what is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ops.fact import UNKNOWN, Fact

__all__ = ["equal_dims"]

Pairs = Iterator[tuple[Dim, Dim]]
"""Dimensions that have to be equal."""


def equal_dims(node: Node, facts: Mapping[Value, Fact]) -> Pairs:
    """Yield the pairs of dimensions of a node's inputs that have to be equal and are not known to be."""
    found = _BY_OPERATOR.get(node.op_type)
    if found is None:
        return
    inputs = [UNKNOWN if value is None else facts.get(value, UNKNOWN) for value in node.inputs]
    for left, right in found(node, [fact.shape for fact in inputs], inputs):
        if left != right and not (isinstance(left, int) and isinstance(right, int)):
            yield left, right


Shapes = list[Shape | None]
"""The shapes of a node's inputs; None for one that is left out or of unknown rank."""
Reader = Callable[[Node, Shapes, list[Fact]], Pairs]
"""A function that yields what has to be equal."""


def _broadcast(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    known = [shape for shape in shapes if shape]
    for one, other in itertools.pairwise(known):
        yield from _aligned(one, other)


def _aligned(one: Shape, other: Shape) -> Pairs:
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != 1 and right != 1:
            yield left, right


def _concat(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    known = [shape for shape in shapes if shape]
    axis = node.get("axis", 1)
    for one, other in itertools.pairwise(known):
        if len(one) == len(other) and isinstance(axis, int):
            skipped = axis % len(one)
            yield from ((left, right) for place, (left, right) in enumerate(zip(one, other, strict=True)) if place != skipped)


def _matmul(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    left, right = (*shapes, None, None)[:2]
    if left and right:
        yield left[-1], right[-2 if len(right) > 1 else 0]
        yield from _aligned(left[:-2], right[:-2])


def _gemm(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    left, right = (*shapes, None, None)[:2]
    if left and right and len(left) == len(right) == 2:
        yield left[0 if node.get("transA") else 1], right[1 if node.get("transB") else 0]


def _per_channel(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    data, scale = (*shapes, None, None)[:2]
    if data and scale and len(data) > 1:
        yield data[1], scale[0]


def _conv(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    data, filters = (*shapes, None, None)[:2]
    group = node.get("group", 1)
    if data and filters and len(data) == len(filters) > 1 and isinstance(group, int):
        yield data[1], filters[0] if node.op_type == "ConvTranspose" else filters[1] * group


def _last(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    data, scale = (*shapes, None, None)[:2]
    if data and scale and len(scale) == 1:
        yield data[-1], scale[-1]


def _recurrent(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    data, weights = (*shapes, None, None)[:2]
    if not data or len(data) != 3:
        return
    batch = 0 if node.get("layout") else 1
    if weights and len(weights) == 3:
        yield data[2], weights[2]
    if len(shapes) > 4 and shapes[4]:
        yield data[batch], shapes[4][0]
    for state in shapes[5:7]:
        if state and len(state) == 3:
            yield data[batch], state[batch]


def _attention(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    """Attention of ai.onnx: queries, keys, values, mask, past keys, past values."""
    query, key, value, mask, past, past_value = (*shapes, *[None] * 6)[:6]
    if node.domain or any(shape is not None and len(shape) < 2 for shape in (query, key, value)) or not query or not key:
        return
    sequence = -2
    yield query[0], key[0]
    if value:
        yield from ((key[0], value[0]), (key[sequence], value[sequence]))
    if past and past_value:
        yield from zip(past[:3], past_value[:3], strict=False)
    past = past if past and len(past) == 4 else None
    if past:
        yield key[0], past[0]
    if mask:
        yield mask[-1], key[sequence] + (past[2] if past else 0)
        if len(mask) > 1 and mask[-2] != 1:
            yield mask[-2], query[sequence]


def _grouped_attention(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    """GroupQueryAttention of com.microsoft: what is fed as the total length is that of past and new keys."""
    query, past = (*shapes, *[None] * 4)[:4:3]
    if not query or len(query) != 3:
        return
    if past and len(past) == 4:
        yield query[0], past[0]
        total = inputs[6].elements if len(inputs) > 6 else None
        if total and len(total) == 1 and total[0] is not None:
            yield total[0], past[2] + query[1]
    if len(shapes) > 5 and shapes[5]:
        yield query[0], shapes[5][0]


def _features(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    """Trees: as many features as the highest number that a node reads."""
    data = shapes[0] if shapes else None
    numbers = node.get("nodes_featureids")
    if data and isinstance(numbers, (list, tuple)) and numbers and not isinstance(data[-1], int):
        yield data[-1], 1 + max(int(number) for number in numbers)


def _linear(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    data = shapes[0] if shapes else None
    coefficients, intercepts = node.get("coefficients"), node.get("intercepts")
    if data and isinstance(coefficients, (list, tuple)) and coefficients:
        targets = node.get("targets", 0) or len(intercepts if isinstance(intercepts, (list, tuple)) else ()) or 1
        yield data[-1], len(coefficients) // (targets if isinstance(targets, int) else 1)


def _scaled(node: Node, shapes: Shapes, inputs: list[Fact]) -> Pairs:
    data = shapes[0] if shapes else None
    offsets = node.get("offset")
    if data and isinstance(offsets, (list, tuple)) and len(offsets) > 1:
        yield data[-1], len(offsets)


def _table(readers: Mapping[str, Reader]) -> dict[str, Reader]:
    return {op_type: reader for op_types, reader in readers.items() for op_type in op_types.split()}


_BY_OPERATOR = _table(
    {
        "Add Sub Mul Div Pow Mod And Or Xor Equal Less LessOrEqual Greater GreaterOrEqual Where Max Min Sum Mean PRelu": _broadcast,
        "BitwiseAnd BitwiseOr BitwiseXor BitShift SkipLayerNormalization SkipSimplifiedLayerNormalization": _broadcast,
        "Concat": _concat,
        "MatMul FusedMatMul MatMulInteger": _matmul,
        "Gemm": _gemm,
        "Conv ConvTranspose FusedConv": _conv,
        "BatchNormalization InstanceNormalization GroupNormalization": _per_channel,
        "LayerNormalization RMSNormalization SimplifiedLayerNormalization": _last,
        "LSTM GRU RNN": _recurrent,
        "Attention": _attention,
        "GroupQueryAttention": _grouped_attention,
        "TreeEnsembleClassifier TreeEnsembleRegressor TreeEnsemble": _features,
        "LinearClassifier LinearRegressor": _linear,
        "Scaler": _scaled,
    }
)
