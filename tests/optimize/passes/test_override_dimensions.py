"""Dimensions that a user fixes."""

import onnx
import pytest
from onnx import TensorProto, helper
from support.optimizing import model_of

from sardonyx import InferenceSession, SessionOptions
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import load, to_bytes
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.override_dimensions import OverrideDimensions

TEXT = "graph(x: float[batch, 3, h], z: float[batch]) -> (y: float[batch, 3, 2*h]) { y = Concat(x, x) {axis = 2} }"


def shapes(model):
    values = (*model.graph.inputs, *model.graph.outputs)
    return [None if value.shape is None else tuple(str(dim) for dim in value.shape) for value in values]


def denoted():
    """x: float[?, 3, h], z: float[2] with denotations DATA_BATCH, DATA_CHANNEL, none; and DATA_BATCH."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3, "h"])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])
    x.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    x.type.tensor_type.shape.dim[1].denotation = "DATA_CHANNEL"
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x, z], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_by_name():
    """The symbol becomes the size wherever it stands, also in a computed dimension."""
    model = model_of(TEXT)
    assert OverrideDimensions({"batch": 2, "h": 5}, {}).run(model, Context())
    assert shapes(model) == [("2", "3", "5"), ("2",), ("2", "3", "10")]


def test_names_that_no_input_has_are_passed_over():
    """One set of overrides may serve many models."""
    assert not OverrideDimensions({"sequence": 2}, {"DATA_BATCH": 3}).run(model_of(TEXT), Context())


def test_by_denotation():
    """A dimension that is unknown, by what it means."""
    model = load(denoted())
    assert OverrideDimensions({}, {"DATA_BATCH": 4}).run(model, Context())
    assert shapes(model)[0] == ("4", "3", "h")


def test_a_denotation_has_letters():
    """An empty one is not that of the dimensions that have none."""
    model = load(denoted())
    assert not OverrideDimensions({}, {"": 4}).run(model, Context())


def test_a_size_that_contradicts_the_model():
    """The message says which dimension is what."""
    with pytest.raises(InvalidArgument, match="DATA_CHANNEL of input 'x' is 3, but is to be fixed to 5"):
        OverrideDimensions({}, {"DATA_CHANNEL": 5}).run(load(denoted()), Context())


def test_denotations_survive_saving():
    """They are written back where they were read."""
    proto = onnx.ModelProto.FromString(to_bytes(load(denoted())))
    assert [dim.denotation for dim in proto.graph.input[0].type.tensor_type.shape.dim] == ["DATA_BATCH", "DATA_CHANNEL", ""]
    assert not proto.graph.input[0].metadata_props


def test_of_a_session():
    """Both options reach the inputs that the session shows."""
    options = SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 4)
    options.add_free_dimension_override_by_name("h", 7)
    session = InferenceSession(denoted().SerializeToString(), options)
    assert session.get_inputs()[0].shape == [4, 3, 7]
