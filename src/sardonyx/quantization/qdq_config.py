"""The configuration that quantizes a model with QuantizeLinear and DequantizeLinear, put together from what the model has.

    quantize("model.onnx", "model_qdq.onnx", get_qdq_config("model.onnx", reader, activation_type=QuantType.QUInt16))

Names, arguments and defaults are those of `onnxruntime.quantization.get_qdq_config`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats.protos import Message
from sardonyx.quantization.configs import CALIBRATION_OPTIONS, Feeds, StaticQuantConfig
from sardonyx.quantization.overrides import hint
from sardonyx.quantization.plan import MOVES, OTHERS, PRODUCTS
from sardonyx.quantization.quant_utils import CalibrationMethod, QuantFormat, QuantType
from sardonyx.tools.models import Given, read, to_proto

__all__ = ["get_qdq_config"]

_CALIBRATION = {name: option for option, name in CALIBRATION_OPTIONS.items()}
_MOST_PROTOBUF_BYTES = (1 << 31) - 1


def get_qdq_config(
    model_input: Given,
    calibration_data_reader: Feeds,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    calibrate_args: Mapping[str, Any] | None = None,
    activation_type: QuantType = QuantType.QUInt8,
    weight_type: QuantType = QuantType.QInt8,
    activation_symmetric: bool = False,
    weight_symmetric: bool | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    keep_removable_activations: bool = False,
    min_real_range: float | None = None,
    tensor_quant_overrides: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    calibration_providers: Sequence[str] | None = None,
    op_types_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | Callable[[Message, Message], bool] | None = None,
    extra_options: Mapping[str, Any] | None = None,
) -> StaticQuantConfig:
    """Return the arguments by which `quantize` makes a model of QuantizeLinear and DequantizeLinear.

    Args:
        model_input: the path of the model, or an onnx.ModelProto.
        calibration_data_reader: feeds that show the ranges of the tensors.
        calibrate_method: how ranges follow from what was seen.
        calibrate_args: symmetric, moving_average, averaging_constant, max_intermediate_outputs or percentile.
        activation_type: the type of quantized activations.
        weight_type: the type of quantized weights.
        activation_symmetric: whether the zero point of activations is in the middle.
        weight_symmetric: the same of weights; None for types with a sign.
        per_channel: whether weights have a scale for each output channel.
        reduce_range: whether weights use 7 bits.
        keep_removable_activations: accepted; Relu and Clip stay in any case.
        min_real_range: the least range that a tensor is given; None for any.
        tensor_quant_overrides: tensor name -> what is said of it, as `TensorQuantOverrides`.
        calibration_providers: on which the model is calibrated; None for the session's default.
        op_types_to_quantize: operators; None for all of the model that can be quantized.
        nodes_to_exclude: names of nodes to leave in floats, or a function of the onnx.ModelProto and each onnx.NodeProto.
        extra_options: as those of `quantize_static`; they go before what is said here.

    Raises:
        InvalidArgument: a name in `calibrate_args` is not known, or the model is none.
        SardonyxError: the model cannot be read.
    """
    model = read(model_input)
    unknown = [name for name in calibrate_args or () if name not in _CALIBRATION]
    if unknown:
        raise InvalidArgument(
            f"calibrate_args has {unknown[0]!r}; known are {sorted(_CALIBRATION)}{hint(unknown[0], _CALIBRATION)}"
        )
    named = () if nodes_to_exclude is None or callable(nodes_to_exclude) else nodes_to_exclude
    excluded = dict.fromkeys(named)
    if callable(nodes_to_exclude):
        proto = to_proto(model)
        excluded |= dict.fromkeys(node.name for node in proto.graph.node if nodes_to_exclude(proto, node))
    able = {*PRODUCTS, *MOVES, *OTHERS}
    found = {node.op_type for node in model.graph if node.name not in excluded}
    weight_bytes = sum(value.constant.size_bytes for value in model.graph.initializers.values() if value.constant is not None)
    options: dict[str, Any] = {
        "QDQKeepRemovableActivations": keep_removable_activations,
        "ActivationSymmetric": activation_symmetric,
        "WeightSymmetric": _has_sign(weight_type) if weight_symmetric is None else weight_symmetric,
        **({} if min_real_range is None else {"MinimumRealRange": min_real_range}),
        **({} if not tensor_quant_overrides else {"TensorQuantOverrides": dict(tensor_quant_overrides)}),
        **{_CALIBRATION[name]: value for name, value in (calibrate_args or {}).items()},
        **(extra_options or {}),
    }
    return StaticQuantConfig(
        calibration_data_reader,
        calibrate_method=calibrate_method,
        quant_format=QuantFormat.QDQ,
        activation_type=activation_type,
        weight_type=weight_type,
        op_types_to_quantize=list(op_types_to_quantize or sorted(found & able)),
        nodes_to_exclude=list(excluded),
        per_channel=per_channel,
        reduce_range=reduce_range,
        use_external_data_format=weight_bytes > _MOST_PROTOBUF_BYTES,
        calibration_providers=calibration_providers,
        extra_options=options,
    )


def _has_sign(kind: QuantType) -> bool:
    return kind.dtype in (DataType.INT4, DataType.INT8, DataType.INT16)
