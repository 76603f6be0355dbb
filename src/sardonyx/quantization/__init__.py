"""Quantization of models, with the names and arguments of `onnxruntime.quantization`.

    quantize_static("model.onnx", "model_int8.onnx", reader)      activations and weights of 8 bits, from calibration data
    quantize_dynamic("model.onnx", "model_int8.onnx")             weights of 8 bits, activations quantized in each run
    MatMulNBitsQuantizer("model.onnx", bits=4).process()          weights of 4 bits in blocks, activations in floats

What they write is ONNX that onnxruntime runs too. `layer_errors` says which layers lose accuracy, and `sardonyx quantize`
does all of it from the command line.
"""

from sardonyx.quantization.calibrate import (
    CalibraterBase,
    CalibrationDataReader,
    DistributionCalibrater,
    EntropyCalibrater,
    MinMaxCalibrater,
    PercentileCalibrater,
    TensorData,
    TensorsData,
    create_calibrator,
)
from sardonyx.quantization.layer_errors import LayerError, layer_errors
from sardonyx.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig,
    GPTQWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
    NVAWQWeightOnlyQuantConfig,
    RTNWeightOnlyQuantConfig,
)
from sardonyx.quantization.qdq_config import get_qdq_config
from sardonyx.quantization.quant_utils import CalibrationMethod, QuantFormat, QuantizationMode, QuantType
from sardonyx.quantization.quantize import DynamicQuantConfig, StaticQuantConfig, quantize, quantize_dynamic, quantize_static
from sardonyx.quantization.quantizers import ONNXQuantizer, QDQQuantizer
from sardonyx.quantization.shape_inference import quant_pre_process
from sardonyx.quantization.tensors_data import load_tensors_data, save_tensors_data, write_calibration_table

__all__ = [
    "CalibraterBase",
    "CalibrationDataReader",
    "CalibrationMethod",
    "DefaultWeightOnlyQuantConfig",
    "DistributionCalibrater",
    "DynamicQuantConfig",
    "EntropyCalibrater",
    "GPTQWeightOnlyQuantConfig",
    "HQQWeightOnlyQuantConfig",
    "KQuantWeightOnlyQuantConfig",
    "LayerError",
    "MatMulNBitsQuantizer",
    "MinMaxCalibrater",
    "NVAWQWeightOnlyQuantConfig",
    "ONNXQuantizer",
    "PercentileCalibrater",
    "QDQQuantizer",
    "QuantFormat",
    "QuantType",
    "QuantizationMode",
    "RTNWeightOnlyQuantConfig",
    "StaticQuantConfig",
    "TensorData",
    "TensorsData",
    "create_calibrator",
    "get_qdq_config",
    "layer_errors",
    "load_tensors_data",
    "quant_pre_process",
    "quantize",
    "quantize_dynamic",
    "quantize_static",
    "save_tensors_data",
    "write_calibration_table",
]
