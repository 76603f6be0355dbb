"""Models that are prepared for quantization."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.quantizing import operators, saved

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import load
from sardonyx.quantization.kinds import QuantType
from sardonyx.quantization.shape_inference import optimize_model, prepared, quant_pre_process, update_opset_version

NORMALIZED = """graph(x: float[1, 2, 4, 4]) -> (y: float[1, 2, 4, 4]) {
    w: float[2, 2, 1, 1] = ... 1
    c = Conv(x, w)
    s: float[2] = [1, 2]
    b: float[2] = [1, 2]
    m: float[2] = [1, 2]
    v: float[2] = [1, 2]
    n = BatchNormalization(c, s, b, m, v)
    y = Relu(n)
}"""


@pytest.mark.parametrize(("skips", "expected"), [(False, {"Conv", "Relu"}), (True, {"Conv", "BatchNormalization", "Relu"})])
def test_normalizations_go_into_convolutions(skips: bool, expected: set[str], tmp_path: Path) -> None:
    """Unless the optimization is skipped."""
    quant_pre_process(saved(NORMALIZED, tmp_path), tmp_path / "out.onnx", skip_optimization=skips)
    assert set(operators(tmp_path / "out.onnx")) == expected


def test_types_are_inferred(tmp_path: Path) -> None:
    """Of inner values."""
    made = prepared(saved(NORMALIZED, tmp_path), optimizes=False)
    assert [value.shape for node in made.graph for value in node.outputs] == [(1, 2, 4, 4)] * 3


def test_weights_can_go_beside_the_model(tmp_path: Path) -> None:
    """In a file of a name."""
    path = tmp_path / "out.onnx"
    quant_pre_process(saved(NORMALIZED, tmp_path), path, save_as_external_data=True, external_data_location="w.bin")
    assert (tmp_path / "w.bin").is_file()
    assert len(load(path).graph) == 2


def test_both_paths_are_needed(tmp_path: Path) -> None:
    """The model and the file to write."""
    with pytest.raises(InvalidArgument, match="output_model_path"):
        quant_pre_process(tmp_path / "x.onnx")


@pytest.mark.parametrize(
    ("kinds", "block", "opset"),
    [
        ((QuantType.QInt8, QuantType.QUInt8), 0, 13),
        ((QuantType.QFLOAT8E4M3FN, None), 0, 19),
        ((QuantType.QInt8, QuantType.QUInt16), 0, 21),
        ((int(DataType.INT4), None), 0, 21),
        ((QuantType.QInt8, None), 32, 21),
    ],
)
def test_opsets_have_the_types_of_codes(kinds: tuple[QuantType | int, QuantType | None], block: int, opset: int) -> None:
    """A model that has them already is the same object."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    raised = update_opset_version(model, *kinds, block_size=block)
    assert raised.opset_import[0].version == opset
    assert (raised is model) == (opset == 13)


def test_overrides_count_for_the_opset() -> None:
    """Also where they convert."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    said = {"x": [{"convert": {"quant_type": QuantType.QUInt16}}]}
    assert update_opset_version(model, QuantType.QInt8, tensor_quant_overrides=said).opset_import[0].version == 21


def test_a_model_is_optimized_in_files(tmp_path: Path) -> None:
    """Constants are folded."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    nodes = [helper.make_node("Neg", ["w"], ["v"]), helper.make_node("Add", ["x", "v"], ["y"])]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], [numpy_helper.from_array(np.ones(2, np.float32), "w")])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "a.onnx")
    optimize_model(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "b.onnx").graph.node] in (["Add"], ["Sub"])
