"""The arguments of a quantization as objects, which `quantize` takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sardonyx.dtypes import OnnxValue
from sardonyx.quantization.kinds import CalibrationMethod, QuantFormat, QuantType

__all__ = ["CALIBRATION_OPTIONS", "DynamicQuantConfig", "Feeds", "QuantConfig", "StaticQuantConfig"]

Feeds: TypeAlias = "Iterable[Mapping[str, OnnxValue]]"
"""Feeds, input name -> value; a CalibrationDataReader, or anything that gives them."""
CALIBRATION_OPTIONS: Mapping[str, str] = {
    "CalibTensorRangeSymmetric": "symmetric",
    "CalibMovingAverage": "moving_average",
    "CalibMovingAverageConstant": "averaging_constant",
    "CalibMaxIntermediateOutputs": "max_intermediate_outputs",
    "CalibPercentile": "percentile",
}
"""Option of `quantize_static` -> the argument of a calibrator that it is."""


class QuantConfig:
    """What quantizations of both kinds are told: a StaticQuantConfig or a DynamicQuantConfig, which `quantize` takes."""

    def __init__(
        self,
        activation_type: QuantType = QuantType.QUInt8,
        weight_type: QuantType = QuantType.QInt8,
        op_types_to_quantize: Sequence[str] | None = None,
        nodes_to_quantize: Sequence[str] | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        per_channel: bool = False,
        reduce_range: bool = False,
        use_external_data_format: bool = False,
    ) -> None:
        """Keep the arguments, which are those of `quantize_static` and `quantize_dynamic`."""
        self.activation_type = activation_type
        self.weight_type = weight_type
        self.op_types_to_quantize = op_types_to_quantize
        self.nodes_to_quantize = nodes_to_quantize
        self.nodes_to_exclude = nodes_to_exclude
        self.per_channel = per_channel
        self.reduce_range = reduce_range
        self.use_external_data_format = use_external_data_format


@dataclasses.dataclass(slots=True)
class DynamicQuantConfig(QuantConfig):
    """The arguments of `quantize_dynamic`."""

    weight_type: QuantType = QuantType.QInt8
    op_types_to_quantize: Sequence[str] | None = None
    nodes_to_quantize: Sequence[str] | None = None
    nodes_to_exclude: Sequence[str] | None = None
    per_channel: bool = False
    reduce_range: bool = False
    use_external_data_format: bool = False
    extra_options: Mapping[str, Any] | None = None


@dataclasses.dataclass(slots=True)
class StaticQuantConfig(QuantConfig):
    """The arguments of `quantize_static`."""

    calibration_data_reader: Feeds
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax
    quant_format: QuantFormat = QuantFormat.QDQ
    activation_type: QuantType = QuantType.QInt8
    weight_type: QuantType = QuantType.QInt8
    op_types_to_quantize: Sequence[str] | None = None
    nodes_to_quantize: Sequence[str] | None = None
    nodes_to_exclude: Sequence[str] | None = None
    per_channel: bool = False
    reduce_range: bool = False
    use_external_data_format: bool = False
    calibration_providers: Sequence[str] | None = None
    extra_options: Mapping[str, Any] | None = None
