"""Read the pairs that a rotary embedding turns: which value they are the parts of, and how they lie in it.

    halves           first, second = Split(x)                                       (k, k + D / 2)
    alternating      first = x[…, 0::2], second = x[…, 1::2]                        (2k, 2k + 1)
                     first, second = Split(Reshape(x, (…, D / 2, 2))), each without its last axis

Everything is recognized by shapes: which shape operand made them is no matter.
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Node, Value
from sardonyx.ops.views.slice import Split
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.rule import Builder

__all__ = ["Pairs", "read_pairs"]


@dataclasses.dataclass(frozen=True, slots=True)
class Pairs:
    """A value whose elements are rotated in pairs."""

    source: Value
    """It, (…, D); or (…, D / 2, 2)."""
    is_alternating: bool
    """Whether the two of a pair lie next to each other."""
    is_split: bool = False
    """Whether `source` is (…, D / 2, 2)."""

    def whole(self, op: Builder, rank: int) -> Value:
        """Return the value as (…, D), of `rank` dimensions."""
        return op.Reshape(self.source, [0] * (rank - 1) + [-1]) if self.is_split else self.source


def read_pairs(first: Value, second: Value, overridable: frozenset[Value]) -> Pairs | None:
    """Return the value of whose pairs these are the first and the second elements; None where they are not known to be."""
    left, right = first.producer, second.producer
    if left is None or right is None or left.domain or first.shape is None or first.shape != second.shape:
        return None
    if left.op_type == right.op_type == "Slice":
        return _read_slices(left, right, overridable)
    if left.op_type in ("Squeeze", "Reshape") and right.op_type in ("Squeeze", "Reshape"):
        return _read_columns(first, second)
    is_split = left is right and _splits_in_two(left) and (first.index, second.index) == (0, 1)
    source = left.inputs[0]
    return Pairs(source, is_alternating=False) if is_split and source is not None else None


def _splits_in_two(node: Node) -> bool:
    """Return whether a node splits its input into two equal parts of the last axis."""
    shapes = [value.shape for value in node.outputs]
    if node.op_type != "Split" or len(shapes) != 2 or shapes[0] is None or shapes[0] != shapes[1]:
        return False
    return isinstance(shapes[0][-1], int) and Split.of(node).axis in (-1, len(shapes[0]) - 1)


def _read_slices(left: Node, right: Node, overridable: frozenset[Value]) -> Pairs | None:
    source = left.inputs[0]
    if source is None or source is not right.inputs[0] or source.shape is None:
        return None
    starts = [_start_of_every_second(node, source.shape[-1], overridable) for node in (left, right)]
    return Pairs(source, is_alternating=True) if starts == [0, 1] else None


def _start_of_every_second(node: Node, size: object, overridable: frozenset[Value]) -> int | None:
    """Return where a Slice begins that takes every second element of the last axis up to its end; None for any other."""
    operands = [small_constant(node.input(index), overridable, max_elements=1) for index in range(1, 5)]
    numbers = [int(array.reshape(())) for array in operands if array is not None and array.size == 1]
    if len(numbers) != 4 or not isinstance(size, int) or size % 2:
        return None
    start, end, axis, step = numbers
    is_last = axis in (-1, len(node.output.shape or ()) - 1)
    return start if is_last and step == 2 and end >= size - 1 + start else None


def _read_columns(first: Value, second: Value) -> Pairs | None:
    """Return pairs that are split from (…, D / 2, 2), each without the last axis."""
    columns = [value.producer.inputs[0] for value in (first, second) if value.producer is not None]
    left, right = columns
    if left is None or right is None or left.producer is None or left.producer is not right.producer:
        return None
    node = left.producer
    source = node.inputs[0]
    is_column = left.shape == right.shape == (*(first.shape or ()), 1)
    is_first = _splits_in_two(node) and (left.index, right.index) == (0, 1) and is_column
    return Pairs(source, is_alternating=True, is_split=True) if is_first and source is not None else None
