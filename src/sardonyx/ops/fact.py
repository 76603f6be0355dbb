"""What is known about a value before it is computed: the input and output of shape functions.

    @shape_function("Softmax", since=13)
    def softmax(call, x, *, axis=-1): ...

A shape function takes the call (`ShapeCall`), a `Fact` for each input and the attributes by keyword, and returns the fact of the
output, or a tuple of facts. Like a reference kernel it names the attributes that it reads, `since` begins a meaning that lasts
until the next one registered, and attributes arrive as Python values (ints, floats, str, tuples of these, `ir.Tensor`, `ir.Graph`).
What other layers read too it takes from the operator's view (`ops/views/`) of the call.

Parameters without default are inputs that the operator needs: where one is missing the engine does not call the function, and
nothing is inferred. Parameters with default None are optional inputs. A function raises InvalidGraph for what no value
of its symbols could make right, without naming the place, and leaves unknown what is uncertain.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Attribute, Dim, Operator, Shape, TensorType, ValueType
from sardonyx.registration import is_defined_again

__all__ = [
    "MAX_VALUE_SIZE",
    "UNKNOWN",
    "Fact",
    "ShapeCall",
    "ShapeEntry",
    "ShapeFunction",
    "derive_shape_functions",
    "dims_text",
    "find_shape_function",
    "known",
    "registered_shape_functions",
    "shape_function",
    "shape_functions_of",
    "tensor",
]

MAX_VALUE_SIZE = 1024
"""Largest tensor whose elements a fact carries."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    """What is known about one value."""

    type: ValueType | None
    """Its type; None where nothing is known."""
    value: Array | None = None
    """The elements of a small tensor, in its shape: of the tensor's own dtype where all are known, else of dtype object, where
    each is an int, float, bool, Expr (a symbolic integer), or None for an unknown one."""

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

    @property
    def constant(self) -> Array | None:
        """The elements where every one is known, in the tensor's own dtype; else None."""
        if self.value is None or (self.value.dtype == object and self.dtype is not DataType.STRING):
            return None
        return self.value

    @property
    def elements(self) -> list[Any] | None:
        """The elements in a flat list of Python values, where any are known, of the kinds that `value` says."""
        return None if self.value is None else self.value.ravel().tolist()


UNKNOWN = Fact(None)
"""The fact of a value about which nothing is known."""


def tensor(dtype: DataType | None, shape: Shape | None = None) -> Fact:
    """Return a fact about a tensor; UNKNOWN where `dtype` is None."""
    return UNKNOWN if dtype is None else Fact(TensorType(dtype, shape))


def known(dtype: DataType | None, value: Array) -> Fact:
    """Return a fact about a tensor with these elements, which are dropped where they are too many or none of them is known."""
    if dtype is None:
        return UNKNOWN
    if value.size > MAX_VALUE_SIZE:
        return Fact(TensorType(dtype, value.shape))
    if value.dtype == object and dtype is not DataType.STRING:
        return Fact(TensorType(dtype, value.shape), _narrowed(value, dtype))
    return Fact(TensorType(dtype, value.shape), value)


def _narrowed(value: Array, dtype: DataType) -> Array | None:
    """Return `value` in the dtype of the tensor where all its elements are plain numbers; None where it says nothing."""
    elements: list[object] = value.ravel().tolist()
    if all(isinstance(item, (int, float)) for item in elements):
        return np.array(elements, dtype.numpy).reshape(value.shape)
    return None if all(item is None for item in elements) else value


@dataclasses.dataclass(frozen=True, slots=True)
class ShapeCall(Operator):
    """What a shape function may know about its node."""

    name: str
    """The node's name, for messages."""
    op_type: str
    """The operator."""
    domain: str
    """Its domain; "" is ai.onnx."""
    version: int
    """The opset version that the node is read under."""
    attributes: Mapping[str, Attribute]
    """The node's attributes, with references to those of the calling node resolved."""
    output_count: int
    """How many outputs the node lists."""
    declared: tuple[DataType | None, ...]
    """For each of them, its element type where it is known before: as the model declares it, or as it was inferred."""
    infer_body: Callable[..., list[Fact]]
    """For operators with a graph attribute: infer_body(graph, input facts) -> output facts."""


ShapeFunction = Callable[..., "Fact | tuple[Fact, ...]"]
"""f(call, *input facts, **attributes) -> the fact of the output, or a tuple of them."""


@dataclasses.dataclass(frozen=True, slots=True)
class ShapeEntry:
    """A registered shape function."""

    function: ShapeFunction
    """The function itself."""
    since: int
    """The first opset version of this meaning."""
    attributes: frozenset[str]
    """The attributes that it takes by keyword."""
    needed: int
    """How many leading inputs must be there."""
    most: int
    """How many inputs it takes."""


_ENTRIES: dict[tuple[str, str], list[ShapeEntry]] = {}


def shape_function(*op_types: str, since: int = 1, domain: str = "") -> Callable[[ShapeFunction], ShapeFunction]:
    """Register the decorated function for these operators from opset `since` of `domain` on."""

    def register(function: ShapeFunction) -> ShapeFunction:
        entry = _entry(function, since)
        for op_type in op_types:
            _register(domain, op_type, entry)
        return function

    return register


def derive_shape_functions(op_type: str, domain: str, change: Callable[[ShapeFunction], ShapeFunction]) -> None:
    """Register for `op_type` of `domain` what `change` makes of each of its shape functions in ai.onnx."""
    for entry in _ENTRIES["", op_type]:
        _register(domain, op_type, dataclasses.replace(entry, function=change(entry.function)))


def _register(domain: str, op_type: str, entry: ShapeEntry) -> None:
    versions = _ENTRIES.setdefault((domain, op_type), [])
    for other in [other for other in versions if other.since == entry.since]:
        if not is_defined_again(other.function, entry.function):
            raise ValueError(f"two shape functions for {domain or 'ai.onnx'}.{op_type} since {entry.since}")
        versions.remove(other)
    versions.append(entry)
    versions.sort(key=lambda item: item.since)
    find_shape_function.cache_clear()


def _entry(function: ShapeFunction, since: int) -> ShapeEntry:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    attributes = frozenset(item.name for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY)
    positional = [item for item in parameters if item.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    is_variadic = any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in parameters)
    needed = sum(item.default is inspect.Parameter.empty for item in positional)
    return ShapeEntry(function, since, attributes, needed, 1 << 30 if is_variadic else len(positional))


@functools.cache
def find_shape_function(domain: str, op_type: str, version: int) -> ShapeEntry | None:
    """Return the shape function whose range holds `version`, or None."""
    found = None
    for entry in _ENTRIES.get((domain, op_type), ()):
        if entry.since > version:
            break
        found = entry
    return found


def registered_shape_functions() -> list[tuple[str, str]]:
    """Return every (domain, operator) with a shape function, sorted."""
    return sorted(_ENTRIES)


def dims_text(shape: tuple[Dim, ...] | None) -> str:
    """Return a shape as messages print it: `[batch, 3, 224]`."""
    return "[?]" if shape is None else f"[{', '.join(map(str, shape))}]"


def shape_functions_of(op_type: str) -> list[tuple[str, ShapeEntry]]:
    """Return (domain, entry) for every shape function of the operator, by domain and version."""
    return [(domain, entry) for (domain, name), entries in sorted(_ENTRIES.items()) if name == op_type for entry in entries]
