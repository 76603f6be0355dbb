"""TypeProto and value types."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from sardonyx import errors
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.formats.onnx_types import data_type, read_denotations, read_type, write_denotations, write_type
from sardonyx.ir import MapType, OptionalType, SequenceType, SparseTensorType, TensorType, ValueType, symbol
from sardonyx.ir.shape import is_anonymous

FLOATS = TensorType(DataType.FLOAT, (2, symbol("batch")))
TYPES: list[ValueType] = [
    TensorType(DataType.FLOAT, ()),
    TensorType(DataType.INT2, None),
    TensorType(DataType.FLOAT6E3M2, (0, 3)),
    FLOATS,
    SparseTensorType(DataType.DOUBLE, (3, 4)),
    SequenceType(FLOATS),
    SequenceType(SequenceType(TensorType(DataType.STRING))),
    SequenceType(None),
    OptionalType(FLOATS),
    OptionalType(SequenceType(FLOATS)),
    MapType(DataType.STRING, TensorType(DataType.FLOAT)),
    SequenceType(MapType(DataType.INT64, TensorType(DataType.FLOAT, ()))),
]


@pytest.mark.parametrize("value_type", TYPES, ids=str)
def test_reading_undoes_writing(value_type: ValueType) -> None:
    """Every kind of type survives a round trip."""
    proto = onnx.TypeProto()
    write_type(proto, value_type)
    assert read_type(onnx.TypeProto.FromString(proto.SerializeToString())) == value_type


def test_an_unknown_rank_is_no_rank_of_zero() -> None:
    """No shape means an unknown rank; an empty shape means a scalar."""
    assert read_type(helper.make_tensor_type_proto(TensorProto.FLOAT, None)) == TensorType(DataType.FLOAT, None)
    assert read_type(helper.make_tensor_type_proto(TensorProto.FLOAT, [])) == TensorType(DataType.FLOAT, ())


@pytest.mark.parametrize("dim", [None, "", -1, "?"])
def test_a_dimension_without_size_or_name_is_anonymous(dim: int | str | None) -> None:
    """Missing, empty and negative dimensions are unknown, and differ from one another."""
    found = read_type(helper.make_tensor_type_proto(TensorProto.FLOAT, [dim, dim]))
    assert isinstance(found, TensorType)
    first, second = found.shape or ()
    assert is_anonymous(first)
    assert is_anonymous(second)
    assert first != second


def test_one_name_is_one_dimension() -> None:
    """Dimensions with the same dim_param are equal."""
    found = read_type(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", "n"]))
    assert found == TensorType(DataType.FLOAT, (symbol("n"), symbol("n")))


def test_expressions_are_written_as_text() -> None:
    """A dimension that is computed is printed into dim_param; an anonymous one is left open."""
    proto = onnx.TypeProto()
    write_type(proto, TensorType(DataType.FLOAT, (2 * symbol("n"), symbol("?1"))))
    computed, anonymous = proto.tensor_type.shape.dim
    assert computed.dim_param == "2*n"
    assert anonymous.WhichOneof("value") is None


@pytest.mark.parametrize("proto", [onnx.TypeProto(), helper.make_tensor_type_proto(TensorProto.UNDEFINED, [2])])
def test_a_type_left_open_is_none(proto: onnx.TypeProto) -> None:
    """Neither an empty type nor one without an element type says anything."""
    assert read_type(proto) is None


def test_none_is_written_as_nothing() -> None:
    """An unknown type leaves the message empty."""
    proto = onnx.TypeProto()
    write_type(proto, None)
    assert proto == onnx.TypeProto()


def test_an_unknown_element_type_is_not_implemented() -> None:
    """A number from a later standard is said to be unknown, not wrong."""
    with pytest.raises(errors.NotImplemented, match="unknown element type 99"):
        data_type(99)


def test_an_opaque_type_is_not_implemented() -> None:
    """The message names the opaque type."""
    proto = onnx.TypeProto()
    proto.opaque_type.domain, proto.opaque_type.name = "d", "Thing"
    with pytest.raises(errors.NotImplemented, match=r"opaque\(d,Thing\)"):
        read_type(proto)


def test_types_nested_too_deeply_are_refused() -> None:
    """A hostile type does not exhaust the stack."""
    proto = onnx.TypeProto()
    inner = proto
    for _ in range(60):
        inner = inner.sequence_type.elem_type
    inner.tensor_type.elem_type = TensorProto.FLOAT
    with pytest.raises(InvalidGraph, match="nested more than 32 levels"):
        read_type(proto)


def test_denotations_are_read_and_written() -> None:
    """One word for each dimension, "" where it has none."""
    proto = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 3, 8])
    assert read_denotations(proto) == ""
    write_denotations(proto, "DATA_BATCH,,DATA_FEATURE")
    assert [dim.denotation for dim in proto.tensor_type.shape.dim] == ["DATA_BATCH", "", "DATA_FEATURE"]
    assert read_denotations(proto) == "DATA_BATCH,,DATA_FEATURE"


def test_what_is_no_tensor_has_no_denotations() -> None:
    """Nothing is read from a sequence, and nothing written to it."""
    proto = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [1]))
    write_denotations(proto, "DATA_BATCH")
    assert read_denotations(proto) == ""
