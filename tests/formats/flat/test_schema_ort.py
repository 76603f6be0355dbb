"""The tables of ONNX Runtime's own format."""

from __future__ import annotations

from sardonyx.formats.flat.schema import Kind
from sardonyx.formats.flat.schema_ort import ORT


def test_an_attribute_can_hold_a_graph() -> None:
    """Which makes tables recursive."""
    assert ORT.fields("Attribute")["g"].target == "Graph"
    assert ORT.fields("Graph")["nodes"].kind is Kind.TABLES


def test_edges_are_structs_of_12_bytes() -> None:
    """Three integers of 4 bytes."""
    assert ORT.fields("NodeEdge")["input_edges"].dtype.itemsize == 12


def test_types_are_a_union() -> None:
    """Of tensors, sequences and maps."""
    assert ORT.union("TypeInfoValue") == {1: "TensorTypeAndShape", 2: "SequenceType", 3: "MapType"}


def test_data_outside_has_an_offset_of_minus_1_by_default() -> None:
    """As 0 is one."""
    assert ORT.fields("Tensor")["external_data_offset"].default == -1
