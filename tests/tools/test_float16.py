"""float16 as scripts ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import sardonyx as ort
from sardonyx.tools.float16 import (
    DEFAULT_OP_BLOCK_LIST,
    convert_float_to_float16,
    convert_np_to_float16,
    convert_tensor_float_to_float16,
    float_to_float16_max_diff,
)

MODEL = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
g (float[n, 2] x) => (float[n, 2] y) <float[2, 2] w = {1.0, 1e-9, 70000.0, -1e-9}> {
    [product] a = MatMul(x, w)
    [least] b = Min(a, x)
    [end] y = Relu(b)
}""")


def _operators(proto: Any) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def test_numbers_keep_away_from_zero_and_infinity() -> None:
    """Zeros, infinities and NaN stay what they are, with their sign."""
    given = np.float32([0, -0.0, 1e-9, -1e-9, 1, 70000, -70000, np.inf, -np.inf, np.nan])
    result = convert_np_to_float16(given)
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, np.float16([0, -0.0, 6e-8, -6e-8, 1, 65504, -65504, np.inf, -np.inf, np.nan]))
    assert np.signbit(result[1])
    assert convert_np_to_float16(np.float32([5, -5]), max_finite_val=2).tolist() == [2, -2]


def test_default_operators_stay_in_float32_unless_a_list_says_otherwise(tmp_path: Path) -> None:
    """Min is one of the defaults; nodes are named too; paths are taken as models are."""
    assert "Min" in DEFAULT_OP_BLOCK_LIST
    assert sorted(_operators(convert_float_to_float16(MODEL))) == sorted(["MatMul", "Cast", "Cast", "Min", "Cast", "Relu"])
    assert _operators(convert_float_to_float16(MODEL, op_block_list=[])) == ["MatMul", "Min", "Relu"]
    onnx.save(MODEL, tmp_path / "a.onnx")
    blocked = convert_float_to_float16(str(tmp_path / "a.onnx"), op_block_list=[], node_block_list=["end"], keep_io_types=["y"])
    assert _operators(blocked) == ["MatMul", "Min", "Cast", "Relu"]


def test_inputs_and_outputs_stay_when_asked_for() -> None:
    """The converted model runs on what the old one ran on, and the old one is as it was."""
    before = MODEL.SerializeToString()
    made = convert_float_to_float16(MODEL, keep_io_types=True)
    onnx.checker.check_model(made, full_check=True)
    x = np.float32([[1, 0.5]])
    expected = ort.InferenceSession(before).run(None, {"x": x})[0]
    np.testing.assert_allclose(ort.InferenceSession(made).run(None, {"x": x})[0], expected, rtol=1e-3, atol=6e-8)
    assert MODEL.SerializeToString() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_positive_val": 1e-9}, "between"),
        ({"max_finite_val": 1e6}, "between"),
        ({"min_positive_val": float("nan")}, "between"),
        ({"op_block_list": "Relu"}, "op_block_list is a list"),
        ({"node_block_list": "end"}, "node_block_list is a list"),
        ({"keep_io_types": "x"}, "keep_io_types is a list"),
        ({"use_bfloat16_as_blocked_nodes_dtype": True}, "leave out"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    """As InvalidArgument."""
    with pytest.raises(ort.InvalidArgument, match=message):
        convert_float_to_float16(MODEL, **arguments)


def test_tensors_are_converted_alone() -> None:
    """Those of float32, in place; how much they change is a number."""
    tensor = numpy_helper.from_array(np.float32([1, 1.0001, 70000]), "t")
    assert float_to_float16_max_diff(tensor) == 70000 - 65504
    half = convert_tensor_float_to_float16(tensor)
    assert (half.data_type, half.name, list(half.dims)) == (onnx.TensorProto.FLOAT16, "t", [3])
    np.testing.assert_array_equal(numpy_helper.to_array(half), np.float16([1, 1, 65504]))
    whole = numpy_helper.from_array(np.int64([1]), "i")
    assert convert_tensor_float_to_float16(whole).data_type == onnx.TensorProto.INT64
    with pytest.raises(ort.InvalidArgument, match="is not float32"):
        float_to_float16_max_diff(whole)
