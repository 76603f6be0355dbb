"""Quantizers as objects: onnxruntime's classes, which scripts make themselves where ranges are known already.

    quantizer = QDQQuantizer(model, False, False, QuantType.QInt8, QuantType.QUInt8, calibrator.compute_data(), [], [], None)
    quantizer.quantize_model()
    quantizer.model.save_model_to_file("quantized.onnx")

With `import sardonyx.as_onnxruntime` they are found in `onnxruntime.quantization.qdq_quantizer` and `onnx_quantizer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.errors import InvalidArgument
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.protos import Message
from sardonyx.ir import Model
from sardonyx.quantization.onnx_model import ONNXModel
from sardonyx.quantization.plan import Plan
from sardonyx.quantization.quant_utils import QuantFormat, QuantizationMode, QuantType
from sardonyx.quantization.quantize import checked_ranges, dynamic_model, static_model
from sardonyx.quantization.tensors_data import TensorData, TensorsData

__all__ = ["ONNXQuantizer", "QDQQuantizer"]

Ranges = Mapping[str, TensorData]
"""Tensor name -> its range."""


class _Quantizer:
    """A model, and how it is to be quantized."""

    _format = QuantFormat.QDQ

    def __init__(
        self,
        model: Message,
        per_channel: bool,
        reduce_range: bool,
        weight_qType: QuantType,
        activation_qType: QuantType,
        tensors_range: Ranges | None,
        nodes_to_quantize: Sequence[str] | None,
        nodes_to_exclude: Sequence[str] | None,
        op_types_to_quantize: Sequence[str] | None,
        extra_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = ONNXModel(model)
        """The model: what was given, and after `quantize_model` what that returned."""
        self.per_channel, self.reduce_range = per_channel, reduce_range
        self.weight_qType, self.activation_qType = weight_qType, activation_qType
        self.tensors_range = tensors_range
        self.nodes_to_quantize, self.nodes_to_exclude = nodes_to_quantize, nodes_to_exclude
        self.op_types_to_quantize, self.extra_options = op_types_to_quantize, extra_options

    def quantize_model(self) -> Message:
        """Return the quantized model, an onnx.ModelProto, which `model` holds from then on; the one that was given stays as it is.

        Raises:
            InvalidArgument: a type, an operator, a node or an option is not known, or a tensor has no range.
            SardonyxError: the model is invalid.
        """
        made = self._quantized()
        made.producer_name = "sardonyx.quantization"
        proto = onnx_format.to_proto(made)
        self.model = ONNXModel(proto)
        return proto

    def _quantized(self) -> Model:
        return static_model(
            self.model.model,
            self._ranges_of,
            self._format,
            self.op_types_to_quantize or None,
            self.per_channel,
            self.reduce_range,
            self.activation_qType,
            self.weight_qType,
            self.nodes_to_quantize,
            self.nodes_to_exclude,
            self.extra_options,
        )

    def _ranges_of(self, _model: Model, plan: Plan, _options: Mapping[str, Any]) -> TensorsData:
        return checked_ranges(self.tensors_range or {}, plan, "tensors_range")


class QDQQuantizer(_Quantizer):
    """Puts float operators between QuantizeLinear and DequantizeLinear."""

    def __init__(
        self,
        model: Message,
        per_channel: bool,
        reduce_range: bool,
        weight_qType: QuantType,
        activation_qType: QuantType,
        tensors_range: Ranges,
        nodes_to_quantize: Sequence[str] | None,
        nodes_to_exclude: Sequence[str] | None,
        op_types_to_quantize: Sequence[str] | None,
        extra_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Take a model and the ranges of its tensors; nothing is done yet.

        Args:
            model: an onnx.ModelProto.
            per_channel: as of `quantize_static`, like those that follow.
            reduce_range: see there.
            weight_qType: its `weight_type`.
            activation_qType: its `activation_type`.
            tensors_range: tensor name -> what calibration found, such as `compute_data` returns.
            nodes_to_quantize: see there.
            nodes_to_exclude: see there.
            op_types_to_quantize: see there; all where empty.
            extra_options: see there.
        """
        super().__init__(
            *(model, per_channel, reduce_range, weight_qType, activation_qType),
            *(tensors_range, nodes_to_quantize, nodes_to_exclude, op_types_to_quantize, extra_options),
        )


class ONNXQuantizer(_Quantizer):
    """Makes quantized operators: of ranges that are known, or with activations that are quantized in each run."""

    _format = QuantFormat.QOperator

    def __init__(
        self,
        model: Message,
        per_channel: bool,
        reduce_range: bool,
        mode: QuantizationMode,
        static: bool,
        weight_qType: QuantType,
        activation_qType: QuantType,
        tensors_range: Ranges | None,
        nodes_to_quantize: Sequence[str] | None,
        nodes_to_exclude: Sequence[str] | None,
        op_types_to_quantize: Sequence[str] | None,
        extra_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Take a model; nothing is done yet.

        Args:
            model: an onnx.ModelProto.
            per_channel: as of `quantize_static` and `quantize_dynamic`, like those that follow.
            reduce_range: see there.
            mode: QLinearOps for ranges that are known, IntegerOps for each run.
            static: whether ranges are known; it agrees with `mode`.
            weight_qType: their `weight_type`.
            activation_qType: the `activation_type` of `quantize_static`.
            tensors_range: tensor name -> what calibration found, such as `compute_data` returns; None for each run.
            nodes_to_quantize: see there.
            nodes_to_exclude: see there.
            op_types_to_quantize: see there; all where empty.
            extra_options: see there.

        Raises:
            InvalidArgument: `static` and `mode` contradict one another.
        """
        if static != (mode is QuantizationMode.QLinearOps):
            raise InvalidArgument(f"static={static} contradicts mode={mode}: ranges are known with QLinearOps, and only with it")
        super().__init__(
            *(model, per_channel, reduce_range, weight_qType, activation_qType),
            *(tensors_range, nodes_to_quantize, nodes_to_exclude, op_types_to_quantize, extra_options),
        )
        self.mode, self.static = mode, static

    def _quantized(self) -> Model:
        if self.static:
            return super()._quantized()
        return dynamic_model(
            *(self.model.model, self.op_types_to_quantize or None, self.per_channel, self.reduce_range, self.weight_qType),
            *(self.nodes_to_quantize, self.nodes_to_exclude, self.extra_options),
        )
