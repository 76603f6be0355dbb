"""Models that are prepared for quantization."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.quantizing import operators, saved

from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import load
from sardonyx.quantization.shape_inference import prepared, quant_pre_process

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
