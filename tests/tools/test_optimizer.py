"""Fusions of transformers for a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import sardonyx as ort
from sardonyx.tools.fusion_options import FusionOptions
from sardonyx.tools.optimizer import get_fusion_statistics, main, optimize_by_onnxruntime, optimize_model

MODEL = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 14]>
g (float[2, 4] x) => (float[2, 4] y)
<float[4] bias = {1, 2, 3, 4}, float root = {1.4142135}, float one = {1}, float half = {0.5}> {
    a = Add(x, bias)
    b = Div(a, root)
    c = Erf(b)
    d = Add(c, one)
    e = Mul(a, d)
    y = Mul(e, half)
}""")
X = {"x": np.linspace(-3, 3, 8, dtype=np.float32).reshape(2, 4)}


def _counts(proto: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in proto.graph.node:
        found[node.op_type] = found.get(node.op_type, 0) + 1
    return found


def test_patterns_are_fused_and_compute_the_same() -> None:
    """To operators of onnxruntime; the model that was given stays as it is."""
    before = MODEL.SerializeToString()
    made = optimize_model(MODEL, "bert", num_heads=12, hidden_size=768)
    assert made.get_fused_operator_statistics()["BiasGelu"] == 1
    expected = ort.InferenceSession(before).run(None, X)[0]
    np.testing.assert_allclose(ort.InferenceSession(made.model).run(None, X)[0], expected, rtol=1e-5, atol=1e-6)
    assert MODEL.SerializeToString() == before


def test_flags_leave_fusions_out() -> None:
    """Gelu without its bias, and no Gelu at all."""
    options = FusionOptions("bert")
    options.enable_bias_gelu = False
    assert _counts(optimize_model(MODEL, optimization_options=options).model) == {"Add": 1, "Gelu": 1}
    options.enable_gelu = False
    assert "Erf" in _counts(optimize_model(MODEL, optimization_options=options).model)
    approximate = FusionOptions("bert")
    approximate.enable_gelu_approximation = True
    assert _counts(optimize_model(MODEL, optimization_options=approximate).model) == {"FastGelu": 1}


def test_levels_are_those_of_a_session() -> None:
    """With `only_onnxruntime`; another number is refused."""
    assert "Erf" in _counts(optimize_model(MODEL, opt_level=1, only_onnxruntime=True).model)
    assert "Erf" not in _counts(optimize_model(MODEL, opt_level=99, only_onnxruntime=True).model)
    assert "Erf" not in _counts(optimize_model(MODEL, opt_level=0).model)
    with pytest.raises(ort.InvalidArgument, match="opt_level"):
        optimize_model(MODEL, opt_level=3)


def test_files_are_written_where_onnxruntime_writes_them(tmp_path: Path) -> None:
    """Beside the model, or where the caller says; level 0 writes nothing."""
    path = tmp_path / "m.onnx"
    onnx.save(MODEL, path)
    assert optimize_by_onnxruntime(str(path)) == str(tmp_path / "m_o99_cpu.onnx")
    assert get_fusion_statistics(str(tmp_path / "m_o99_cpu.onnx"))["BiasGelu"] == 1
    target = str(tmp_path / "own.onnx")
    assert optimize_by_onnxruntime(MODEL, optimized_model_path=target, disabled_optimizers=["BiasGeluFusion"]) == target
    assert get_fusion_statistics(target)["Gelu"] == 1
    assert optimize_by_onnxruntime(str(path), opt_level=0) == str(path)
    with pytest.raises(ort.InvalidArgument, match="optimized_model_path"):
        optimize_by_onnxruntime(MODEL)


def test_the_command_optimizes_and_converts(tmp_path: Path) -> None:
    """With the arguments of onnxruntime's."""
    onnx.save(MODEL, tmp_path / "m.onnx")
    main(["--input", str(tmp_path / "m.onnx"), "--output", str(tmp_path / "o.onnx"), "--float16", "--model_type", "bert"])
    assert _counts(onnx.load(tmp_path / "o.onnx")) == {"Cast": 2, "BiasGelu": 1}
