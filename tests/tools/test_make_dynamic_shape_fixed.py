"""`python -m sardonyx.tools.make_dynamic_shape_fixed`."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import sardonyx as ort
from sardonyx.tools.make_dynamic_shape_fixed import main


def _saved(folder: Path) -> str:
    text = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), folder / "a.onnx")
    return str(folder / "a.onnx")


@pytest.mark.parametrize("arguments", [["--dim_param", "n", "--dim_value", "3"], ["--input_name", "x", "--input_shape", "3,4"]])
def test_sizes_are_fixed_in_a_file(arguments: list[str], tmp_path: Path) -> None:
    """By symbol or by input; outputs get what follows."""
    main([*arguments, _saved(tmp_path), str(tmp_path / "b.onnx")])
    made = ort.InferenceSession(tmp_path / "b.onnx")
    assert (made.get_inputs()[0].shape, made.get_outputs()[0].shape) == ([3, 4], [3, 4])


@pytest.mark.parametrize(
    "arguments", [[], ["--dim_param", "n"], ["--dim_param", "n", "--dim_value", "3", "--input_name", "x", "--input_shape", "3,4"]]
)
def test_one_of_the_two_is_asked_for(arguments: list[str], tmp_path: Path) -> None:
    """Neither, half of one, and both end with how to call it."""
    with pytest.raises(SystemExit):
        main([*arguments, _saved(tmp_path), str(tmp_path / "b.onnx")])
