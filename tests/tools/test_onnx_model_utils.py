"""Small changes of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import sardonyx as ort
from sardonyx.tools import onnx_model_utils as utils

TEXT = """<ir_version: 10, opset_import: ["" : 13]>
g (float[batch, n, 4] x, float[batch, 4] z) => (float[batch, n, 4] y, float[k] s) {
    a = Relu(x)
    y = Neg(a)
    t = Add(z, z)
    s = ReduceMax<keepdims = 0, axes = [1]>(t)
}"""


def _model() -> Any:
    return onnx.parser.parse_model(TEXT)


def _shape(value: Any) -> list[object]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def test_a_symbol_gets_a_size_everywhere() -> None:
    """In inputs and outputs; the others stay."""
    model = _model()
    utils.make_dim_param_fixed(model.graph, "batch", 2)
    assert [_shape(value) for value in (*model.graph.input, model.graph.output[0])] == [[2, "n", 4], [2, 4], [2, "n", 4]]
    assert utils.is_fixed_size_tensor(model.graph.input[1])
    assert not utils.is_fixed_size_tensor(model.graph.input[0])


def test_an_input_gets_a_shape_and_outputs_what_follows() -> None:
    """Its symbols get their sizes in other inputs too."""
    model = _model()
    utils.make_input_shape_fixed(model.graph, "x", [2, 3, 4])
    assert [_shape(value) for value in model.graph.input] == [[2, 3, 4], [2, 4]]
    utils.fix_output_shapes(model)
    assert [_shape(value) for value in model.graph.output] == [[2, 3, 4], [2]]
    onnx.checker.check_model(model, full_check=True)
    assert ort.InferenceSession(model).get_outputs()[0].shape == [2, 3, 4]


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("w", [1], "no input 'w'"),
        ("x", [2, 3], "3 dimensions"),
        ("x", [2, 3, 5], "is 4, and cannot be 5"),
        ("x", [2, 0, 4], "at least 1, got 0"),
    ],
)
def test_shapes_that_an_input_cannot_have_are_refused(name: str, shape: list[int], message: str) -> None:
    """And the graph stays as it was."""
    model = _model()
    before = model.SerializeToString()
    with pytest.raises(ort.InvalidArgument, match=message):
        utils.make_input_shape_fixed(model.graph, name, shape)
    assert model.SerializeToString() == before
    with pytest.raises(ort.InvalidArgument, match="at least 1"):
        utils.make_dim_param_fixed(model.graph, "batch", -1)


def test_a_symbol_cannot_have_two_sizes() -> None:
    """Of one input."""
    model = onnx.parser.parse_model(TEXT.replace("batch, n, 4", "n, n, 4"))
    with pytest.raises(ort.InvalidArgument, match="n is 2, and cannot be 3"):
        utils.make_input_shape_fixed(model.graph, "x", [2, 3, 4])


def test_an_input_without_a_shape_gets_one() -> None:
    """Of any rank."""
    model = _model()
    model.graph.input[1].type.tensor_type.ClearField("shape")
    utils.make_input_shape_fixed(model.graph, "z", [2, 4])
    assert _shape(model.graph.input[1]) == [2, 4]


def test_sizes_below_one_are_left_open() -> None:
    """Also where another dimension gets a size."""
    model = _model()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -1
    utils.remove_invalid_dim_values(model.graph)
    assert _shape(model.graph.input[0]) == ["batch", 0, 4]
    assert not model.graph.input[0].type.tensor_type.shape.dim[1].HasField("dim_value")


def test_graphs_and_nodes_are_walked() -> None:
    """Bodies included."""
    branch = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
    g (bool c, float[2] x) => (y) {
        d = Relu(x)
        y = If(c) <then_branch = a () => (t) { t = Neg(d) }, else_branch = b () => (e) { e = Abs(d) }>
    }""")
    names: list[str] = []
    utils.iterate_graph_per_node_func(branch.graph, lambda node: names.append(node.op_type))
    assert sorted(names) == ["Abs", "If", "Neg", "Relu"]
    graphs: list[str] = []
    utils.iterate_graph_per_graph_func(branch.graph, lambda graph, mark: graphs.append(mark + graph.name), mark="-")
    assert sorted(graphs) == ["-a", "-b", "-g"]
    assert utils.get_producer_consumer_maps(branch.graph) == ({1: {0}}, {0: {1}})


def test_models_are_raised_and_optimized(tmp_path: Path) -> None:
    """From path to path, and from a model that is in memory."""
    path = tmp_path / "m.onnx"
    onnx.save(_model(), path)
    assert utils.get_opsets_imported(utils.update_onnx_opset(path, 18, tmp_path / "n.onnx")) == {"ai.onnx": 18}
    assert utils.get_opsets_imported(onnx.load(tmp_path / "n.onnx")) == {"ai.onnx": 18}
    assert utils.get_opsets_imported(utils.update_onnx_opset(_model(), 15))["ai.onnx"] == 15
    utils.optimize_model(path, tmp_path / "o.onnx", utils.get_optimization_level("all"))
    assert len(onnx.load(tmp_path / "o.onnx").graph.node) == 4
    with pytest.raises(ort.InvalidArgument, match="a level is one of"):
        utils.get_optimization_level("most")
