"""Models that are quantized, and the same in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.models import model
from support.quantizing import CNN, PRODUCTS, Reader, images, numbers, operators, relative_error, saved

import sardonyx as ort
from sardonyx.errors import InvalidArgument, SardonyxError
from sardonyx.formats.onnx import to_proto
from sardonyx.quantization.quant_utils import CalibrationMethod, QuantFormat, QuantType
from sardonyx.quantization.quantize import DynamicQuantConfig, StaticQuantConfig, quantize, quantize_dynamic, quantize_static

_FLOAT8 = {
    "activation_type": QuantType.QFLOAT8E4M3FN,
    "weight_type": QuantType.QFLOAT8E4M3FN,
    "calibrate_method": CalibrationMethod.Distribution,
}


def _agrees_with_onnxruntime(path: Path, feed: dict[str, Any], atol: float) -> None:
    peer = pytest.importorskip("onnxruntime")
    wanted = peer.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feed)[0]
    np.testing.assert_allclose(ort.InferenceSession(path).run(None, feed)[0], wanted, rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, 0.05),
        ({"per_channel": True, "activation_type": QuantType.QUInt8}, 0.05),
        ({"activation_type": QuantType.QUInt16, "per_channel": True}, 0.02),
        ({"weight_type": QuantType.QInt4, "per_channel": True}, 0.3),
        ({"calibrate_method": CalibrationMethod.Entropy}, 0.3),
        ({"calibrate_method": CalibrationMethod.Percentile}, 0.05),
        ({"reduce_range": True}, 0.1),
        ({"extra_options": {"ActivationSymmetric": True, "AddQDQPairToWeight": True}}, 0.05),
        ({"quant_format": QuantFormat.QOperator, "activation_type": QuantType.QUInt8}, 0.05),
        (_FLOAT8, 0.15),
        ({**_FLOAT8, "per_channel": True, "extra_options": {"AddQDQPairToWeight": True}}, 0.15),
    ],
)
def test_a_static_model_is_near_that_in_floats(options: dict[str, Any], limit: float, tmp_path: Path) -> None:
    """By the bits that it has."""
    path = tmp_path / "int8.onnx"
    quantize_static(saved(CNN, tmp_path), path, images(), **options)
    onnx.checker.check_model(str(path))
    assert relative_error(tmp_path / "float.onnx", path, images) < limit


def test_a_reader_that_does_not_know_its_length_gives_feeds(tmp_path: Path) -> None:
    """It is read until it gives none."""
    quantize_static(saved(CNN, tmp_path), tmp_path / "int8.onnx", Reader(images()))
    assert relative_error(tmp_path / "float.onnx", tmp_path / "int8.onnx", images) < 0.05


def test_float8_runs_in_onnxruntime_too(tmp_path: Path) -> None:
    """With its optimizer off, which drops a Relu before such a quantization; biases stay in floats."""
    peer, path = pytest.importorskip("onnxruntime"), tmp_path / "float8.onnx"
    quantize_static(saved(CNN, tmp_path), path, images(), **_FLOAT8)
    options, feed = peer.SessionOptions(), next(images())
    options.graph_optimization_level = peer.GraphOptimizationLevel.ORT_DISABLE_ALL
    wanted = peer.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feed)[0]
    np.testing.assert_allclose(ort.InferenceSession(path).run(None, feed)[0], wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("form", list(QuantFormat))
def test_both_forms_run_in_onnxruntime(form: QuantFormat, tmp_path: Path) -> None:
    """To a step of the output."""
    path = tmp_path / "int8.onnx"
    quantize_static(saved(CNN, tmp_path), path, images(), form, activation_type=QuantType.QUInt8)
    _agrees_with_onnxruntime(path, next(images()), atol=0.2)


def test_quantized_operators_are_written_where_asked_for(tmp_path: Path) -> None:
    """Nothing between them is in floats."""
    path = tmp_path / "int8.onnx"
    quantize_static(saved(CNN, tmp_path), path, images(), QuantFormat.QOperator)
    found = operators(path)
    assert (found["QLinearConv"], found["QLinearAdd"], found["QGemm"]) == (2, 1, 1)
    assert not found.keys() & {"Conv", "Gemm", "Add", "Relu"}


def test_a_single_tensor_can_be_told_apart(tmp_path: Path) -> None:
    """By its name."""
    path = tmp_path / "int8.onnx"
    overrides = {"x": [{"quant_type": QuantType.QUInt16}], "y": [{"scale": 0.25, "zero_point": 0}]}
    quantize_static(
        saved(CNN, tmp_path), path, images(), weight_type=QuantType.QInt8, extra_options={"TensorQuantOverrides": overrides}
    )
    constants = {item.name: onnx.numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer}
    assert constants["x_zero_point"].dtype == np.uint16
    assert constants["y_scale"] == 0.25


def test_nodes_are_excluded_by_name(tmp_path: Path) -> None:
    """Their inputs are dequantized all the same."""
    path = tmp_path / "int8.onnx"
    quantize_static(saved(CNN, tmp_path), path, images(), QuantFormat.QOperator, nodes_to_exclude=["second"])
    assert (operators(path)["QLinearConv"], operators(path)["Conv"]) == (1, 1)


@pytest.mark.parametrize(("text", "feeds"), [(CNN, images), (PRODUCTS, numbers)])
@pytest.mark.parametrize("options", [{}, {"per_channel": True}, {"weight_type": QuantType.QUInt8}, {"reduce_range": True}])
def test_a_dynamic_model_is_near_that_in_floats(
    options: dict[str, Any], text: str, feeds: Callable[[], Any], tmp_path: Path
) -> None:
    """And, with weights of 7 bits, equal in onnxruntime: without VNNI its products by 8 bits saturate."""
    path = tmp_path / "int8.onnx"
    quantize_dynamic(saved(text, tmp_path), path, **options)
    onnx.checker.check_model(str(path))
    assert relative_error(tmp_path / "float.onnx", path, feeds) < 0.05
    quantize_dynamic(tmp_path / "float.onnx", path, **{**options, "reduce_range": True})
    _agrees_with_onnxruntime(path, next(feeds()), atol=2e-2)


def test_a_configuration_says_the_same(tmp_path: Path) -> None:
    """Of either kind."""
    source = saved(CNN, tmp_path)
    quantize(source, tmp_path / "static.onnx", StaticQuantConfig(images(), per_channel=True))
    quantize(source, tmp_path / "dynamic.onnx", DynamicQuantConfig(op_types_to_quantize=["Conv"]))
    assert "QuantizeLinear" in operators(tmp_path / "static.onnx")
    assert (operators(tmp_path / "dynamic.onnx")["ConvInteger"], operators(tmp_path / "dynamic.onnx")["Gemm"]) == (2, 1)
    with pytest.raises(InvalidArgument, match="StaticQuantConfig"):
        quantize(source, tmp_path / "x.onnx", {})  # type: ignore[arg-type]  # as a caller may


def test_weights_go_beside_the_model_where_asked_for(tmp_path: Path) -> None:
    """And an old operator set is raised."""
    quantize_static(saved(CNN, tmp_path, opset=11), tmp_path / "int8.onnx", images(), use_external_data_format=True)
    assert list(tmp_path.glob("int8.onnx.*"))
    assert onnx.load(tmp_path / "int8.onnx").opset_import[0].version == 13
    assert relative_error(tmp_path / "float.onnx", tmp_path / "int8.onnx", images) < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calibration_data_reader": None}, "calibration_data_reader"),
        ({"calibration_data_reader": []}, "gave no feed"),
        ({"activation_type": QuantType.QInt4}, "8 or 16 bits"),
        ({"activation_type": QuantType.QFLOAT8E4M3FN}, "Distribution"),
        ({"weight_type": QuantType.QFLOAT8E4M3FN}, "alike"),
        ({**_FLOAT8, "quant_format": QuantFormat.QOperator}, "QuantFormat.QDQ"),
        ({**_FLOAT8, "reduce_range": True}, "reduce_range"),
        ({"op_types_to_quantize": ["Covn"]}, "did you mean 'Conv'"),
        ({"nodes_to_exclude": ["frist"]}, "did you mean 'first'"),
        ({"extra_options": {"WeightSymetric": True}}, "did you mean 'WeightSymmetric'"),
        ({"calibrate_method": CalibrationMethod.Distribution}, "QFLOAT8E4M3FN"),
        ({"calibration_data_reader": [{"x": np.full((2, 3, 8, 8), np.nan, np.float32)}]}, "not finite"),
        ({"calibration_data_reader": [{"z": np.zeros(3)}]}, "z"),
    ],
)
def test_what_cannot_be_done_is_an_error(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    """That says what would do, and no file is written."""
    given = {"calibration_data_reader": images(), **options}
    with pytest.raises(SardonyxError, match=message):
        quantize_static(saved(CNN, tmp_path), tmp_path / "int8.onnx", **given)
    assert not (tmp_path / "int8.onnx").exists()


def test_dynamic_weights_have_8_bits(tmp_path: Path) -> None:
    """Others are refused."""
    with pytest.raises(InvalidArgument, match="QInt8 or QUInt8"):
        quantize_dynamic(saved(CNN, tmp_path), tmp_path / "int8.onnx", weight_type=QuantType.QInt4)


def test_ranges_are_kept_in_a_file(tmp_path: Path) -> None:
    """A second call reads them, needs no data, and writes the same; a file of another model is an error that names a tensor."""
    graph = model("graph(x: float[n, 2]) -> (y: float[n, 2]) {\nw: float[2, 2] = [[1, 2], [3, 4]]\ny = MatMul(x, w)\n}")
    given = to_proto(graph)
    cache, first, second = tmp_path / "r.json", str(tmp_path / "1.onnx"), str(tmp_path / "2.onnx")
    quantize_static(given, first, [{"x": np.float32([[1, -2]])}], calibration_cache_path=cache)
    quantize_static(given, second, calibration_cache_path=cache)
    assert Path(first).read_bytes() == Path(second).read_bytes()
    other = to_proto(model("graph(z: float[n, 2]) -> (y: float[n, 2]) {\nw: float[2, 2] = [[1, 2], [3, 4]]\ny = MatMul(z, w)\n}"))
    with pytest.raises(InvalidArgument, match="r.json.* no range of the tensor 'z'"):
        quantize_static(other, second, calibration_cache_path=cache)
    with pytest.raises(InvalidArgument, match="or an existing calibration_cache_path"):
        quantize_static(given, second, calibration_cache_path=tmp_path / "none.json")
