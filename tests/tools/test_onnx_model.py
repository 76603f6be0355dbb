"""What the optimizer returns."""

from __future__ import annotations

from pathlib import Path

import onnx
from support.models import model
from support.session_models import BRANCH

from sardonyx.tools.models import to_proto
from sardonyx.tools.onnx_model import OnnxModel

MODEL = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (float[2, 4] x) => (float[2, 4] y) <float[4] w = {1, 1, 1, 1}> {
    a = com.microsoft.BiasGelu(x, w)
    b = LayerNormalization(a, w)
    y = LayerNormalization(b, w)
}""")


def test_operators_are_counted() -> None:
    """All of them, with their domain where asked for, and those that fusions make."""
    found = OnnxModel(MODEL)
    assert found.get_operator_statistics(include_domain=True) == {"com.microsoft:BiasGelu": 1, "LayerNormalization": 2}
    counts = found.get_fused_operator_statistics()
    assert (counts["BiasGelu"], counts["LayerNormalization"], counts["Attention"]) == (1, 2, 0)
    assert not found.is_fully_optimized()
    assert found.is_fully_optimized({"Attention": 1, "BiasGelu": 1, "SkipLayerNormalization": 2})


def test_nodes_and_constants_of_all_graphs_are_found() -> None:
    """Bodies included."""
    found = OnnxModel(to_proto(model(BRANCH)))
    assert sorted(node.op_type for node in found.nodes()) == ["Add", "If", "Mul", "Sub"]
    assert len(found.graphs()) == 3
    assert OnnxModel(MODEL).get_initializer("w") is not None
    assert OnnxModel(MODEL).get_initializer("v") is None
    assert [value.name for value in found.get_graph_inputs_excluding_initializers()] == ["c", "x"]
    assert OnnxModel(MODEL).get_opset_version() == 21


def test_the_model_is_converted_inferred_and_saved(tmp_path: Path) -> None:
    """In this order, as scripts do; weights go beside the file when asked for."""
    found = OnnxModel(MODEL)
    found.convert_float_to_float16(keep_io_types=True)
    found.infer_shapes()
    found.save_model_to_file(tmp_path / "a.onnx", use_external_data_format=True)
    saved = onnx.load(tmp_path / "a.onnx")
    assert next(node.op_type for node in saved.graph.node) == "Cast"
    assert saved.graph.value_info
