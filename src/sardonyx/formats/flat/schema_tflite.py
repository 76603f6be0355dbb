"""The tables of TensorFlow Lite models, version 3 with all later additions.

Source: the public schema of LiteRT (tflite/converter/schema/schema.fbs, version 3d). Tables without fields are not listed.
"""

from __future__ import annotations

from sardonyx.formats.flat.schema import Schema

__all__ = ["TFLITE"]

_ENUMS = {
    "TensorType": (
        "byte: FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64 COMPLEX128 UINT64 RESOURCE VARIANT "
        "UINT32 UINT16 INT4 BFLOAT16 INT2 UINT4 FLOAT8_E4M3FN FLOAT8_E5M2"
    ),
    "DimensionType": "byte: DENSE SPARSE_CSR",
    "BuiltinOperator": (
        "int: ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR "
        "FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM "
        "MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS "
        "SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND "
        "TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT "
        "LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL "
        "LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW "
        "ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV "
        "REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS "
        "SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG "
        "ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM "
        "BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS "
        "HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE "
        "ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE "
        "RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST "
        "BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM "
        "STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE "
        "STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL "
        "STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER "
        "STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT "
        "STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL "
        "STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE "
        "STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE"
    ),
    "StablehloPrecisionConfig": "uint: DEFAULT HIGH HIGHEST",
    "StablehloComparisonDirection": (
        "uint: STABLEHLO_COMPARISON_DIRECTION_EQ STABLEHLO_COMPARISON_DIRECTION_NE STABLEHLO_COMPARISON_DIRECTION_GE "
        "STABLEHLO_COMPARISON_DIRECTION_GT STABLEHLO_COMPARISON_DIRECTION_LE STABLEHLO_COMPARISON_DIRECTION_LT"
    ),
    "StablehloComparisonType": (
        "uint: STABLEHLO_COMPARISON_TYPE_NOTYPE STABLEHLO_COMPARISON_TYPE_FLOAT STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER "
        "STABLEHLO_COMPARISON_TYPE_SIGNED STABLEHLO_COMPARISON_TYPE_UNSIGNED"
    ),
    "RngAlgorithm": "byte: DEFAULT PHILOX THREEFRY",
    "Padding": "byte: SAME VALID",
    "ActivationFunctionType": "byte: NONE RELU RELU_N1_TO_1 RELU6 TANH SIGN_BIT",
    "LSHProjectionType": "byte: UNKNOWN SPARSE DENSE",
    "FullyConnectedOptionsWeightsFormat": "byte: DEFAULT SHUFFLED4x16INT8",
    "LSTMKernelType": "byte: FULL BASIC",
    "CombinerType": "byte: SUM MEAN SQRTN",
    "MirrorPadMode": "byte: REFLECT SYMMETRIC",
    "ReduceWindowFunction": "int: UNSUPPORTED ADD MUL MINIMUM MAXIMUM ALL ANY",
    "CustomOptionsFormat": "byte: FLEXBUFFERS",
}
_UNIONS = {
    "QuantizationDetails": "CustomQuantization BlockwiseQuantization MultiAxisQuantization",
    "SparseIndexVector": "Int32Vector Uint16Vector Uint8Vector",
    "BuiltinOptions": (
        "Conv2DOptions DepthwiseConv2DOptions ConcatEmbeddingsOptions LSHProjectionOptions Pool2DOptions SVDFOptions RNNOptions "
        "FullyConnectedOptions SoftmaxOptions ConcatenationOptions AddOptions L2NormOptions LocalResponseNormalizationOptions "
        "LSTMOptions ResizeBilinearOptions CallOptions ReshapeOptions SkipGramOptions SpaceToDepthOptions "
        "EmbeddingLookupSparseOptions MulOptions PadOptions GatherOptions BatchToSpaceNDOptions SpaceToBatchNDOptions "
        "TransposeOptions ReducerOptions SubOptions DivOptions SqueezeOptions SequenceRNNOptions StridedSliceOptions ExpOptions "
        "TopKV2Options SplitOptions LogSoftmaxOptions CastOptions DequantizeOptions MaximumMinimumOptions ArgMaxOptions "
        "LessOptions NegOptions PadV2Options GreaterOptions GreaterEqualOptions LessEqualOptions SelectOptions SliceOptions "
        "TransposeConvOptions SparseToDenseOptions TileOptions ExpandDimsOptions EqualOptions NotEqualOptions ShapeOptions "
        "PowOptions ArgMinOptions FakeQuantOptions PackOptions LogicalOrOptions OneHotOptions LogicalAndOptions LogicalNotOptions "
        "UnpackOptions FloorDivOptions SquareOptions ZerosLikeOptions FillOptions BidirectionalSequenceLSTMOptions "
        "BidirectionalSequenceRNNOptions UnidirectionalSequenceLSTMOptions FloorModOptions RangeOptions "
        "ResizeNearestNeighborOptions LeakyReluOptions SquaredDifferenceOptions MirrorPadOptions AbsOptions SplitVOptions "
        "UniqueOptions ReverseV2Options AddNOptions GatherNdOptions CosOptions WhereOptions RankOptions ReverseSequenceOptions "
        "MatrixDiagOptions QuantizeOptions MatrixSetDiagOptions HardSwishOptions IfOptions WhileOptions DepthToSpaceOptions "
        "NonMaxSuppressionV4Options NonMaxSuppressionV5Options ScatterNdOptions SelectV2Options DensifyOptions SegmentSumOptions "
        "BatchMatMulOptions CumsumOptions CallOnceOptions BroadcastToOptions Rfft2dOptions Conv3DOptions HashtableOptions "
        "HashtableFindOptions HashtableImportOptions HashtableSizeOptions VarHandleOptions ReadVariableOptions "
        "AssignVariableOptions RandomOptions BucketizeOptions GeluOptions DynamicUpdateSliceOptions UnsortedSegmentProdOptions "
        "UnsortedSegmentMaxOptions UnsortedSegmentMinOptions UnsortedSegmentSumOptions ATan2Options SignOptions BitcastOptions "
        "BitwiseXorOptions RightShiftOptions"
    ),
    "BuiltinOptions2": (
        "StablehloConcatenateOptions StablehloBroadcastInDimOptions StablehloSliceOptions StablehloConvolutionOptions "
        "StablehloCustomCallOptions StablehloReduceOptions StablehloScatterOptions StablehloCompareOptions "
        "StablehloDynamicSliceOptions StablehloPadOptions StablehloIotaOptions StablehloDotGeneralOptions "
        "StablehloReduceWindowOptions StablehloSortOptions StablehloWhileOptions StablehloGatherOptions StablehloTransposeOptions "
        "DilateOptions StablehloRngBitGeneratorOptions ReduceWindowOptions StableHLOCompositeOptions StablehloShiftLeftOptions "
        "StablehloCaseOptions"
    ),
}
_TABLES = {
    "CustomQuantization": "custom:[ubyte]@16",
    "BlockwiseQuantization": "scales:int zero_points:int block_size:int",
    "MultiAxisQuantization": "scales:int zero_points:int block_size:int quantized_dimensions:[int]",
    "QuantizationParameters": (
        "min:[float] max:[float] scale:[float] zero_point:[long] details:QuantizationDetails quantized_dimension:int"
    ),
    "Int32Vector": "values:[int]",
    "Uint16Vector": "values:[ushort]@4",
    "Uint8Vector": "values:[ubyte]@4",
    "DimensionMetadata": "format:DimensionType dense_size:int array_segments:SparseIndexVector array_indices:SparseIndexVector",
    "SparsityParameters": "traversal_order:[int] block_map:[int] dim_metadata:[DimensionMetadata]",
    "VariantSubType": "shape:[int] type:TensorType has_rank:bool",
    "Tensor": (
        "shape:[int] type:TensorType buffer:uint name:string quantization:QuantizationParameters is_variable:bool "
        "sparsity:SparsityParameters shape_signature:[int] has_rank:bool variant_tensors:[VariantSubType] external_buffer:uint"
    ),
    "StablehloGatherOptions": (
        "offset_dims:[long] collapsed_slice_dims:[long] start_index_map:[long] index_vector_dim:long slice_sizes:[long] "
        "indices_are_sorted:bool"
    ),
    "StablehloTransposeOptions": "permutation:[long]",
    "StablehloDotGeneralOptions": (
        "lhs_batching_dimensions:[long] rhs_batching_dimensions:[long] lhs_contracting_dimensions:[long] "
        "rhs_contracting_dimensions:[long] precision_config:[StablehloPrecisionConfig]"
    ),
    "StablehloReduceWindowOptions": (
        "window_dimensions:[long] window_strides:[long] base_dilations:[long] window_dilations:[long] padding:[long] "
        "body_subgraph_index:int"
    ),
    "StablehloWhileOptions": "cond_subgraph_index:int body_subgraph_index:int",
    "StablehloSortOptions": "dimension:long is_stable:bool comparator_subgraph_index:int",
    "StablehloConcatenateOptions": "dimension:long",
    "StablehloBroadcastInDimOptions": "broadcast_dimensions:[long]",
    "StablehloCompareOptions": "comparison_direction:StablehloComparisonDirection compare_type:StablehloComparisonType",
    "StablehloDynamicSliceOptions": "slice_sizes:[long]",
    "StablehloPadOptions": "edge_padding_low:[long] edge_padding_high:[long] interior_padding:[long]",
    "StablehloIotaOptions": "iota_dimension:long",
    "StablehloCustomCallOptions": (
        "call_target_name:string has_side_effect:bool backend_config:string api_version:int called_computations:[int] "
        "custom_attributes:[ubyte]"
    ),
    "StablehloReduceOptions": "dimensions:[long] body_subgraph_index:int",
    "StablehloSliceOptions": "start_indices:[long] limit_indices:[long] strides:[long]",
    "StablehloConvolutionOptions": (
        "window_strides:[long] padding:[long] lhs_dilation:[long] rhs_dilation:[long] window_reversal:[bool] "
        "input_batch_dimension:long input_feature_dimension:long input_spatial_dimensions:[long] "
        "kernel_input_feature_dimension:long kernel_output_feature_dimension:long kernel_spatial_dimensions:[long] "
        "output_batch_dimension:long output_feature_dimension:long output_spatial_dimensions:[long] feature_group_count:long "
        "batch_group_count:long precision_config:[StablehloPrecisionConfig]"
    ),
    "StablehloScatterOptions": (
        "indices_are_sorted:bool update_window_dims:[long] inserted_window_dims:[long] scatter_dims_to_operand_dims:[long] "
        "index_vector_dim:long unique_indices:bool update_computation_subgraph_index:int"
    ),
    "StablehloCaseOptions": "branch_subgraph_indices:[int]",
    "StablehloRngBitGeneratorOptions": "algorithm:RngAlgorithm",
    "Conv2DOptions": (
        "padding:Padding stride_w:int stride_h:int fused_activation_function:ActivationFunctionType dilation_w_factor:int=1 "
        "dilation_h_factor:int=1 quantized_bias_type:TensorType"
    ),
    "Conv3DOptions": (
        "padding:Padding stride_d:int stride_w:int stride_h:int fused_activation_function:ActivationFunctionType "
        "dilation_d_factor:int=1 dilation_w_factor:int=1 dilation_h_factor:int=1"
    ),
    "Pool2DOptions": (
        "padding:Padding stride_w:int stride_h:int filter_width:int filter_height:int "
        "fused_activation_function:ActivationFunctionType"
    ),
    "DepthwiseConv2DOptions": (
        "padding:Padding stride_w:int stride_h:int depth_multiplier:int fused_activation_function:ActivationFunctionType "
        "dilation_w_factor:int=1 dilation_h_factor:int=1"
    ),
    "ConcatEmbeddingsOptions": "num_channels:int num_columns_per_channel:[int] embedding_dim_per_channel:[int]",
    "LSHProjectionOptions": "type:LSHProjectionType",
    "SVDFOptions": "rank:int fused_activation_function:ActivationFunctionType asymmetric_quantize_inputs:bool",
    "RNNOptions": "fused_activation_function:ActivationFunctionType asymmetric_quantize_inputs:bool",
    "SequenceRNNOptions": "time_major:bool fused_activation_function:ActivationFunctionType asymmetric_quantize_inputs:bool",
    "BidirectionalSequenceRNNOptions": (
        "time_major:bool fused_activation_function:ActivationFunctionType merge_outputs:bool asymmetric_quantize_inputs:bool"
    ),
    "FullyConnectedOptions": (
        "fused_activation_function:ActivationFunctionType weights_format:FullyConnectedOptionsWeightsFormat keep_num_dims:bool "
        "asymmetric_quantize_inputs:bool quantized_bias_type:TensorType"
    ),
    "SoftmaxOptions": "beta:float",
    "ConcatenationOptions": "axis:int fused_activation_function:ActivationFunctionType",
    "AddOptions": "fused_activation_function:ActivationFunctionType pot_scale_int16:bool=1",
    "MulOptions": "fused_activation_function:ActivationFunctionType",
    "L2NormOptions": "fused_activation_function:ActivationFunctionType",
    "LocalResponseNormalizationOptions": "radius:int bias:float alpha:float beta:float",
    "LSTMOptions": (
        "fused_activation_function:ActivationFunctionType cell_clip:float proj_clip:float kernel_type:LSTMKernelType "
        "asymmetric_quantize_inputs:bool"
    ),
    "UnidirectionalSequenceLSTMOptions": (
        "fused_activation_function:ActivationFunctionType cell_clip:float proj_clip:float time_major:bool "
        "asymmetric_quantize_inputs:bool diagonal_recurrent_tensors:bool"
    ),
    "BidirectionalSequenceLSTMOptions": (
        "fused_activation_function:ActivationFunctionType cell_clip:float proj_clip:float merge_outputs:bool time_major:bool=1 "
        "asymmetric_quantize_inputs:bool"
    ),
    "ResizeBilinearOptions": "new_height:int new_width:int align_corners:bool half_pixel_centers:bool",
    "ResizeNearestNeighborOptions": "align_corners:bool half_pixel_centers:bool",
    "CallOptions": "subgraph:uint",
    "ReshapeOptions": "new_shape:[int]",
    "SkipGramOptions": "ngram_size:int max_skip_size:int include_all_ngrams:bool",
    "SpaceToDepthOptions": "block_size:int",
    "DepthToSpaceOptions": "block_size:int",
    "SubOptions": "fused_activation_function:ActivationFunctionType pot_scale_int16:bool=1",
    "DivOptions": "fused_activation_function:ActivationFunctionType",
    "EmbeddingLookupSparseOptions": "combiner:CombinerType",
    "GatherOptions": "axis:int batch_dims:int",
    "ReducerOptions": "keep_dims:bool",
    "SqueezeOptions": "squeeze_dims:[int]",
    "SplitOptions": "num_splits:int",
    "SplitVOptions": "num_splits:int",
    "StridedSliceOptions": "begin_mask:int end_mask:int ellipsis_mask:int new_axis_mask:int shrink_axis_mask:int offset:bool",
    "CastOptions": "in_data_type:TensorType out_data_type:TensorType",
    "ArgMaxOptions": "output_type:TensorType",
    "ArgMinOptions": "output_type:TensorType",
    "TransposeConvOptions": (
        "padding:Padding stride_w:int stride_h:int fused_activation_function:ActivationFunctionType quantized_bias_type:TensorType"
    ),
    "SparseToDenseOptions": "validate_indices:bool",
    "ShapeOptions": "out_type:TensorType",
    "FakeQuantOptions": "min:float max:float num_bits:int narrow_range:bool",
    "PackOptions": "values_count:int axis:int",
    "OneHotOptions": "axis:int",
    "UnpackOptions": "num:int axis:int",
    "LeakyReluOptions": "alpha:float",
    "MirrorPadOptions": "mode:MirrorPadMode",
    "UniqueOptions": "idx_out_type:TensorType=2",
    "ReverseSequenceOptions": "seq_dim:int batch_dim:int",
    "IfOptions": "then_subgraph_index:int else_subgraph_index:int",
    "CallOnceOptions": "init_subgraph_index:int",
    "WhileOptions": "cond_subgraph_index:int body_subgraph_index:int",
    "BatchMatMulOptions": "adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool",
    "CumsumOptions": "exclusive:bool reverse:bool",
    "HashtableOptions": "table_id:int key_dtype:TensorType value_dtype:TensorType",
    "VarHandleOptions": "container:string shared_name:string",
    "RandomOptions": "seed:long seed2:long",
    "BucketizeOptions": "boundaries:[float]",
    "GeluOptions": "approximate:bool",
    "ReduceWindowOptions": "reduce_function:ReduceWindowFunction",
    "OperatorCode": "deprecated_builtin_code:byte custom_code:string version:int=1 builtin_code:BuiltinOperator",
    "StableHLOCompositeOptions": (
        "name:string decomposition_subgraph_index:int composite_attributes:[ubyte] "
        "composite_attributes_format:CustomOptionsFormat version:int"
    ),
    "Operator": (
        "opcode_index:uint inputs:[int] outputs:[int] builtin_options:BuiltinOptions custom_options:[ubyte] "
        "custom_options_format:CustomOptionsFormat mutating_variable_inputs:[bool] intermediates:[int] "
        "large_custom_options_offset:ulong large_custom_options_size:ulong builtin_options_2:BuiltinOptions2 "
        "debug_metadata_index:int=-1"
    ),
    "SubGraph": "tensors:[Tensor] inputs:[int] outputs:[int] operators:[Operator] name:string debug_metadata_index:int=-1",
    "Buffer": "data:[ubyte]@16 offset:ulong size:ulong",
    "ExternalBufferGroup": "name:string",
    "ExternalBuffer": "id:uint group:uint offset:ulong length:ulong packing:string",
    "Metadata": "name:string buffer:uint",
    "TensorMap": "name:string tensor_index:uint",
    "SignatureDef": "inputs:[TensorMap] outputs:[TensorMap] signature_key:string deprecated_tag:string subgraph_index:uint",
    "Model": (
        "version:uint operator_codes:[OperatorCode] subgraphs:[SubGraph] description:string buffers:[Buffer] "
        "metadata_buffer:[int] metadata:[Metadata] signature_defs:[SignatureDef] external_buffer_groups:[ExternalBufferGroup] "
        "external_buffers:[ExternalBuffer]"
    ),
}

TFLITE = Schema("TensorFlow Lite", b"TFL3", "Model", enums=_ENUMS, unions=_UNIONS, structs={}, tables=_TABLES)
