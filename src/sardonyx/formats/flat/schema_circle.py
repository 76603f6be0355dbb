"""The tables of Circle models: those of TensorFlow Lite, with what Circle adds under numbers of its own.

Source: the public schema of Circle, version 0.10, as the package circle-schema has it.
"""

from __future__ import annotations

from sardonyx.formats.flat.schema_tflite import TFLITE

__all__ = ["CIRCLE"]

_ENUMS = {
    "TensorType": (
        "byte: FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64 COMPLEX128 UINT64 RESOURCE VARIANT "
        "UINT32 UINT16 INT4 MXINT8=-7 MXFP4 GGML_Q8_1 GGML_Q8_0 GGML_Q4_1 GGML_Q4_0 UINT4"
    ),
    "CompressionType": "byte: NONE HUFFMAN",
    "FullyConnectedOptionsWeightsFormat": "byte: DEFAULT SHUFFLED4x16INT8 SHUFFLED16x1FLOAT32=127",
    "RoPEMode": "int: GPT_NEOX GPT_J",
    "BuiltinOperator": (
        f"{TFLITE.text('BuiltinOperator')} ATTENTION=-9 RUN_MODEL ROPE RMS_NORM GRU BCQ_GATHER BCQ_FULLY_CONNECTED INSTANCE_NORM"
    ),
}
_UNIONS = {
    "BuiltinOptions": (
        f"{TFLITE.text('BuiltinOptions')} AttentionOptions=247 RunModelOptions RoPEOptions RmsNormOptions GRUOptions "
        "BCQGatherOptions BCQFullyConnectedOptions InstanceNormOptions"
    ),
    "QuantizationDetails": "CustomQuantization MXQuantization BlockwiseQuantization",
}
_TABLES = {
    "Tensor": (
        "shape:[int] type:TensorType buffer:uint name:string quantization:QuantizationParameters is_variable:bool "
        "sparsity:SparsityParameters shape_signature:[int] has_rank:bool variant_tensors:[VariantSubType] "
        "compression_type:CompressionType"
    ),
    "SubGraph": (
        "tensors:[Tensor] inputs:[int] outputs:[int] operators:[Operator] name:string deprecated_data_format:byte "
        "debug_metadata_index:int=-1"
    ),
    "MXQuantization": "axis:int",
    "Model": (
        "version:uint operator_codes:[OperatorCode] subgraphs:[SubGraph] description:string buffers:[Buffer] "
        "metadata_buffer:[int] metadata:[Metadata] signature_defs:[SignatureDef]"
    ),
    "RoPEOptions": "mode:RoPEMode",
    "RunModelOptions": "location:string signature:string",
    "GRUOptions": "fused_activation_function:ActivationFunctionType return_sequences:bool time_major:bool",
    "BCQGatherOptions": "input_hidden_size:int axis:int",
    "BCQFullyConnectedOptions": "weights_hidden_size:int fused_activation_function:ActivationFunctionType",
    "InstanceNormOptions": "epsilon:float fused_activation_function:ActivationFunctionType",
    "RmsNormOptions": "epsilon:float fused_activation_function:ActivationFunctionType",
}

CIRCLE = TFLITE.extended("Circle", b"CIR0", enums=_ENUMS, unions=_UNIONS, tables=_TABLES)
