"""What is known about a value before it is computed: the input and output of shape functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Shape, TensorType, ValueType

__all__ = ["Fact", "ShapeCall", "ShapeFunction", "find_shape_function", "registered_shape_functions", "shape_function", "tensor"]

MAX_VALUE_SIZE = 1024
"""Largest tensor whose elements a fact carries."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    """What is known about one value."""

    type: ValueType | None
    """Its type; None where nothing is known."""
    value: Array | None = None
    """The elements of a small tensor where known: an array of dtype object, each an int, float, bool or Expr, of the tensor's shape."""

    @property
    def dtype(self) -> DataType | None:
        """The element type of a tensor, else None."""
        return self.type.dtype if isinstance(self.type, TensorType) else None

    @property
    def shape(self) -> Shape | None:
        """The dimensions of a tensor of known rank, else None."""
        return self.type.shape if isinstance(self.type, TensorType) else None

    @property
    def rank(self) -> int | None:
        """How many dimensions a tensor has, where known."""
        return None if self.shape is None else len(self.shape)


def tensor(dtype: DataType | None, shape: Shape | None = None, value: Any = None) -> Fact:
    """A fact about a tensor; no type where `dtype` is None. `value` is anything from which NumPy makes an object array."""
    if dtype is None:
        return Fact(None)
    if value is None:
        return Fact(TensorType(dtype, shape))
    array = np.asarray(value, dtype=object)
    return Fact(TensorType(dtype, array.shape), array if array.size <= MAX_VALUE_SIZE else None)


@dataclasses.dataclass(frozen=True, slots=True)
class ShapeCall:
    """What a shape function may know about its node."""

    name: str
    """The node's name, for messages."""
    op_type: str
    """The operator."""
    version: int
    """The opset version that the node is read under."""
    output_count: int
    """How many outputs the node lists."""
    infer_body: Callable[..., list[Fact]] | None = None
    """For operators with a graph attribute: infer_body(graph, input facts) -> output facts."""


ShapeFunction = Callable[..., "Fact | tuple[Fact, ...]"]
"""f(call, *input facts or None, **attributes) -> the fact of the output, or a tuple of them."""

_FUNCTIONS: dict[tuple[str, str], list[tuple[int, ShapeFunction]]] = {}


def shape_function(*op_types: str, since: int = 1, domain: str = "") -> Callable[[ShapeFunction], ShapeFunction]:
    """Register the decorated function for these operators from opset `since` of `domain` on."""

    def register(function: ShapeFunction) -> ShapeFunction:
        for op_type in op_types:
            versions = _FUNCTIONS.setdefault((domain, op_type), [])
            if any(other == since for other, _ in versions):
                raise ValueError(f"two shape functions for {domain or 'ai.onnx'}.{op_type} since {since}")
            versions.append((since, function))
            versions.sort(key=lambda item: item[0])
        return function

    return register


def find_shape_function(domain: str, op_type: str, version: int) -> ShapeFunction | None:
    """The shape function whose range holds `version`, or None."""
    found = None
    for since, function in _FUNCTIONS.get((domain, op_type), ()):
        if since > version:
            break
        found = function
    return found


def registered_shape_functions() -> list[tuple[str, str]]:
    """Every (domain, operator) with a shape function, sorted."""
    return sorted(_FUNCTIONS)
