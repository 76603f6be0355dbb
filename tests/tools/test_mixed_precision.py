"""Mixed precision by trying."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import sardonyx as ort
from sardonyx.tools.mixed_precision import auto_convert_mixed_precision

MODEL = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x) => (float[4] y) <float thousand = {1000.0}, float hundred_thousand = {100000.0}, float half = {0.5}> {
    a = Mul(x, half)
    b = Mul(a, hundred_thousand)
    c = Div(b, hundred_thousand)
    d = Add(c, half)
    y = Relu(d)
}""")
X = {"x": np.float32([1, 2, 3, 4])}


def test_nodes_that_overflow_stay_in_float32() -> None:
    """Those that do not become float16; the results keep to the tolerance."""
    made = auto_convert_mixed_precision(MODEL, X, rtol=1e-3, keep_io_types=True)
    onnx.checker.check_model(made, full_check=True)
    expected = ort.InferenceSession(MODEL).run(None, X)[0]
    np.testing.assert_allclose(ort.InferenceSession(made).run(None, X)[0], expected, rtol=1e-3)
    types = {value.name: value.type.tensor_type.elem_type for value in made.graph.value_info}
    assert types["a"] == types["d"] == onnx.TensorProto.FLOAT16
    assert types["b"] == onnx.TensorProto.FLOAT


def test_a_function_may_judge() -> None:
    """It gets the outputs of both; a feed of float16 inputs is converted."""
    seen = []

    def accepts(old: list[np.ndarray], new: list[np.ndarray]) -> bool:
        seen.append(new[0].dtype)
        return True

    made = auto_convert_mixed_precision(MODEL, X, accepts)
    assert seen[-1] == np.float16
    assert made.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16


def test_what_cannot_be_is_an_error() -> None:
    """No judge, two judges, and a judge that refuses everything."""
    with pytest.raises(ort.InvalidArgument, match="validate_fn"):
        auto_convert_mixed_precision(MODEL, X)
    with pytest.raises(ort.InvalidArgument, match="validate_fn"):
        auto_convert_mixed_precision(MODEL, X, lambda old, new: True, rtol=1.0)
    with pytest.raises(ort.Fail, match="even with all nodes in float32"):
        auto_convert_mixed_precision(MODEL, X, lambda old, new: False)
