"""Quantizers as objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import sardonyx as ort
from sardonyx.errors import InvalidArgument
from sardonyx.quantization import QuantFormat, QuantizationMode, QuantType, create_calibrator, quantize_dynamic, quantize_static
from sardonyx.quantization.quantizers import ONNXQuantizer, QDQQuantizer

RNG = np.random.default_rng(0)
FEEDS = [{"x": RNG.normal(size=(4, 8)).astype(np.float32)} for _ in range(3)]


@pytest.fixture
def model() -> onnx.ModelProto:
    """A product and a Relu."""
    text = '<ir_version: 10, opset_import: ["" : 21]> main (float[n, 8] x) => (float[n, 5] y) { m = MatMul(x, w) y = Relu(m) }'
    made = onnx.parser.parse_model(text)
    made.graph.initializer.append(onnx.numpy_helper.from_array(RNG.normal(size=(8, 5)).astype(np.float32), "w"))
    return made


def _result(model: onnx.ModelProto | str) -> np.ndarray:  # type: ignore[type-arg]  # of any type
    session = ort.InferenceSession(model if isinstance(model, str) else model.SerializeToString())
    (found,) = session.run(None, FEEDS[0])
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("form", list(QuantFormat))
def test_known_ranges_give_what_calibration_gives(model: onnx.ModelProto, tmp_path: Path, form: QuantFormat) -> None:
    """As `quantize_static`; the model that was given stays as it is."""
    calibrator = create_calibrator(model)
    calibrator.collect_data(FEEDS)
    before = model.SerializeToString()
    types = (QuantType.QInt8, QuantType.QUInt8)
    ranges = calibrator.compute_data()
    quantizer: QDQQuantizer | ONNXQuantizer
    if form is QuantFormat.QDQ:
        quantizer = QDQQuantizer(model, False, False, *types, ranges, None, None, None)
    else:
        mode = QuantizationMode.QLinearOps
        quantizer = ONNXQuantizer(model, False, False, mode, True, *types, ranges, [], [], [])
    made = quantizer.quantize_model()
    quantize_static(model, str(tmp_path / "s.onnx"), FEEDS, form, activation_type=types[1], weight_type=types[0])
    np.testing.assert_array_equal(_result(made), _result(str(tmp_path / "s.onnx")))
    assert model.SerializeToString() == before
    quantizer.model.save_model_to_file(tmp_path / "q.onnx")
    np.testing.assert_array_equal(_result(str(tmp_path / "q.onnx")), _result(made))


def test_activations_of_each_run(model: onnx.ModelProto, tmp_path: Path) -> None:
    """As `quantize_dynamic`."""
    mode = QuantizationMode.IntegerOps
    made = ONNXQuantizer(model, False, False, mode, False, QuantType.QInt8, QuantType.QUInt8, None, [], [], ["MatMul"])
    quantize_dynamic(model, str(tmp_path / "d.onnx"))
    np.testing.assert_array_equal(_result(made.quantize_model()), _result(str(tmp_path / "d.onnx")))


def test_a_tensor_without_a_range(model: onnx.ModelProto) -> None:
    """It is an error that names it."""
    with pytest.raises(InvalidArgument, match="tensors_range has no range of the tensor 'x'"):
        QDQQuantizer(model, False, False, QuantType.QInt8, QuantType.QUInt8, {}, None, None, None).quantize_model()


def test_a_mode_that_contradicts(model: onnx.ModelProto) -> None:
    """Ranges are known with QLinearOps only."""
    with pytest.raises(InvalidArgument, match="contradicts mode"):
        ONNXQuantizer(
            *(model, False, False, QuantizationMode.IntegerOps, True, QuantType.QInt8, QuantType.QUInt8, None, [], [], [])
        )
