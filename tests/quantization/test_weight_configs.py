"""The configurations of weights in blocks."""

from __future__ import annotations

import pytest

from sardonyx import errors
from sardonyx.quantization.quant_utils import QuantFormat
from sardonyx.quantization.weight_configs import (
    DefaultWeightOnlyQuantConfig,
    GPTQWeightOnlyQuantConfig,
    NVAWQWeightOnlyQuantConfig,
    RTNWeightOnlyQuantConfig,
    check_config,
)


def test_arguments_come_in_onnxruntimes_order() -> None:
    """Ratios first, or calibration data; the iteration block of GPTQ is no block of weights."""
    rtn = RTNWeightOnlyQuantConfig({"w": 0.5}, QuantFormat.QOperator, ("MatMul",), {"n": {"bits": 8}})
    assert (rtn.ratios, rtn.op_types_to_quantize, rtn.customized_weight_config) == ({"w": 0.5}, ("MatMul",), {"n": {"bits": 8}})
    gptq = GPTQWeightOnlyQuantConfig([], 0.05, 64, True, True, False, QuantFormat.QOperator, ("MatMul",))
    assert (gptq.percdamp, gptq.actorder, gptq.mse, gptq.block_size) == (0.05, True, True, 0)


def test_a_copy_takes_what_is_open_from_the_quantizer() -> None:
    """The configuration itself stays open, for another quantizer."""
    config = RTNWeightOnlyQuantConfig()
    found = config.within(DefaultWeightOnlyQuantConfig(64, True, 4, bits=8))
    assert (found.block_size, found.is_symmetric, found.accuracy_level, found.bits) == (64, True, 4, 8)
    assert (config.block_size, config.bits) == (0, 0)


def test_whole_columns_are_taken_from_the_quantizer() -> None:
    """As blocks are."""
    assert RTNWeightOnlyQuantConfig().within(DefaultWeightOnlyQuantConfig(channel_wised_quantize=True)).channel_wised_quantize


def test_a_bit_width_of_a_node_is_checked() -> None:
    """As that of all nodes is."""
    config = RTNWeightOnlyQuantConfig(customized_weight_config={"a": {"bits": 3}, "b": {"bits": "4"}}, block_size=16, bits=4)
    check_config(config)
    assert config.of_node("other") is config
    with pytest.raises(errors.InvalidArgument, match="bits is 2, 4 or 8, got 3"):
        config.of_node("a")
    with pytest.raises(errors.InvalidArgument, match="bits is an integer, got '4'"):
        config.of_node("b")


def test_awq_says_what_to_take_instead() -> None:
    """It needs a package of NVIDIA's."""
    with pytest.raises(errors.NotImplemented, match="GPTQWeightOnlyQuantConfig"):
        NVAWQWeightOnlyQuantConfig("folder", calibration_method="awq_lite")
