"""AttributeProto and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper
from support.protos import tensor
from support.same_model import same_tensor

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.formats.external_data import ExternalData
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.onnx_attribute import AttributeReader, write_attribute
from sardonyx.formats.onnx_tensor import TensorReader
from sardonyx.ir import Attribute, AttributeKind, Graph, SequenceType, SparseTensor, Tensor, TensorType

READER = AttributeReader(TensorReader(MemoryContent(memoryview(b"")), {}, ExternalData(None)))


def read_graph(proto: Any) -> Graph:
    return Graph(proto.name)


def write_graph(proto: Any, graph: Graph) -> None:
    proto.name = graph.name


def read(*protos: AttributeProto) -> dict[str, Attribute]:
    return READER.read(protos, read_graph)


TENSOR = Tensor.from_array(np.arange(3, dtype=np.float32), "t")
SPARSE = SparseTensor(TENSOR, Tensor.from_array(np.array([0, 2, 4])), (5,))
SIMPLE = [
    (AttributeKind.FLOAT, 0.5),
    (AttributeKind.FLOAT, 0.0),
    (AttributeKind.INT, -(2**63)),
    (AttributeKind.INT, 0),
    (AttributeKind.STRING, "ü"),
    (AttributeKind.STRING, ""),
    (AttributeKind.STRING, b"\xff".decode("utf-8", "surrogateescape")),
    (AttributeKind.FLOATS, (0.0, float("inf"))),
    (AttributeKind.FLOATS, ()),
    (AttributeKind.INTS, (1, -1)),
    (AttributeKind.INTS, ()),
    (AttributeKind.STRINGS, ("a", "")),
    (AttributeKind.STRINGS, ()),
    (AttributeKind.TENSORS, ()),
    (AttributeKind.GRAPHS, ()),
    (AttributeKind.TYPE, SequenceType(TensorType(DataType.FLOAT, (1,)))),
    (AttributeKind.TYPES, (TensorType(DataType.INT8, ()), SequenceType(None))),
]


def round_trip(kind: AttributeKind, value: Any) -> Attribute:
    proto = AttributeProto()
    write_attribute(proto, "a", Attribute(kind, value), write_graph)
    return read(AttributeProto.FromString(proto.SerializeToString()))["a"]


@pytest.mark.parametrize(("kind", "value"), SIMPLE)
def test_reading_undoes_writing(kind: AttributeKind, value: Any) -> None:
    """Kind and value survive, also where the value is 0 or empty."""
    found = round_trip(kind, value)
    assert (found.kind, found.value, found.reference) == (kind, value, None)


def test_tensors_survive() -> None:
    """A tensor and a list of tensors keep type, shape and elements."""
    assert same_tensor(round_trip(AttributeKind.TENSOR, TENSOR).value, TENSOR)
    assert same_tensor(round_trip(AttributeKind.TENSORS, (TENSOR,)).value[0], TENSOR)


def test_sparse_tensors_survive() -> None:
    """A sparse attribute stays sparse."""
    single = round_trip(AttributeKind.SPARSE_TENSOR, SPARSE).value
    for found in (single, *round_trip(AttributeKind.SPARSE_TENSORS, (SPARSE,)).value):
        assert found.shape == (5,)
        assert same_tensor(found.values, SPARSE.values)
        assert same_tensor(found.indices, SPARSE.indices)


def test_graphs_are_passed_on() -> None:
    """Subgraphs are read and written by whoever knows the scope, also empty ones."""
    assert round_trip(AttributeKind.GRAPH, Graph("body")).value.name == "body"
    assert [graph.name for graph in round_trip(AttributeKind.GRAPHS, (Graph("a"), Graph("b"))).value] == ["a", "b"]


def test_references_survive() -> None:
    """An attribute that takes its value from the caller keeps its kind and the name."""
    proto = AttributeProto()
    write_attribute(proto, "axis", Attribute(AttributeKind.INT, None, "the_axis"), write_graph)
    found = read(proto)["axis"]
    assert (found.kind, found.value, found.reference) == (AttributeKind.INT, None, "the_axis")


def test_the_order_of_attributes_is_kept() -> None:
    """Attributes come in the order of the file."""
    assert list(read(helper.make_attribute("b", 1), helper.make_attribute("a", 2))) == ["b", "a"]


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (AttributeProto(name="a", type=AttributeProto.INT, f=0.5), r"'a' says it is INT, but its value is FLOAT \(field 'f'\)"),
        (AttributeProto(name="a", type=AttributeProto.INTS, floats=[0.5]), "says it is INTS, but its value is FLOATS"),
        (AttributeProto(name="a", type=AttributeProto.TENSOR, i=1), "says it is TENSOR, but its value is INT"),
        (AttributeProto(name="a", type=AttributeProto.GRAPH, s=b"x"), "says it is GRAPH, but its value is STRING"),
        (AttributeProto(name="a", type=AttributeProto.TENSOR), "says it is TENSOR, but has no value"),
        (AttributeProto(name="a", type=AttributeProto.GRAPH), "says it is GRAPH, but has no value"),
        (AttributeProto(name="a"), "has no type and 0 values"),
        (AttributeProto(name="a", i=1, f=1.0), "has no type and 2 values"),
        (AttributeProto(name="a", ref_attr_name="b"), "refers to 'b' but has no type"),
    ],
)
def test_a_type_that_contradicts_its_payload_is_refused(proto: AttributeProto, message: str) -> None:
    """The message names the attribute, what it says it is, and what it holds."""
    with pytest.raises(InvalidGraph, match=message):
        read(proto)


def test_numbers_left_out_are_zero() -> None:
    """Writers that leave out zeros give a type without payload: it means 0, as in ONNX Runtime."""
    assert read(AttributeProto(name="a", type=AttributeProto.INT))["a"].value == 0
    assert read(AttributeProto(name="a", type=AttributeProto.FLOAT))["a"].value == 0.0


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"i": 3}, AttributeKind.INT),
        ({"floats": [1.0]}, AttributeKind.FLOATS),
        ({"t": tensor("", np.zeros(1))}, AttributeKind.TENSOR),
    ],
)
def test_an_attribute_without_type_has_the_kind_of_its_payload(payload: dict[str, Any], kind: AttributeKind) -> None:
    """Files of the first IR versions state no types."""
    assert read(AttributeProto(name="a", **payload))["a"].kind is kind


def test_two_attributes_of_one_name_are_refused() -> None:
    """The message says how often the name occurs."""
    with pytest.raises(InvalidGraph, match="attribute 'a' is given 2 times"):
        read(helper.make_attribute("a", 1), helper.make_attribute("a", 2))


def test_a_broken_tensor_is_reported_as_an_attribute() -> None:
    """Errors of a tensor say that it is in an attribute."""
    with pytest.raises(InvalidGraph, match="attribute 't' .* has no data"):
        read(helper.make_attribute("value", onnx.TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[2])))
