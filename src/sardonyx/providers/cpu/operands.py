"""What lowerings read from a node besides its tensors: shapes that the check has seen, and numbers that are constants."""

from __future__ import annotations

from sardonyx.dtypes import Array
from sardonyx.ir import Node, Shape, Value
from sardonyx.providers.cpu.strided import moved_type

__all__ = ["axis_of", "check_moved", "constant_of", "given", "ints_of", "shape_of"]


def given(value: Value | None) -> Value:
    """An input that the check has found."""
    if value is None:
        raise ValueError("the check lets no node without this input through")
    return value


def shape_of(value: Value | None) -> Shape:
    """The shape of a value that is there; the provider lets only values of known rank through."""
    shape = given(value).shape
    if shape is None:
        raise ValueError("the check lets only values of known rank through")
    return shape


def constant_of(value: Value | None) -> Array | None:
    """The elements of a constant, None for an input that is left out or computed."""
    return None if value is None or value.constant is None else value.constant.numpy()


def ints_of(node: Node, index: int, attribute: str) -> list[int] | None:
    """Integers that newer versions have as input `index` and older ones as an attribute; None where absent or computed."""
    if attribute in node.attributes:
        return [int(number) for number in node.get(attribute)]
    found = constant_of(node.input(index))
    return None if found is None else [int(number) for number in found.ravel()]


def axis_of(node: Node, default: int, rank: int) -> int:
    """The attribute `axis`, counted from the front."""
    axis: int = node.get("axis", default)
    return axis % max(rank, 1)


def check_moved(node: Node) -> str | None:
    """Why a node that only moves elements cannot be lowered: their type, or a first input that is left out."""
    if not node.inputs or node.inputs[0] is None:
        return "its input is left out"
    for value in node.outputs:
        if moved_type(value.dtype) is None:
            return f"elements of type {value.dtype}"
    return None
