"""`python -m sardonyx.tools.optimize_onnx_model`."""

from __future__ import annotations

from pathlib import Path

import onnx

from sardonyx.tools.optimize_onnx_model import main


def test_a_file_is_optimized(tmp_path: Path) -> None:
    """As far as is asked for."""
    text = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[n] x) => (float[n] y) { a = Identity(x)\n y = Relu(a) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "a.onnx")
    for level, count in (("disable", 2), ("basic", 1)):
        main(["--opt_level", level, str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")])
        assert len(onnx.load(tmp_path / "b.onnx").graph.node) == count
