"""Sequences and optionals."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import OptionalType, SequenceType, Shape, TensorType, ValueType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import UNKNOWN, Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import replace_dim
from sardonyx.ops.shapes.control_flow import join
from sardonyx.ops.shapes.elements import ints_of
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.element_type import element_type

__all__: list[str] = []


def _element(fact: Fact) -> ValueType | None:
    return fact.type.element if isinstance(fact.type, SequenceType) else None


@shape_function("SequenceConstruct")
def sequence_construct(call: ShapeCall, first: Fact, *others: Fact | None) -> Fact:
    """Return a sequence whose element type is what the inputs have in common."""
    result = Fact(first.type)
    for fact in others:
        result = join(result, UNKNOWN if fact is None else Fact(fact.type))
    return Fact(SequenceType(result.type))


@shape_function("SequenceEmpty")
def sequence_empty(call: ShapeCall, *, dtype: int = 1) -> Fact:
    """Return a sequence of tensors of the given type."""
    return Fact(SequenceType(TensorType(element_type(dtype, "dtype"))))


@shape_function("SequenceInsert")
def sequence_insert(call: ShapeCall, sequence: Fact, item: Fact, position: Fact | None = None) -> Fact:
    """Return the sequence with one more tensor, whose shape need not be that of the others."""
    joined = join(Fact(_element(sequence)), Fact(item.type)).type
    return Fact(SequenceType(joined if joined is not None else Fact(item.type).type))


@shape_function("SequenceErase")
def sequence_erase(call: ShapeCall, sequence: Fact, position: Fact | None = None) -> Fact:
    """Return the sequence without one tensor."""
    return Fact(sequence.type)


@shape_function("SequenceAt")
def sequence_at(call: ShapeCall, sequence: Fact, position: Fact) -> Fact:
    """Return one element."""
    return Fact(_element(sequence))


@shape_function("SequenceLength")
def sequence_length(call: ShapeCall, sequence: Fact) -> Fact:
    """Return a scalar."""
    return tensor(DataType.INT64, ())


@shape_function("ConcatFromSequence")
def concat_from_sequence(call: ShapeCall, sequence: Fact, *, axis: int = 0, new_axis: int = 0) -> Fact:
    """Return the elements put together along the axis, which may be a new one."""
    element = _element(sequence)
    if not isinstance(element, TensorType):
        return UNKNOWN
    if element.shape is None:
        return tensor(element.dtype)
    rank = len(element.shape) + bool(new_axis)
    place = normalize_axis(axis, rank)
    if new_axis:
        return tensor(element.dtype, (*element.shape[:place], anonymous(), *element.shape[place:]))
    return tensor(element.dtype, replace_dim(element.shape, place, anonymous()))


@shape_function("SplitToSequence")
def split_to_sequence(call: ShapeCall, x: Fact, split: Fact | None = None, *, axis: int = 0, keepdims: int = 1) -> Fact:
    """Return a sequence of parts along the axis."""
    if x.dtype is None:
        return UNKNOWN
    return Fact(SequenceType(TensorType(x.dtype, None if x.shape is None else _part(x.shape, split, axis, keepdims))))


def _part(shape: Shape, split: Fact | None, axis: int, keepdims: int) -> Shape:
    place = normalize_axis(axis, len(shape))
    if split is None:
        return replace_dim(shape, place, 1) if keepdims else shape[:place] + shape[place + 1 :]
    lengths = set(ints_of(split) or ())
    dim = shape[place]
    is_even = len(lengths) == 1 and (split.rank == 1 or (isinstance(dim, int) and dim % next(iter(lengths)) == 0))
    return replace_dim(shape, place, lengths.pop() if is_even else anonymous())


@shape_function("Optional")
def optional(call: ShapeCall, x: Fact | None = None, *, type: ValueType | None = None) -> Fact:
    """Return an optional that holds the input, or none of the given type."""
    return Fact(OptionalType(x.type if x is not None else type))


@shape_function("OptionalGetElement")
def optional_get_element(call: ShapeCall, x: Fact) -> Fact:
    """Return what the optional holds; a value that is no optional passes."""
    return Fact(x.type.element) if isinstance(x.type, OptionalType) else x


@shape_function("OptionalHasElement")
def optional_has_element(call: ShapeCall, x: Fact | None = None) -> Fact:
    """Return a scalar."""
    return tensor(DataType.BOOL, ())
