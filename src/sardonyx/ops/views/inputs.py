"""Numbers that a node has as an attribute or as an input, where the input's elements may be known or not."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, TypeAlias

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Node, Operator, Tensor, Value
from sardonyx.ops.fact import Fact

__all__ = [
    "COMPUTED",
    "Computed",
    "Inputs",
    "Integers",
    "arrays",
    "constants",
    "elements",
    "integers",
    "listed",
    "no_inputs",
    "tensor_of",
]


class Computed(enum.Enum):
    """The type of COMPUTED."""

    COMPUTED = "computed"


COMPUTED: Final = Computed.COMPUTED
"""Stands for numbers that an input holds and that are known in a run only."""

Inputs: TypeAlias = Callable[[int], "Array | Computed | None"]
"""inputs(index) -> the elements of an input, COMPUTED where they are not known, None where the input is left out."""

Integers: TypeAlias = tuple[int, ...] | Computed | None
"""Integers of an attribute or an input; None where a node has neither."""

_MOST_ELEMENTS = 1024
"""Larger tensors are data, not numbers that say what an operator does."""


def tensor_of(value: Value | None) -> Tensor | None:
    """Return the tensor of an initializer or of the output of a Constant node, None for any other value; reads no data.

    An initializer that is an input of its graph too may be overridden by a feed; whoever counts on its elements must rule that out.
    """
    if value is None or value.constant is not None:
        return None if value is None else value.constant
    node = value.producer
    if node is None or node.op_type != "Constant" or node.domain:
        return None
    attribute = node.attributes.get("value")
    return None if attribute is None or attribute.reference is not None else node.tensor("value")


def constants(node: Node, overridable: frozenset[Value] = frozenset()) -> Inputs:
    """Return the inputs of `node` of which those are known that are small constants and not in `overridable`."""

    def read(index: int) -> Array | Computed | None:
        value = node.input(index)
        if value is None:
            return None
        tensor = None if value in overridable else tensor_of(value)
        return COMPUTED if tensor is None or tensor.size > _MOST_ELEMENTS else tensor.numpy()

    return read


def elements(*facts: Fact | None) -> Inputs:
    """Return inputs of which those are known whose facts hold every element."""

    def read(index: int) -> Array | Computed | None:
        fact = facts[index] if index < len(facts) else None
        if fact is None:
            return None
        return COMPUTED if fact.constant is None else fact.constant

    return read


def arrays(*values: Array | None) -> Inputs:
    """Return inputs that are all known, as they are in a run."""
    return lambda index: values[index] if index < len(values) else None


def no_inputs(index: int) -> Array | Computed | None:
    """Return COMPUTED: the inputs of a node of which only the attributes matter."""
    return COMPUTED


def listed(found: Array, name: str) -> tuple[int, ...]:
    """Return the integers of a tensor; raises InvalidGraph for elements of another type."""
    if found.size and found.dtype.kind not in "iu":
        raise InvalidGraph(f"{name} has elements of type {found.dtype.name}, expected integers")
    return tuple(int(number) for number in found.ravel().tolist())


def integers(node: Operator, name: str, inputs: Inputs, index: int) -> Integers:
    """Return the integers of attribute `name`, which older versions have, or else of input `index`.

    Raises:
        InvalidGraph: an attribute of another kind, or an input with elements of another type.
    """
    given = node.integers(name)
    if given is not None:
        return given
    found = inputs(index)
    return found if found is None or found is COMPUTED else listed(found, name)
