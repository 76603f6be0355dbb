"""An operator with its attributes, which are read by kind: the common base of nodes and of what kernels see of them.

    node.integer("axis", -1)        the int, or -1 where the node has none
    node.integers("pads")           the ints, or None
    node.flag("keepdims", True)     an int that is used as a truth value

An attribute of another kind raises InvalidGraph, in the same words as the check of a model against the operators' schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from sardonyx.errors import InvalidGraph
from sardonyx.ir.attribute import Attribute, AttributeKind
from sardonyx.ir.tensor import Tensor

__all__ = ["Operator", "wrong_kind"]

_FLOAT, _INT, _STRING, _TENSOR = AttributeKind.FLOAT, AttributeKind.INT, AttributeKind.STRING, AttributeKind.TENSOR
_FLOATS, _INTS, _STRINGS = AttributeKind.FLOATS, AttributeKind.INTS, AttributeKind.STRINGS


class Operator:
    """An operator under a version of its domain, with attributes; None stands for an attribute that is left out."""

    __slots__ = ()

    attributes: Mapping[str, Attribute]
    domain: str
    op_type: str
    version: int

    @overload
    def integer(self, name: str) -> int | None: ...
    @overload
    def integer(self, name: str, default: int) -> int: ...
    def integer(self, name: str, default: int | None = None) -> int | None:
        """Return the int of attribute `name`, or `default`; raises InvalidGraph for another kind."""
        found = self.attributes.get(name)
        if found is None:
            return default
        value = found.value
        if found.kind is not _INT or not isinstance(value, int):
            raise self._refusal(name, found, _INT)
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether the int of attribute `name` is other than 0, or `default`; raises InvalidGraph for another kind."""
        found = self.integer(name)
        return default if found is None else found != 0

    @overload
    def integers(self, name: str) -> tuple[int, ...] | None: ...
    @overload
    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]: ...
    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
        """Return the ints of attribute `name`, or `default`; raises InvalidGraph for another kind."""
        found = self.attributes.get(name)
        if found is None:
            return default
        if found.kind is not _INTS or found.value is None:
            raise self._refusal(name, found, _INTS)
        return tuple(found.value)

    @overload
    def number(self, name: str) -> float | None: ...
    @overload
    def number(self, name: str, default: float) -> float: ...
    def number(self, name: str, default: float | None = None) -> float | None:
        """Return the float of attribute `name`, or `default`; raises InvalidGraph for another kind."""
        found = self.attributes.get(name)
        if found is None:
            return default
        value = found.value
        if found.kind is not _FLOAT or not isinstance(value, float):
            raise self._refusal(name, found, _FLOAT)
        return value

    @overload
    def numbers(self, name: str) -> tuple[float, ...] | None: ...
    @overload
    def numbers(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]: ...
    def numbers(self, name: str, default: tuple[float, ...] | None = None) -> tuple[float, ...] | None:
        """Return the floats of attribute `name`, or `default`; raises InvalidGraph for another kind."""
        found = self.attributes.get(name)
        if found is None:
            return default
        if found.kind is not _FLOATS or found.value is None:
            raise self._refusal(name, found, _FLOATS)
        return tuple(found.value)

    @overload
    def text(self, name: str) -> str | None: ...
    @overload
    def text(self, name: str, default: str) -> str: ...
    def text(self, name: str, default: str | None = None) -> str | None:
        """Return the string of attribute `name`, or `default`; raises InvalidGraph for another kind."""
        found = self.attributes.get(name)
        if found is None:
            return default
        value = found.value
        if found.kind is not _STRING or not isinstance(value, str):
            raise self._refusal(name, found, _STRING)
        return value

    @overload
    def texts(self, name: str) -> tuple[str, ...] | None: ...
    @overload
    def texts(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]: ...
    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
        """Return the strings of attribute `name`, or `default`; raises InvalidGraph for another kind."""
        found = self.attributes.get(name)
        if found is None:
            return default
        if found.kind is not _STRINGS or found.value is None:
            raise self._refusal(name, found, _STRINGS)
        return tuple(found.value)

    def tensor(self, name: str) -> Tensor | None:
        """Return the tensor of attribute `name`, or None; raises InvalidGraph for another kind."""
        found = self.attributes.get(name)
        if found is None:
            return None
        value = found.value
        if found.kind is not _TENSOR or not isinstance(value, Tensor):
            raise self._refusal(name, found, _TENSOR)
        return value

    @property
    def place(self) -> str:
        """What messages call this; empty where the place is added to an error as it passes upwards."""
        return ""

    def _refusal(self, name: str, found: Attribute, expected: AttributeKind) -> InvalidGraph:
        """Return the error for an attribute that is not of the expected kind."""
        message = wrong_kind(name, found, expected)
        if found.reference is not None:
            message = f"attribute {name!r} refers to attribute {found.reference!r} of a function; inline the functions first"
        return InvalidGraph(f"{self.place}: {message}" if self.place else message)


def wrong_kind(name: str, found: Attribute, expected: AttributeKind) -> str:
    """Return the message for an attribute of another kind than the operator takes."""
    return f"attribute {name!r} has type {found.kind.name} ({found!r:.60}), expected {expected.name}"
