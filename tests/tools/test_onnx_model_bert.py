"""The classes that onnxruntime's optimizer has for types of models."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from sardonyx.errors import InvalidArgument
from sardonyx.tools.fusion_options import FusionOptions
from sardonyx.tools.onnx_model_bert import BertOnnxModel, Gpt2OnnxModel

GELU = """<ir_version: 10, opset_import: ["" : 21]>
main (float[2, 4] x) => (float[2, 4] y) {
    c = Constant<value = float {1.4142135}>()
    h = Constant<value = float {0.5}>()
    one = Constant<value = float {1}>()
    d = Div(x, c)
    e = Erf(d)
    p = Add(e, one)
    m = Mul(x, p)
    y = Mul(m, h)
}"""


def embedding() -> onnx.ModelProto:
    """Return a model whose attention reads a mask through a Cast, and another as it is."""
    nodes = [
        helper.make_node("Cast", ["mask"], ["m"], to=TensorProto.INT32),
        helper.make_node("Attention", ["x", "w", "b", "m"], ["y"], domain="com.microsoft", num_heads=2),
        helper.make_node("Attention", ["y", "w", "b", "lengths"], ["z"], domain="com.microsoft", num_heads=2),
    ]
    info = helper.make_tensor_value_info
    inputs = [info("x", 1, [2, 3, 4]), info("w", 1, [4, 12]), info("b", 1, [12]), info("mask", 7, [2, 3]), info("lengths", 6, [2])]
    graph = helper.make_graph(nodes, "g", inputs, [info("z", 1, [2, 3, 4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])


def test_fusions_are_made_in_its_place() -> None:
    """The model is another afterwards; options leave some out."""
    made = BertOnnxModel(onnx.parser.parse_model(GELU))
    made.optimize(add_dynamic_axes=True)
    assert [node.op_type for node in made.nodes()] == ["Gelu"]
    assert made.model.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch_size"
    options = FusionOptions("gpt2")
    options.enable_gelu = False
    other = Gpt2OnnxModel(onnx.parser.parse_model(GELU))
    other.optimize(options)
    assert "Erf" in other.get_operator_statistics()


def test_the_inputs_that_fused_nodes_read() -> None:
    """Those behind a Cast, or those without one."""
    made = BertOnnxModel(embedding())
    assert made.get_graph_inputs_from_fused_nodes(casted=True) == ["mask"]
    assert made.get_graph_inputs_from_fused_nodes(casted=False) == ["lengths"]
    made.use_dynamic_axes("b", "s")
    assert [dim.dim_param for dim in made.model.graph.input[3].type.tensor_type.shape.dim] == ["b", "s"]


def test_inputs_become_int32() -> None:
    """The Cast to it goes."""
    made = BertOnnxModel(embedding())
    made.change_graph_inputs_to_int32()
    assert made.model.graph.input[3].type.tensor_type.elem_type == TensorProto.INT32
    assert made.get_operator_statistics() == {"Attention": 2}


@pytest.mark.parametrize("sizes", [(2, 0), (0, 4), (3, 4)])
def test_sizes_that_contradict_one_another(sizes: tuple[int, int]) -> None:
    """The size is a multiple of the number of heads."""
    with pytest.raises(InvalidArgument, match="hidden_size"):
        BertOnnxModel(embedding(), *sizes)
    assert BertOnnxModel(embedding(), 2, 4).hidden_size == 4
