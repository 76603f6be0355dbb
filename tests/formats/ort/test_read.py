"""Files of ONNX Runtime's format become models; what is wrong with one is said with table and field."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as ort
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.flat.schema_ort import ORT
from sardonyx.formats.flat.writer import write
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.models import load
from sardonyx.formats.ort.read import large_data, read
from sardonyx.ir import Model
from sardonyx.ir.text import print_model

Table = dict[str, Any]


def _kind(elements: int = 1, *dims: Table) -> Table:
    return {"value": ("TensorTypeAndShape", {"elem_type": elements, "shape": {"dim": [{"value": dim} for dim in dims]}})}


def _value(name: str, *dims: Table, elements: int = 1) -> Table:
    return {"name": name, "type": _kind(elements, *dims)}


def _size(size: int) -> Table:
    return {"dim_type": "VALUE", "dim_value": size}


def _node(op_type: str, inputs: list[str], outputs: list[str], **more: object) -> Table:
    return {"op_type": op_type, "inputs": inputs, "outputs": outputs, "since_version": 13, **more}


def _graph(**more: object) -> Table:
    values = [_value("x", _size(2)), _value("y", _size(2))]
    return {"node_args": values, "inputs": ["x"], "outputs": ["y"], "nodes": [_node("Relu", ["x"], ["y"])], **more}


def _file(graph: Mapping[str, object] | None, version: str = "6", **more: object) -> bytes:
    model = {"ir_version": 8, "opset_import": [{"domain": "", "version": 13}], "graph": graph, **more}
    return write(ORT, {"ort_version": version, "model": model})


def _read(content: bytes) -> Model:
    return read(ModelFile(None, MemoryContent(memoryview(content))))


def test_a_graph_has_nodes_values_and_types() -> None:
    """Of the operator sets that the model imports."""
    text = print_model(_read(_file(_graph())))
    assert text.split("\n", 2)[2].split() == "graph graph(x: float[2]) -> (y: float[2]) { y = Relu(x) }".split()
    assert "opset 13" in text


@pytest.mark.parametrize("version", ["1", "2", "3", "4", "5", "6", "7"])
def test_versions_of_the_format_differ_in_what_is_not_needed(version: str) -> None:
    """So older files, and newer ones, are read."""
    assert len(_read(_file(_graph(), version)).graph) == 1


def test_what_the_file_says_of_the_model_is_kept() -> None:
    """Producer, versions, metadata and descriptions."""
    entry = {"key": "k", "value": "v"}
    more = {"producer_name": "p", "producer_version": "q", "domain": "d", "model_version": 3, "doc_string": "t"}
    model = _read(_file(_graph(), **more, metadata_props=[entry], graph_doc_string="g"))
    found = (model.producer_name, model.producer_version, model.domain, model.version, model.doc, model.graph.doc, model.metadata)
    assert found == ("p", "q", "d", 3, "t", "g", {"k": "v"})


def test_dimensions_are_sizes_symbols_or_unknown() -> None:
    """As in ONNX."""
    dims = [_size(3), {"dim_type": "PARAM", "dim_param": "n"}, {"dim_type": "UNKNOWN"}]
    shape = _read(_file(_graph(node_args=[_value("x", *dims)]))).graph.inputs[0].shape
    assert shape is not None
    assert shape[0] == 3
    assert str(shape[1]) == "n"
    assert str(shape[2]).startswith("?")


def test_sequences_and_maps_are_types_too() -> None:
    """With the types of what they hold."""
    sequence = {"name": "x", "type": {"value": ("SequenceType", {"elem_type": _kind()})}}
    mapping = {"name": "y", "type": {"value": ("MapType", {"key_type": "INT64", "value_type": _kind()})}}
    model = _read(_file(_graph(node_args=[sequence, mapping], nodes=[_node("ZipMap", ["x"], ["y"])])))
    assert (str(model.graph.inputs[0].type), str(model.graph.outputs[0].type)) == ("seq(tensor(float))", "map(int64,tensor(float))")


def test_initializers_have_their_elements() -> None:
    """Small and large ones, strings, and types of less than a byte."""
    tensors = [
        {"name": "a", "dims": [2], "data_type": 1, "raw_data": np.array([1, 2], np.float32).tobytes()},
        {"name": "b", "dims": [600], "data_type": 7, "raw_data": np.arange(600).tobytes()},
        {"name": "c", "dims": [2], "data_type": 8, "string_data": ["s", b"\xff"]},
        {"name": "d", "dims": [3], "data_type": 22, "raw_data": b"\x21\x03"},
    ]
    model = _read(_file(_graph(initializers=tensors)))
    constants = [value.constant for value in model.graph.initializers.values()]
    found = [constant.numpy().tolist() for constant in constants if constant is not None]
    assert found == [[1, 2], list(range(600)), ["s", "\udcff"], [1, 2, 3]]


def test_sparse_initializers_become_dense() -> None:
    """By their values and indices."""
    values = {"name": "s", "dims": [1], "data_type": 1, "raw_data": np.array([5], np.float32).tobytes()}
    indices = {"name": "", "dims": [1], "data_type": 7, "raw_data": np.array([2]).tobytes()}
    model = _read(_file(_graph(sparse_initializers=[{"values": values, "indices": indices, "dims": [4]}])))
    constant = model.graph.initializers["s"].constant
    assert constant is not None
    assert constant.numpy().tolist() == [0, 0, 5, 0]


def test_attributes_are_of_every_kind() -> None:
    """Numbers, texts, tensors, lists of these, and graphs."""
    tensor = {"name": "t", "dims": [], "data_type": 1, "raw_data": np.float32(3).tobytes()}
    attributes = [
        {"name": "f", "type": "FLOAT", "f": 0.5},
        {"name": "i", "type": "INT", "i": -2},
        {"name": "s", "type": "STRING", "s": "text"},
        {"name": "fs", "type": "FLOATS", "floats": [1, 2]},
        {"name": "is", "type": "INTS", "ints": [3]},
        {"name": "ss", "type": "STRINGS", "strings": ["a", "b"]},
        {"name": "t", "type": "TENSOR", "t": tensor},
        {"name": "ts", "type": "TENSORS", "tensors": [tensor]},
        {"name": "g", "type": "GRAPH", "g": _graph(inputs=[], nodes=[_node("Neg", ["x"], ["y"])])},
    ]
    (node,) = _read(_file(_graph(nodes=[_node("Mine", ["x"], ["y"], domain="own", attributes=attributes)]))).graph
    found = {name: node.get(name) for name in ("f", "i", "s", "fs", "is", "ss")}
    assert found == {"f": 0.5, "i": -2, "s": "text", "fs": (1, 2), "is": (3,), "ss": ("a", "b")}
    inner = node.subgraph("g")
    assert inner is not None
    assert next(iter(inner)).inputs[0] is node.inputs[0]
    assert node.get("t").numpy() == 3
    assert len(node.get("ts")) == 1


def test_large_data_is_where_it_is_in_the_file(tmp_path: Path) -> None:
    """In the order of the file, so that the cache of decisions need not read it."""
    weights = np.arange(600, dtype=np.float32)
    tensors = [
        {"name": name, "dims": [600], "data_type": 1, "raw_data": (weights + add).tobytes()} for name, add in (("a", 0), ("b", 1))
    ]
    content = _file(_graph(initializers=tensors))
    places = large_data(ModelFile(None, MemoryContent(memoryview(content))))
    assert [content[offset : offset + size] for offset, size in places] == [weights.tobytes(), (weights + 1).tobytes()]
    path = tmp_path / "m.bin"
    path.write_bytes(content + bytes(80_000))
    assert sorted(load(path).placed.values()) == [0, 1]


def test_external_data_is_beside_the_file(tmp_path: Path) -> None:
    """In a file of its name with .data behind, at the offset of the tensor."""
    tensors = [{"name": "a", "dims": [2], "data_type": 1, "external_data_offset": 4}]
    path = tmp_path / "m.ort"
    path.write_bytes(_file(_graph(initializers=tensors)))
    (tmp_path / "m.ort.data").write_bytes(np.array([9, 1, 2], np.float32).tobytes())
    constant = load(path).graph.initializers["a"].constant
    assert constant is not None
    assert constant.numpy().tolist() == [1, 2]
    with pytest.raises(ort.InvalidArgument, match="'a': its data is in another file, and a model from memory has none"):
        load(path.read_bytes())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_file(None), "InferenceSession.model.graph: it is absent"),
        (write(ORT, {"ort_version": "6"}), "InferenceSession.model: it is absent"),
        (_file(_graph(), "x"), "InferenceSession.ort_version: 'x' is no version"),
        (
            _file(_graph(nodes=[_node("Mine", ["x"], ["y"], attributes=[{"name": "a", "type": 11}])])),
            r"InferenceSession.model.graph.nodes\[0\].attributes\[0\].type: an attribute of kind 11",
        ),
        (
            _file(_graph(nodes=[_node("If", ["x"], ["y"], attributes=[{"name": "a", "type": 5}])])),
            r"attributes\[0\].g: it is absent, in an attribute that is a graph",
        ),
        (
            _file(_graph(nodes=[_node("If", ["x"], ["y"], attributes=[{"name": "a", "type": 4}])])),
            r"attributes\[0\].t: it is absent, in an attribute that is a tensor",
        ),
        (_file(_graph(sparse_initializers=[{"dims": [2]}])), r"sparse_initializers\[0\].values: it is absent"),
    ],
)
def test_a_part_that_is_wrong_is_named(content: bytes, message: str) -> None:
    """By file, table and field."""
    with pytest.raises(ort.Fail, match=f"^model: .*{message}"):
        _read(content)


def test_a_tensor_whose_data_does_not_fit_is_refused() -> None:
    """With its name."""
    tensors = [{"name": "a", "dims": [2], "data_type": 1, "raw_data": b"123"}]
    with pytest.raises(ort.InvalidGraph, match="'a' .* has 3 bytes of data; its type and shape need 8"):
        _read(_file(_graph(initializers=tensors)))
