"""Weights of few bits in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.quantizing import PRODUCTS, Reader, numbers, operators, relative_error, saved

import sardonyx as ort
from sardonyx.errors import InvalidArgument
from sardonyx.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig,
    GPTQWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
    RTNWeightOnlyQuantConfig,
)
from sardonyx.quantization.quant_utils import QuantFormat


def _quantized(tmp_path: Path, **options: Any) -> Path:
    quantizer = MatMulNBitsQuantizer(str(saved(PRODUCTS, tmp_path)), **options)
    quantizer.process()
    path = tmp_path / "blocks.onnx"
    quantizer.model.save_model_to_file(str(path))
    return path


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"block_size": 16}, 0.2),
        ({"block_size": 16, "is_symmetric": True}, 0.2),
        ({"bits": 8, "block_size": 32}, 0.01),
        ({"bits": 2, "block_size": 16}, 0.8),
        ({"block_size": 16, "quant_format": QuantFormat.QDQ}, 0.2),
        ({"block_size": 16, "quant_format": QuantFormat.QDQ, "is_symmetric": True}, 0.2),
        ({"block_size": 16, "op_types_to_quantize": ("MatMul", "Gather")}, 0.2),
        ({"channel_wised_quantize": True}, 0.2),
        ({"algo_config": HQQWeightOnlyQuantConfig(block_size=16)}, 0.2),
        ({"algo_config": KQuantWeightOnlyQuantConfig(block_size=16)}, 0.2),
        ({"algo_config": KQuantWeightOnlyQuantConfig(block_size=32, bits=8)}, 0.01),
        ({"algo_config": DefaultWeightOnlyQuantConfig(block_size=16, accuracy_level=4)}, 0.2),
    ],
)
def test_results_are_near_those_in_floats(options: dict[str, Any], limit: float, tmp_path: Path) -> None:
    """By the bits that codes have; onnxruntime computes the same, but for rounding activations where it fuses DequantizeLinear."""
    path = _quantized(tmp_path, **options)
    assert relative_error(tmp_path / "float.onnx", path, numbers) < limit
    peer, feed = pytest.importorskip("onnxruntime"), next(numbers())
    wanted = peer.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feed)[0]
    atol = 0.3 if options.get("quant_format") is QuantFormat.QDQ else 2e-2
    np.testing.assert_allclose(ort.InferenceSession(path).run(None, feed)[0], wanted, rtol=2e-2, atol=atol)


def test_products_become_one_operator(tmp_path: Path) -> None:
    """A Gemm keeps its bias."""
    found = operators(_quantized(tmp_path, block_size=16))
    assert (found["MatMulNBits"], found["Add"], found["MatMul"], found["Gemm"]) == (2, 1, 0, 0)


def test_nodes_are_chosen_by_name(tmp_path: Path) -> None:
    """To be left out, or to be the only ones."""
    assert operators(_quantized(tmp_path, nodes_to_exclude=["first"]))["MatMul"] == 1
    assert operators(_quantized(tmp_path, nodes_to_include=["first"]))["Gemm"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 3}, "2, 4 or 8"),
        ({"block_size": 24}, "power of 2"),
        ({"op_types_to_quantize": ("Conv",)}, "'Conv'"),
        ({"accuracy_level": 5}, "0 to 4"),
    ],
)
def test_what_is_not_offered_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    """When the quantizer is made."""
    with pytest.raises(InvalidArgument, match=message):
        _quantized(tmp_path, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"algo_config": HQQWeightOnlyQuantConfig(quant_format=QuantFormat.QDQ)},
        {"algo_config": KQuantWeightOnlyQuantConfig(quant_format=QuantFormat.QDQ)},
        {"bits": 2, "quant_format": QuantFormat.QDQ},
    ],
)
def test_forms_that_no_operator_takes_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    """Zero points in floats, and codes of 2 bits, in DequantizeLinear."""
    with pytest.raises(InvalidArgument, match=r"QOperator|4 or 8 bits"):
        _quantized(tmp_path, **options)


def test_configurations_take_their_arguments_in_the_order_of_onnxruntime() -> None:
    """Sizes of blocks first; bits second of HQQ, and after the axes of the default."""
    default = DefaultWeightOnlyQuantConfig(32, True, 4, QuantFormat.QDQ, ("Gather",), (("Gather", 1),), 8, True)
    assert (default.block_size, default.is_symmetric, default.accuracy_level, default.bits) == (32, True, 4, 8)
    assert (default.quant_format, default.op_types_to_quantize, default.channel_wised_quantize) == (
        QuantFormat.QDQ,
        ("Gather",),
        True,
    )
    hqq = HQQWeightOnlyQuantConfig(64, 2, 1, QuantFormat.QOperator, ("MatMul",), (("MatMul", 0),))
    assert (hqq.block_size, hqq.bits, hqq.axis, hqq.op_types_to_quantize) == (64, 2, 1, ("MatMul",))
    assert (hqq.is_symmetric, hqq.accuracy_level, hqq.quant_axes) == (False, None, (("MatMul", 0),))


def _blocks_of(tmp_path: Path, **options: Any) -> dict[str, dict[str, Any]]:
    proto = onnx.load(_quantized(tmp_path, **options))
    return {
        node.name: {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        for node in proto.graph.node
        if node.op_type == "MatMulNBits"
    }


@pytest.mark.parametrize("kind", [RTNWeightOnlyQuantConfig, KQuantWeightOnlyQuantConfig])
def test_blocks_and_bits_are_the_quantizers_unless_a_configuration_says_them(tmp_path: Path, kind: Any) -> None:
    """As with onnxruntime's tool, whose configurations of these algorithms have none."""
    outer = _blocks_of(tmp_path, block_size=32, bits=8, accuracy_level=4, algo_config=kind())
    assert {(item["block_size"], item["bits"], item["accuracy_level"]) for item in outer.values()} == {(32, 8, 4)}
    inner = _blocks_of(tmp_path, block_size=32, bits=8, algo_config=kind(block_size=16, bits=4))
    assert {(item["block_size"], item["bits"]) for item in inner.values()} == {(16, 4)}


def test_rounding_to_nearest_is_that_of_the_default(tmp_path: Path) -> None:
    """Unless a part of the range of a weight is cut off."""
    feed, runs = next(numbers()), []
    for config in (None, RTNWeightOnlyQuantConfig(), RTNWeightOnlyQuantConfig({"w": 0.5})):
        path = _quantized(tmp_path, block_size=16, bits=8, algo_config=config)
        runs.append(ort.InferenceSession(path).run(None, feed)[0])
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.abs(runs[0] - runs[2]).max() > 0.1


def test_a_node_may_have_bits_and_blocks_of_its_own(tmp_path: Path) -> None:
    """As in onnxruntime's `customized_weight_config`; a scheme that does not exist is refused."""
    own = {"first": {"bits": 8, "group_size": 32, "scheme": "sym"}}
    found = _blocks_of(tmp_path, block_size=16, algo_config=RTNWeightOnlyQuantConfig(customized_weight_config=own))
    assert {(name, item["bits"], item["block_size"]) for name, item in found.items()} == {("first_Q8", 8, 32), ("second_Q4", 4, 16)}
    with pytest.raises(InvalidArgument, match='the scheme is "sym" or "asym", got "both"|got \'both\''):
        _quantized(tmp_path, algo_config=RTNWeightOnlyQuantConfig(customized_weight_config={"first": {"scheme": "both"}}))


@pytest.mark.parametrize("options", [{}, {"actorder": True}, {"mse": True}])
def test_calibration_data_makes_errors_smaller(tmp_path: Path, options: dict[str, Any]) -> None:
    """Of the results on that data, beside rounding to nearest; the operators are those of the default. A reader has no length."""
    nearest = relative_error(saved(PRODUCTS, tmp_path), _quantized(tmp_path, bits=2, block_size=16), numbers)
    config = GPTQWeightOnlyQuantConfig(Reader(numbers()), **options)
    path = _quantized(tmp_path, bits=2, block_size=16, algo_config=config)
    assert operators(path)["MatMulNBits"] == 2
    assert relative_error(tmp_path / "float.onnx", path, numbers) < nearest


def test_gptq_without_data_is_refused(tmp_path: Path) -> None:
    """The message names the argument."""
    with pytest.raises(InvalidArgument, match="calibration_data_reader"):
        _quantized(tmp_path, algo_config=GPTQWeightOnlyQuantConfig())
