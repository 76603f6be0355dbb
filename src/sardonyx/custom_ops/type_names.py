"""Types of a Python operator's inputs and outputs, by name.

"float"  "int64"  "string"        a tensor of these elements, as `str(DataType)` prints it
"x"                               what the input x has
"seq(float)"  "seq(x)"            a list of tensors
"int64?"                          an output that may be left out
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import SequenceType, Shape, TensorType, ValueType

__all__ = ["Output", "parse_dtype", "parse_output"]


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """A formal output."""

    dtype: DataType
    """Its element type; UNDEFINED where that is an input's."""
    like: str = ""
    """The input whose element type it has; "" for none."""
    is_sequence: bool = False
    """Whether it is a list of tensors."""
    is_optional: bool = False
    """Whether a node may leave it out."""

    def type_of(self, dtypes: Mapping[str, DataType | None], shape: Shape | None) -> ValueType | None:
        """Return its type where inputs have the element types `dtypes`, None for one that is not known."""
        dtype = dtypes.get(self.like) if self.like else self.dtype
        if dtype is None:
            return None
        return SequenceType(TensorType(dtype, shape)) if self.is_sequence else TensorType(dtype, shape)


def parse_output(text: str, inputs: Sequence[str]) -> Output:
    """Return the output that `text` describes for an operator with these inputs; raises InvalidArgument for another text."""
    bare = text.removesuffix("?")
    is_sequence = bare.startswith("seq(") and bare.endswith(")")
    inner = bare[4:-1] if is_sequence else bare
    if inner in inputs:
        return Output(DataType.UNDEFINED, inner, is_sequence, bare != text)
    return Output(parse_dtype(inner, inputs), "", is_sequence, bare != text)


def parse_dtype(text: str, others: Collection[str] = ()) -> DataType:
    """Return the element type named `text`; raises InvalidArgument for another text, which names `others` as well."""
    try:
        return DataType.parse(text)
    except KeyError:
        meant = _of_numpy(text)
        hint = f"{meant} is what ONNX calls it; " if meant else ""
        named = f", or one of {', '.join(others)}" if others else ""
        known = ", ".join(str(item) for item in DataType if item is not DataType.UNDEFINED)
        raise InvalidArgument(f"{text!r} is no type; {hint}expected one of {known}{named}") from None


def _of_numpy(text: str) -> str:
    """Return the type that NumPy calls `text`, or ""."""
    return next((str(item) for item in DataType if item is not DataType.UNDEFINED and item.numpy.name == text), "")
