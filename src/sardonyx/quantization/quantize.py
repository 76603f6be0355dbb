"""Quantize a model and write it to a file: static, with calibration data, or dynamic.

    quantize_static("model.onnx", "model_int8.onnx", reader, per_channel=True)
    quantize_dynamic("model.onnx", "model_int8.onnx")

Names, arguments and defaults are those of `onnxruntime.quantization`.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model, Value
from sardonyx.ops.infer import infer_graph
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.apply_rules import ApplyRules
from sardonyx.quantization import dynamic
from sardonyx.quantization.calibrate import create_calibrator
from sardonyx.quantization.configs import CALIBRATION_OPTIONS, DynamicQuantConfig, Feeds, QuantConfig, StaticQuantConfig
from sardonyx.quantization.grids import Grid, grid_of_range, grid_of_spread, grid_of_weights
from sardonyx.quantization.operators import OPERATOR_RULES
from sardonyx.quantization.overrides import Override, hint, read_overrides
from sardonyx.quantization.plan import MOVES, OTHERS, PRODUCTS, READERS, Plan, make_plan
from sardonyx.quantization.qdq import QdqChoice, drop_unused, insert_qdq
from sardonyx.quantization.qdq_config import get_qdq_config
from sardonyx.quantization.quant_utils import CalibrationMethod, QuantFormat, QuantType
from sardonyx.quantization.shape_inference import prepared
from sardonyx.quantization.tensors_data import TensorData, TensorsData, load_tensors_data, save_tensors_data
from sardonyx.tools.models import Given

__all__ = [
    "DynamicQuantConfig",
    "QuantConfig",
    "StaticQuantConfig",
    "checked_ranges",
    "dynamic_model",
    "get_qdq_config",
    "quantize",
    "quantize_dynamic",
    "quantize_static",
    "static_model",
]

RangesOf: TypeAlias = Callable[[Model, Plan, Mapping[str, Any]], "TensorsData"]
"""Finds the ranges of a plan's activations; Any: options are of all kinds."""
_OLDEST_OPSET, _OPSET_OF_HALF, _OPSET_OF_MORE_TYPES = 13, 19, 21
_OPSET_OF_FLOAT8 = 19
_NARROW_OR_WIDE = (DataType.INT4, DataType.UINT4, DataType.INT16, DataType.UINT16)
_STATIC_OPTIONS = frozenset(
    [
        *("ActivationSymmetric", "AddQDQPairToWeight", "CalibMaxIntermediateOutputs", "CalibMovingAverage"),
        *(
            "CalibMovingAverageConstant",
            "CalibPercentile",
            "CalibTensorRangeSymmetric",
            "EnableSubgraph",
            "ForceQuantizeNoInputCheck",
        ),
        *("MatMulConstBOnly", "MinimumRealRange", "OpTypesToExcludeOutputQuantization", "QuantizeBias", "TensorQuantOverrides"),
        *("WeightSymmetric", "QDQKeepRemovableActivations", "UseQDQContribOps", "QDQDisableWeightAdjustForInt32Bias"),
    ]
)
_DYNAMIC_OPTIONS = frozenset(
    ["WeightSymmetric", "EnableSubgraph", "ForceQuantizeNoInputCheck", "MatMulConstBOnly", "MinimumRealRange"]
)
_WITHOUT_EFFECT: Mapping[str, str] = {
    "EnableSubgraph": "the bodies of If, Loop and Scan stay in floats",
    "ForceQuantizeNoInputCheck": "operators that move elements are quantized with what they move",
    "UseQDQContribOps": "types of 4 and 16 bits are those of opset 21",
}
_OF_METHOD: Mapping[CalibrationMethod, Collection[str]] = {
    CalibrationMethod.MinMax: ("symmetric", "moving_average", "averaging_constant", "max_intermediate_outputs"),
    CalibrationMethod.Entropy: ("symmetric",),
    CalibrationMethod.Percentile: ("symmetric", "percentile"),
    CalibrationMethod.Distribution: (),
}


def quantize(model_input: Given, model_output: str | os.PathLike[str], quant_config: QuantConfig) -> None:
    """Quantize a model as a configuration says; raises as `quantize_static` and `quantize_dynamic`."""
    if not isinstance(quant_config, (StaticQuantConfig, DynamicQuantConfig)):
        raise InvalidArgument(f"quant_config is a StaticQuantConfig or a DynamicQuantConfig, got {type(quant_config).__name__}")
    given = {field.name: getattr(quant_config, field.name) for field in dataclasses.fields(quant_config)}
    (quantize_static if isinstance(quant_config, StaticQuantConfig) else quantize_dynamic)(model_input, model_output, **given)


def quantize_dynamic(
    model_input: Given,
    model_output: str | os.PathLike[str],
    op_types_to_quantize: Sequence[str] | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    weight_type: QuantType = QuantType.QInt8,
    nodes_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | None = None,
    use_external_data_format: bool = False,
    extra_options: Mapping[str, Any] | None = None,
) -> None:
    """Write a model whose weights have 8 bits, and whose activations are quantized in each run.

    Args:
        model_input: the path of a model, or an onnx.ModelProto, which stays as it is.
        model_output: the file to write.
        op_types_to_quantize: operators; None for MatMul, Gemm, Conv, LSTM, Attention, Gather and EmbedLayerNormalization.
        per_channel: whether weights have a scale for each output channel.
        reduce_range: whether weights use 7 bits, for processors whose 8-bit products saturate.
        weight_type: QInt8 or QUInt8.
        nodes_to_quantize: names of the only nodes to quantize; None for all.
        nodes_to_exclude: names of nodes to leave in floats.
        use_external_data_format: whether weights go into a file beside `model_output`.
        extra_options: WeightSymmetric (whether the zero point of weights is 0; by default of QInt8), MinimumRealRange.

    Raises:
        InvalidArgument: a type, an operator, a node or an option is not known, or a weight is not finite.
        SardonyxError: the model cannot be read, or is invalid.
    """
    model = dynamic_model(
        model_input,
        op_types_to_quantize,
        per_channel,
        reduce_range,
        weight_type,
        nodes_to_quantize,
        nodes_to_exclude,
        extra_options,
    )
    _save(model, model_output, external=use_external_data_format)


def dynamic_model(
    model_input: Given,
    op_types_to_quantize: Sequence[str] | None,
    per_channel: bool,
    reduce_range: bool,
    weight_type: QuantType,
    nodes_to_quantize: Sequence[str] | None,
    nodes_to_exclude: Sequence[str] | None,
    extra_options: Mapping[str, Any] | None,
) -> Model:
    """Return what `quantize_dynamic` writes; arguments and errors are its own."""
    if weight_type not in (QuantType.QInt8, QuantType.QUInt8):
        raise InvalidArgument(f"weights of dynamic quantization are QInt8 or QUInt8, got {weight_type}")
    options = _checked(extra_options, _DYNAMIC_OPTIONS)
    operators = _operators(op_types_to_quantize, dynamic.OPERATORS)
    model = prepared(model_input, optimizes=False, opset=_OLDEST_OPSET)
    _check_names(model, nodes_to_quantize, nodes_to_exclude)
    is_symmetric = bool(options.get("WeightSymmetric", weight_type is QuantType.QInt8))

    def grid(array: Array, axis: int | None) -> Grid:
        return grid_of_weights(
            array,
            weight_type.dtype,
            axis=axis,
            symmetric=is_symmetric,
            reduced=reduce_range,
            least_range=options.get("MinimumRealRange"),
        )

    dynamic.quantize_operators(
        model, operators, frozenset(nodes_to_quantize or ()), frozenset(nodes_to_exclude or ()), grid, per_channel=per_channel
    )
    return model


def quantize_static(
    model_input: Given,
    model_output: str | os.PathLike[str],
    calibration_data_reader: Feeds | None = None,
    quant_format: QuantFormat = QuantFormat.QDQ,
    op_types_to_quantize: Sequence[str] | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    activation_type: QuantType = QuantType.QInt8,
    weight_type: QuantType = QuantType.QInt8,
    nodes_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | None = None,
    use_external_data_format: bool = False,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    calibration_providers: Sequence[str] | None = None,
    extra_options: Mapping[str, Any] | None = None,
    calibration_cache_path: str | os.PathLike[str] | None = None,
) -> None:
    """Write a model whose activations and weights are quantized, by ranges found with calibration data.

    Args:
        model_input: the path of a model, or an onnx.ModelProto, which stays as it is. `quant_pre_process` makes better ones.
        model_output: the file to write.
        calibration_data_reader: gives feeds, input name -> value.
        quant_format: QDQ, float operators between QuantizeLinear and DequantizeLinear; or QOperator, QLinearConv and its like.
        op_types_to_quantize: operators; None for all that can be.
        per_channel: whether weights have a scale for each output channel.
        reduce_range: whether weights use 7 bits, for processors whose 8-bit products saturate.
        activation_type: QInt8, QUInt8, QInt16, QUInt16 or QFLOAT8E4M3FN.
        weight_type: one of these, QInt4 or QUInt4; QFLOAT8E4M3FN for both or for none.
        nodes_to_quantize: names of the only nodes to quantize; None for all.
        nodes_to_exclude: names of nodes to leave in floats.
        use_external_data_format: whether weights go into a file beside `model_output`.
        calibrate_method: how the range of a tensor follows from its values; Distribution for QFLOAT8E4M3FN, and only for it.
        calibration_providers: what the model runs on for that; None for the CPU.
        extra_options: ActivationSymmetric, WeightSymmetric, AddQDQPairToWeight, QuantizeBias, MinimumRealRange, MatMulConstBOnly,
            OpTypesToExcludeOutputQuantization, TensorQuantOverrides, and those of calibration: CalibTensorRangeSymmetric,
            CalibMovingAverage, CalibMovingAverageConstant, CalibPercentile.
        calibration_cache_path: a file that keeps the ranges. Where it exists they are read from it, and the model is not run; else
            they are written to it.

    Raises:
        InvalidArgument: a type, an operator, a node or an option is not known, the data is missing or not finite, or the file
            lacks a tensor.
        SardonyxError: the model cannot be read or is invalid, or a feed does not fit.
    """
    kept = None if calibration_cache_path is None else Path(calibration_cache_path)
    known = load_tensors_data(kept) if kept is not None and kept.exists() else None
    if calibration_data_reader is None and known is None:
        raise InvalidArgument(
            "static quantization needs calibration_data_reader, feeds that show the ranges of the tensors, or an existing"
            " calibration_cache_path"
        )

    if known is None and (calibrate_method is CalibrationMethod.Distribution) != (activation_type is QuantType.QFLOAT8E4M3FN):
        raise InvalidArgument(
            f"calibrate_method is Distribution for activations of QFLOAT8E4M3FN, and only for them; got {calibrate_method} and"
            f" {activation_type}"
        )

    def ranges_of(model: Model, plan: Plan, options: Mapping[str, Any]) -> TensorsData:
        if known is not None:
            return checked_ranges(known, plan, f"calibration cache {str(kept)!r}")
        feeds = () if calibration_data_reader is None else calibration_data_reader
        found = _ranges(model, plan, feeds, calibrate_method, calibration_providers, options)
        if kept is not None:
            save_tensors_data(found, kept)
        return found

    model = static_model(
        model_input,
        ranges_of,
        quant_format,
        op_types_to_quantize,
        per_channel,
        reduce_range,
        activation_type,
        weight_type,
        nodes_to_quantize,
        nodes_to_exclude,
        extra_options,
    )
    _save(model, model_output, external=use_external_data_format)


def static_model(
    model_input: Given,
    ranges_of: RangesOf,
    quant_format: QuantFormat,
    op_types_to_quantize: Sequence[str] | None,
    per_channel: bool,
    reduce_range: bool,
    activation_type: QuantType,
    weight_type: QuantType,
    nodes_to_quantize: Sequence[str] | None,
    nodes_to_exclude: Sequence[str] | None,
    extra_options: Mapping[str, Any] | None,
) -> Model:
    """Return what `quantize_static` writes; arguments and errors are its own, but for `ranges_of`, which finds the ranges."""
    if activation_type.dtype in (DataType.INT4, DataType.UINT4):
        raise InvalidArgument(f"activations have 8 or 16 bits, got {activation_type}")
    are_floats = [kind is QuantType.QFLOAT8E4M3FN for kind in (activation_type, weight_type)]
    if any(are_floats) and (not all(are_floats) or quant_format is not QuantFormat.QDQ or reduce_range):
        raise InvalidArgument(
            "QFLOAT8E4M3FN is for activations and weights alike, with QuantFormat.QDQ and without reduce_range; got"
            f" {activation_type}, {weight_type}, {quant_format} and reduce_range={reduce_range}"
        )
    options = _checked(extra_options, _STATIC_OPTIONS)
    operators = _operators(op_types_to_quantize, [*PRODUCTS, *sorted(MOVES | OTHERS), *READERS])
    model = prepared(model_input, optimizes=False, opset=_opset_for(activation_type, weight_type))
    if _has_half(model):
        model = prepared(model_input, optimizes=False, opset=max(_OPSET_OF_HALF, _opset_for(activation_type, weight_type)))
    _check_names(model, nodes_to_quantize, nodes_to_exclude)
    plan = make_plan(
        model,
        operators,
        frozenset(nodes_to_quantize or ()),
        frozenset(nodes_to_exclude or ()),
        constant_weights_only=bool(options.get("MatMulConstBOnly", False)),
        quantizes_bias=bool(options.get("QuantizeBias", True)) and not any(are_floats),
        without_outputs=options.get("OpTypesToExcludeOutputQuantization") or (),
    )
    overrides = read_overrides(options.get("TensorQuantOverrides"), model)
    ranges = ranges_of(model, plan, options)
    rounding = _Rounding(activation_type, weight_type, per_channel, reduce_range, options, overrides, ranges)
    insert_qdq(model, plan, rounding.choice())
    if quant_format is QuantFormat.QOperator:
        infer_graph(model)
        ApplyRules(OPERATOR_RULES).run(model, Context())
        drop_unused(model)
    return model


@dataclasses.dataclass(frozen=True, slots=True)
class _Rounding:
    """The grids of one quantization."""

    activation_type: QuantType
    weight_type: QuantType
    per_channel: bool
    reduced: bool
    options: Mapping[str, Any]
    overrides: Mapping[str, Override]
    ranges: TensorsData

    def choice(self) -> QdqChoice:
        """Return them as `insert_qdq` takes them."""
        keeps = bool(self.options.get("AddQDQPairToWeight", False))
        return QdqChoice(self._activation, self._operand, self._weight, keeps_float_weights=keeps)

    def _activation(self, value: Value) -> Grid:
        if self.activation_type is QuantType.QFLOAT8E4M3FN:
            return self._spread(value)
        override = self.overrides.get(value.name, Override())
        low, high = self.ranges[value.name].range_value
        kind = np.float16 if value.dtype is DataType.FLOAT16 else np.float32
        try:
            return override.grid(
                override.dtype or self.activation_type.dtype,
                np.asarray(low, kind),
                np.asarray(high, kind),
                symmetric=bool(self.options.get("ActivationSymmetric", False)),
                least_range=self.options.get("MinimumRealRange"),
            )
        except ValueError as error:
            raise InvalidArgument(f"tensor {value.name!r}: {error}") from error

    def _spread(self, value: Value) -> Grid:
        kind = np.float16 if value.dtype is DataType.FLOAT16 else np.float32
        try:
            return grid_of_spread(np.asarray(self.ranges[value.name].avg_std[1], kind))
        except (AttributeError, ValueError) as error:
            raise InvalidArgument(f"tensor {value.name!r}: {error}") from error

    def _operand(self, value: Value, array: Array) -> Grid:
        if self.activation_type is QuantType.QFLOAT8E4M3FN:
            return grid_of_weights(array, self.activation_type.dtype)
        low, high = (array.min(), array.max()) if array.size else (array.dtype.type(0),) * 2
        is_symmetric = bool(self.options.get("ActivationSymmetric", False))
        return grid_of_range(
            self.activation_type.dtype, low, high, symmetric=is_symmetric, least_range=self.options.get("MinimumRealRange")
        )

    def _weight(self, value: Value, array: Array, axis: int) -> Grid:
        override = self.overrides.get(value.name, Override())
        dtype = override.dtype or self.weight_type.dtype
        chosen = override.axis if override.axis is not None else axis if self.per_channel and array.ndim > 1 else None
        symmetric = self.options.get("WeightSymmetric", self.weight_type in (QuantType.QInt8, QuantType.QInt16, QuantType.QInt4))
        return grid_of_weights(
            array,
            dtype,
            axis=chosen,
            symmetric=bool(symmetric if override.symmetric is None else override.symmetric),
            reduced=self.reduced if override.reduced is None else override.reduced,
            least_range=self.options.get("MinimumRealRange"),
        )


def _ranges(
    model: Model,
    plan: Plan,
    feeds: Feeds,
    method: CalibrationMethod,
    providers: Sequence[str] | None,
    options: Mapping[str, Any],
) -> TensorsData:
    """Run the model on the calibration data; the ranges of the plan's activations."""
    allowed = _OF_METHOD.get(method, ())
    given = {CALIBRATION_OPTIONS[name]: value for name, value in options.items() if name in CALIBRATION_OPTIONS}
    calibrator = create_calibrator(
        model,
        calibrate_method=method,
        providers=providers,
        extra_options={name: value for name, value in given.items() if name in allowed and value is not None},
        tensors=[value.name for value in plan.activations],
    )
    try:
        calibrator.collect_data(feeds)
        return calibrator.compute_data()
    except ValueError as error:
        raise InvalidArgument(str(error)) from error


def checked_ranges(known: Mapping[str, TensorData], plan: Plan, origin: str) -> TensorsData:
    """Return ranges that were given; raises InvalidArgument where one of the plan's activations is missing."""
    missing = [value.name for value in plan.activations if value.name not in known]
    if missing:
        raise InvalidArgument(
            f"{origin} has no range of the tensor {missing[0]!r} ({len(missing)} are missing): it was made for another model or"
            " other operators; calibrate anew"
        )
    return known if isinstance(known, TensorsData) else TensorsData(CalibrationMethod.MinMax, known)


def _opset_for(*types: QuantType) -> int:
    if QuantType.QFLOAT8E4M3FN in types:
        return _OPSET_OF_FLOAT8
    return _OPSET_OF_MORE_TYPES if any(kind.dtype in _NARROW_OR_WIDE for kind in types) else _OLDEST_OPSET


def _has_half(model: Model) -> bool:
    return any(value.dtype is DataType.FLOAT16 for node in model.graph for value in node.outputs)


def _operators(asked: Sequence[str] | None, known: Sequence[str]) -> frozenset[str]:
    unknown = [name for name in asked or () if name not in known]
    if unknown:
        raise InvalidArgument(f"operator {unknown[0]!r} cannot be quantized{hint(unknown[0], known)}; those are {', '.join(known)}")
    return frozenset(asked or known)


def _checked(options: Mapping[str, Any] | None, known: Collection[str]) -> Mapping[str, Any]:
    for name, value in (options or {}).items():
        if name not in known:
            raise InvalidArgument(f"extra_options has {name!r}, which is not known{hint(name, known)}")
        if name in _WITHOUT_EFFECT and value:
            warnings.warn(f"extra_options has {name!r}, which has no effect: {_WITHOUT_EFFECT[name]}", UserWarning, stacklevel=3)
    return options or {}


def _check_names(model: Model, *lists: Sequence[str] | None) -> None:
    """Refuse names of nodes that the model does not have."""
    names = {node.name for node in model.graph if node.name}
    for name in (name for listed in lists for name in listed or ()):
        if name not in names:
            raise InvalidArgument(f"the model has no node {name!r}{hint(name, names)}")


def _save(model: Model, path: str | os.PathLike[str], *, external: bool) -> None:
    model.producer_name = "sardonyx.quantization"
    onnx_format.save(model, path, external_data=True if external else None)
