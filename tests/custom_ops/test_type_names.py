"""Types of inputs and outputs by name."""

from __future__ import annotations

import pytest

from sardonyx.custom_ops.type_names import Output, parse_dtype, parse_output
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import SequenceType, TensorType


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("float", Output(DataType.FLOAT)),
        ("int64?", Output(DataType.INT64, is_optional=True)),
        ("x", Output(DataType.UNDEFINED, "x")),
        ("seq(x)?", Output(DataType.UNDEFINED, "x", is_sequence=True, is_optional=True)),
        ("seq(string)", Output(DataType.STRING, is_sequence=True)),
    ],
)
def test_an_output_is_a_type_or_an_input(text: str, output: Output) -> None:
    """Alone, in a list, or one that may be left out."""
    assert parse_output(text, ["x"]) == output


def test_an_unknown_name_lists_the_known() -> None:
    """Types and inputs."""
    with pytest.raises(InvalidArgument, match="'floot' is no type; expected one of float, uint8.*, or one of x, y"):
        parse_dtype("floot", ["x", "y"])


def test_the_name_that_numpy_gives_a_type_is_recognised() -> None:
    """And the one to write in its place is said."""
    with pytest.raises(InvalidArgument, match="'float32' is no type; float is what ONNX calls it; expected one of"):
        parse_dtype("float32")


def test_an_output_like_an_input_has_its_type() -> None:
    """And none where that is not known."""
    assert Output(DataType.UNDEFINED, "x").type_of({"x": DataType.INT8}, (2,)) == TensorType(DataType.INT8, (2,))
    assert Output(DataType.UNDEFINED, "x").type_of({"x": None}, (2,)) is None
    assert parse_output("seq(float)", []).type_of({}, None) == SequenceType(TensorType(DataType.FLOAT))
