"""What claims read from a node's tensors: shapes, numbers that are constants, and the types that elements are moved as."""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx.codegen.emit.types import F32, F64, I32, I64, Type
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Dim, Expr, Node, Shape, Value
from sardonyx.providers.cpu.strided import moved_type

__all__ = ["constant_of", "float_type", "given", "index_type", "moved_as", "open_or_wrong", "shape_of"]


def given(value: Value | None) -> Value:
    """Return an input that no node of the operator leaves out, as `inputs` of `lowers` says.

    Raises:
        ValueError: it is left out.
    """
    if value is None:
        raise ValueError("an input that may be left out was taken for one that is there; ask node.input(i) first")
    return value


def float_type(*values: Value | None) -> Type | str:
    """Return F32 or F64, of which the elements of all these values are, or of what types they are instead."""
    dtypes = {given(value).dtype for value in values}
    if dtypes == {DataType.FLOAT}:
        return F32
    return F64 if dtypes == {DataType.DOUBLE} else f"type {' and '.join(sorted(map(str, dtypes)))}"


def shape_of(value: Value | None) -> Shape:
    """Return the shape of a value that is there, and of known rank, as all values are that claims are asked about.

    Raises:
        ValueError: it is left out, or its rank is not known.
    """
    shape = given(value).shape
    if shape is None:
        raise ValueError(f"the rank of {value!r} is not known; claims are asked only about nodes whose values have known ranks")
    return shape


def constant_of(value: Value | None) -> Array | None:
    """Return the elements of a constant, None for an input that is left out or computed."""
    return None if value is None or value.constant is None else value.constant.numpy()


def open_or_wrong(*shapes: Iterable[Dim] | None) -> str:
    """Return how a reason ends that says what shapes would have to be: they may still turn out so, or are known not to be."""
    is_open = any(isinstance(dim, Expr) for shape in shapes for dim in shape or ())
    return "depends on sizes" if is_open else "is not so"


def moved_as(node: Node, source: int = 0) -> Type | str:
    """Return the integer type as which a node that only moves elements of one input moves them, or why it cannot."""
    dtype = given(node.inputs[source]).dtype
    if any(value.dtype is not dtype for value in node.outputs):
        return f"elements of type {dtype} become others of type {node.outputs[0].dtype}"
    return moved_type(dtype) or f"elements of type {dtype}"


def index_type(value: Value | None) -> Type | str:
    """Return the type of indices, or why kernels do not read them."""
    dtype = given(value).dtype
    if dtype is DataType.INT64:
        return I64
    return I32 if dtype is DataType.INT32 else f"indices of type {dtype}"
