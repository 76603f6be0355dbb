"""Configurations that follow from a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from support.quantizing import CNN, images, operators, relative_error, saved

from sardonyx.errors import InvalidArgument
from sardonyx.quantization.qdq_config import get_qdq_config
from sardonyx.quantization.quant_utils import CalibrationMethod, QuantFormat, QuantType
from sardonyx.quantization.quantize import quantize


def test_what_it_says_quantizes_the_model(tmp_path: Path) -> None:
    """All operators of the model that can be quantized, between QuantizeLinear and DequantizeLinear."""
    source, path = saved(CNN, tmp_path), tmp_path / "qdq.onnx"
    config = get_qdq_config(source, images(), per_channel=True)
    assert config.quant_format is QuantFormat.QDQ
    assert "Conv" in (config.op_types_to_quantize or ())
    quantize(source, path, config)
    assert {"QuantizeLinear", "DequantizeLinear"} <= set(operators(path))
    assert relative_error(source, path, images) < 0.05


def test_nodes_are_excluded_by_name_or_by_a_function(tmp_path: Path) -> None:
    """The function is asked for each node, and what nothing is left of is no operator to quantize."""
    source = saved(CNN, tmp_path)
    nodes = [node for node in onnx.load(source).graph.node if node.op_type == "Conv"]
    feeds = list(images())
    by_name = get_qdq_config(source, feeds, nodes_to_exclude=[node.name for node in nodes])
    by_function = get_qdq_config(source, feeds, nodes_to_exclude=lambda _, node: node.op_type == "Conv")
    assert by_name == by_function
    assert by_name.nodes_to_exclude == [node.name for node in nodes]
    assert "Conv" not in (by_name.op_types_to_quantize or ())


def test_arguments_become_options_and_options_go_before_them(tmp_path: Path) -> None:
    """Those of calibrators by their names there."""
    config = get_qdq_config(
        saved(CNN, tmp_path),
        images(),
        calibrate_method=CalibrationMethod.Percentile,
        calibrate_args={"percentile": 99.0, "symmetric": True},
        weight_type=QuantType.QUInt8,
        activation_symmetric=True,
        min_real_range=0.001,
        tensor_quant_overrides={"x": [{"quant_type": QuantType.QUInt16}]},
        extra_options={"CalibPercentile": 98.0},
    )
    assert config.extra_options == {
        "QDQKeepRemovableActivations": False,
        "ActivationSymmetric": True,
        "WeightSymmetric": False,
        "MinimumRealRange": 0.001,
        "TensorQuantOverrides": {"x": [{"quant_type": QuantType.QUInt16}]},
        "CalibPercentile": 98.0,
        "CalibTensorRangeSymmetric": True,
    }


def test_a_misspelt_argument_of_calibrators_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    """It would have no effect."""
    with pytest.raises(InvalidArgument, match="did you mean 'percentile'"):
        get_qdq_config(saved(CNN, tmp_path), images(), calibrate_args={"percentil": 99.0})


@pytest.mark.parametrize("arguments", [{}, {"activation_type": "QInt16"}, {"weight_type": "QUInt8"}, {"reduce_range": True}])
def test_it_chooses_as_onnxruntime_does(arguments: dict[str, Any], tmp_path: Path) -> None:
    """Types, options and operators; onnxruntime names operators that it does not quantize too."""
    peer = pytest.importorskip("onnxruntime.quantization")
    source = saved(CNN, tmp_path)

    def of(types: Any) -> dict[str, Any]:
        return {name: types[said] if isinstance(said, str) else said for name, said in arguments.items()}

    ours = get_qdq_config(source, images(), **of(QuantType))
    theirs = peer.get_qdq_config(str(source), None, **of(peer.QuantType))
    assert ours.activation_type.name == theirs.activation_type.name
    assert ours.weight_type.name == theirs.weight_type.name
    assert (ours.per_channel, ours.reduce_range) == (theirs.per_channel, theirs.reduce_range)
    assert set(ours.op_types_to_quantize or ()) <= set(theirs.op_types_to_quantize)
    assert not theirs.extra_options["ActivationSymmetric"]
