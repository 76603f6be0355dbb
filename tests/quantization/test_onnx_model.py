"""The class that onnxruntime's quantizers hold their model in."""

from __future__ import annotations

import onnx

from sardonyx.quantization.onnx_model import ONNXModel

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
main (float[2] x) => (float[2] y) <float[2] w_3 = {1, 2}> {
    [add_7] a = Add(x, w_3)
    [add_x] y = Add(a, w_3)
}"""


def held() -> ONNXModel:
    """Return a model of two additions."""
    return ONNXModel(onnx.parser.parse_model(TEXT))


def test_questions() -> None:
    """About names, inputs, outputs and constants."""
    model = held()
    assert (model.ir_version(), model.opset_import()[0].version) == (10, 21)
    assert (model.get_initializer_name_set(), model.get_non_initializer_inputs()) == ({"w_3"}, {"x"})
    assert (model.is_graph_input("x"), model.is_graph_output("x")) == (True, False)
    assert (model.get_largest_node_name_suffix("add_"), model.get_largest_node_name_suffix("mul_")) == (7, -1)
    assert model.get_largest_initializer_name_suffix("w_") == 3
    assert model.find_nodes_by_initializer(model.graph(), model.initializer()[0]) == model.nodes()
    assert model.find_node_by_name("add_x", [], model.graph()) == model.nodes()[1]
    assert model.find_node_by_name("none", [], model.graph()) is None
    found = model.get_tensor_type("x")
    assert found is not None
    assert found.elem_type == 1
    assert model.get_tensor_type("a") is None


def test_changes() -> None:
    """Of versions, of some nodes' names of values, of constants."""
    model = held()
    model.set_opset_import("", 22)
    model.set_opset_import("com.microsoft", 1)
    assert [(item.domain, item.version) for item in model.opset_import()] == [("", 22), ("com.microsoft", 1)]
    model.replace_input_of_nodes("w_3", "x", {"add_x"})
    model.replace_output_of_nodes("a", "b", {"add_7"})
    assert [list(node.input) for node in model.nodes()] == [["x", "w_3"], ["a", "x"]]
    assert model.nodes()[0].output[0] == "b"
    model.initializer_extend([onnx.helper.make_tensor("q", 1, [1], [0.0])])
    model.clean_initializers()
    assert model.get_initializer_name_set() == {"w_3"}
    model.remove_initializers(model.initializer())
    assert not model.initializer()
