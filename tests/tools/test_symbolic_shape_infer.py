"""Symbolic shape inference of files."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import onnx
import pytest

from sardonyx.tools.symbolic_shape_infer import SymbolicShapeInference, main

_TEXT = """<ir_version: 10, opset_import: ["" : 21, "mine" : 1]>
g (float[n, 4] x) => (y, z) <float[4, 3] w = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, int64[1] all = {-1}> {
    h = MatMul(x, w)
    d = Concat<axis = 0>(h, h)
    y = Reshape(d, all)
    z = mine.Unknown(d)
}"""


def _shapes(proto: Any) -> dict[str, list[object]]:
    values = [*proto.graph.value_info, *proto.graph.output]
    dims = {value.name: value.type.tensor_type.shape.dim for value in values if value.type.tensor_type.HasField("shape")}
    return {name: [dim.dim_param or dim.dim_value for dim in found] for name, found in dims.items()}


def test_values_get_their_shapes_in_symbols() -> None:
    """Numbers, symbols and expressions in them; the model that was given stays as it is."""
    given = onnx.parser.parse_model(_TEXT)
    before = given.SerializeToString()
    assert _shapes(SymbolicShapeInference.infer_shapes(given)) == {"h": ["n", 3], "d": ["2*n", 3], "y": ["6*n"]}
    assert given.SerializeToString() == before


def test_the_rank_of_unknown_operators_is_guessed_when_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """As that of the first input; what is unknown is named when asked for."""
    given = onnx.parser.parse_model(_TEXT)
    assert len(_shapes(SymbolicShapeInference.infer_shapes(given, guess_output_rank=True))["z"]) == 2
    with caplog.at_level(logging.WARNING, "sardonyx.tools"):
        SymbolicShapeInference.infer_shapes(given, verbose=1)
    assert "'z' is not known" in caplog.text


def test_all_else_of_a_model_in_memory_stays() -> None:
    """Weights as they are written, and what is declared of other names; bodies get their shapes too."""
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (bool c, float[n, 4] x) => (y) <float[4, 3] w = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}> {
        h = MatMul(x, w)
        y = If(c) <then_branch = a () => (t) { s = Relu(h)
            t = Neg(s) }, else_branch = b () => (e) { e = Abs(h) }>
    }"""
    given = onnx.parser.parse_model(text)
    given.graph.doc_string = "kept"
    given.graph.value_info.add().name = "elsewhere"
    made = SymbolicShapeInference.infer_shapes(given)
    assert made.graph.initializer[0] == given.graph.initializer[0]
    assert "elsewhere" in [value.name for value in made.graph.value_info]
    assert made.graph.doc_string == "kept"
    assert _shapes(made) == {"h": ["n", 3], "y": ["n", 3]}
    then = made.graph.node[1].attribute[0].g
    assert [value.name for value in then.value_info] == ["s"]


def test_the_command_reads_and_writes_files(tmp_path: Path) -> None:
    """With the arguments of onnxruntime's."""
    onnx.save(onnx.parser.parse_model(_TEXT), tmp_path / "a.onnx")
    main(["--input", str(tmp_path / "a.onnx"), "--output", str(tmp_path / "b.onnx"), "--auto_merge", "--int_max", "100000"])
    assert _shapes(onnx.load(tmp_path / "b.onnx"))["d"] == ["2*n", 3]
    target = ["--input", str(tmp_path / "a.onnx"), "--output", str(tmp_path / "c.onnx")]
    main([*target, "--save_as_external_data", "--external_data_location", "c.bin"])
    assert _shapes(onnx.load(tmp_path / "c.onnx"))["h"] == ["n", 3]
