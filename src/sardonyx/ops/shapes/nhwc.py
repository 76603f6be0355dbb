"""Operators whose data is channels-last: the domain that layout conversion puts a node into, all else about it as in ai.onnx.

sardonyx.nhwc.Conv    X (N, spatial…, C), W (M, C / group, kernel…) -> Y (N, spatial…, M)

The scales and sizes of Resize are reordered with its data, so its shapes follow as they do in ai.onnx.
"""

from __future__ import annotations

import functools

from sardonyx.ir.attribute import AttributeValue
from sardonyx.ops.fact import Fact, ShapeCall, ShapeFunction, derive_shape_functions, tensor
from sardonyx.ops.shapes import conv, normalize, pool, reshape, resize

__all__: list[str] = []

_DOMAIN = "sardonyx.nhwc"
_FAMILIES = (conv, normalize, pool, reshape, resize)
"""The modules whose functions are derived from, imported so that they are registered before."""

_OPERATORS = (
    "AveragePool",
    "BatchNormalization",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "DepthToSpace",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GridSample",
    "GroupNormalization",
    "InstanceNormalization",
    "LRN",
    "LpPool",
    "MaxPool",
    "MaxUnpool",
    "QLinearConv",
    "SpaceToDepth",
)


def _channels_last(function: ShapeFunction) -> ShapeFunction:
    """Return `function` for a first input and outputs that are channels-last."""

    @functools.wraps(function)
    def transposed(call: ShapeCall, x: Fact, *others: Fact | None, **attributes: AttributeValue) -> tuple[Fact, ...]:
        found = function(call, _to_first(x), *others, **attributes)
        first, *rest = (found,) if isinstance(found, Fact) else found
        return (_to_last(first), *[_to_last(fact) if fact.rank == first.rank else fact for fact in rest])

    return transposed


def _to_first(fact: Fact) -> Fact:
    shape = fact.shape
    return fact if shape is None or len(shape) < 3 else tensor(fact.dtype, (shape[0], shape[-1], *shape[1:-1]))


def _to_last(fact: Fact) -> Fact:
    shape = fact.shape
    return fact if shape is None or len(shape) < 3 else tensor(fact.dtype, (shape[0], *shape[2:], shape[1]))


for _operator in _OPERATORS:
    derive_shape_functions(_operator, _DOMAIN, _channels_last)
derive_shape_functions("Resize", _DOMAIN, lambda function: function)
