"""`python -m sardonyx.tools.update_onnx_opset`."""

from __future__ import annotations

from pathlib import Path

import onnx

from sardonyx.tools.update_onnx_opset import main


def test_a_file_is_raised(tmp_path: Path) -> None:
    """To the version that is asked for."""
    text = '<ir_version: 7, opset_import: ["" : 11]>\ng (float[n] x) => (float[n] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "a.onnx")
    main(["--opset", "17", str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")])
    assert onnx.load(tmp_path / "b.onnx").opset_import[0].version == 17
