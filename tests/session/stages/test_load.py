"""The first stage: a checked model."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.models import model

import sardonyx as ort
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument, InvalidGraph
from sardonyx.ir import OptionalType, SequenceType, TensorType
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.load import Loaded, fix_dimensions, load
from sardonyx.session.stages.source import Source
from sardonyx.session.variant import Variant

TEXT = """graph(x: float[n, 2], k: float[2]) -> (y: float[rows, 2], z: float[2]) {
    k: float[2] = [1, 2]
    w: float[2] = [3, 4]
    y = Add(x, k)
    z = Neg(w)
}"""


def _loaded(text: str, options: SessionOptions | None = None, variant: Variant | None = None) -> Loaded:
    return load(Source(model(text)), read_settings(options or SessionOptions()).load, variant)


def test_outputs_and_defaults_are_told_as_the_file_has_them() -> None:
    """An initializer that is an input too becomes one with a default."""
    found = _loaded(TEXT)
    assert [(item.name, item.shape) for item in found.declared] == [("y", ["rows", 2]), ("z", [2])]
    assert {name: array.tolist() for name, array in found.defaults.items()} == {"k": [1, 2]}
    graph = found.model.view().graph
    assert [value.name for value in graph.inputs] == ["x", "k"]
    assert list(graph.initializers) == ["w"]


def test_initializers_are_replaced() -> None:
    """By arrays of their type and shape."""
    options = SessionOptions()
    options.add_initializer("w", np.float32([5, 6]))
    value = _loaded(TEXT, options).model.view().graph.initializers["w"]
    assert value.constant is not None
    assert value.constant.numpy().tolist() == [5, 6]
    options.add_initializer("nothing", np.float32([5, 6]))
    with pytest.raises(InvalidArgument, match="model .*: add_initializer names 'nothing', which is no initializer"):
        _loaded(TEXT, options)


def test_dimensions_are_fixed_unless_that_is_disabled() -> None:
    """By the pass of that name."""
    options = SessionOptions()
    options.add_free_dimension_override_by_name("n", 7)
    settings = read_settings(options).load
    for disabled, size in ((frozenset[str](), "7"), (frozenset(["override_dimensions"]), "n")):
        held = model(TEXT)
        fix_dimensions(held, settings, disabled)
        assert str((held.graph.inputs[0].shape or ())[0]) == size


def test_a_variant_is_applied_to_what_was_read() -> None:
    """Here one of the outputs only."""
    assert [item.name for item in _loaded(TEXT, variant=Variant(outputs=["z"])).declared] == ["z"]


def test_an_invalid_node_is_an_error_that_names_the_model() -> None:
    """Its attribute is unknown to the operator."""
    with pytest.raises(InvalidGraph, match="^model "):
        _loaded("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x) {speed = 1}\n}")


def _without_its_file() -> bytes:
    """Return a model whose weight lies in a file that is not there."""
    value = numpy_helper.from_array(np.float32([5, 6]), "w")
    value.ClearField("raw_data")
    value.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "gone.bin"), ("offset", "4"), ("length", "8")):
        value.external_data.add(key=key, value=text)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "external",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [value],
    )
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString())


def test_external_initializers_from_memory_need_no_file() -> None:
    """Neither by their names, nor by the content of the file."""
    named, whole = ort.SessionOptions(), ort.SessionOptions()
    named.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(np.float32([5, 6]))])
    whole.add_external_initializers_from_files_in_memory(["gone.bin"], [b"...." + np.float32([5, 6]).tobytes()], [12])
    for options in (named, whole):
        session = ort.InferenceSession(_without_its_file(), options)
        assert session.run(None, {"x": np.float32([1, 1])})[0].tolist() == [6, 7]


def test_memory_that_does_not_fit_is_refused() -> None:
    """A content that ends too early, and an initializer of another type."""
    short, other = ort.SessionOptions(), ort.SessionOptions()
    short.add_external_initializers_from_files_in_memory(["gone.bin"], [bytes(8)], [8])
    other.add_external_initializers(["w"], [np.int32([5, 6])])
    for options, message in ((short, "ends at byte 12 of 'gone.bin'"), (other, "add_initializer gives .*int32")):
        with pytest.raises(ort.SardonyxError, match=message):
            ort.InferenceSession(_without_its_file(), options)


def test_lists_that_are_inputs_take_elements_of_any_shape() -> None:
    """A shape that is declared for the elements is not asked of them, as in onnxruntime."""
    text = "graph(s: seq(float), o: optional(seq(float))) -> (y) { y = SequenceLength(s) }"
    held = model(text)
    sequence, optional = held.graph.inputs
    sequence.type = SequenceType(TensorType(DataType.FLOAT, (2, 3)))
    optional.type = OptionalType(sequence.type)
    found = load(Source(held), read_settings(SessionOptions()).load).model.view()
    open_list = SequenceType(TensorType(DataType.FLOAT))
    assert [value.type for value in found.graph.inputs] == [open_list, OptionalType(open_list)]


def test_copies_of_another_device_compute_nothing() -> None:
    """They are in models that ONNX Runtime saved for a GPU; in another domain their names mean nothing."""
    nodes = [helper.make_node("MemcpyFromHost", ["x"], ["h"]), helper.make_node("MemcpyToHost", ["h"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    proto = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), ir_version=8)
    x = np.ones(2, np.float32)
    assert ort.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0].tolist() == [1, 1]
    nodes[0].domain = "com.microsoft"
    proto = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), ir_version=8)
    with pytest.raises(InvalidGraph, match="MemcpyFromHost is unknown"):
        ort.InferenceSession(proto.SerializeToString())
