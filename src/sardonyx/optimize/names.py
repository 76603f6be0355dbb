"""The names that ONNX Runtime has for optimizations, so that its `disabled_optimizers` work here.

    own_names(["ConvBNFusion", "fuse_gelu"])          {"fuse_conv_batchnorm", "fuse_gelu"}

One name of ONNX Runtime's may be part of a pass here, which is left out as a whole then; `docs/optimizer.md` says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sardonyx.errors import InvalidArgument

__all__ = ["ELSEWHERE", "NAMES", "own_names"]

_IDENTITIES = ("eliminate_identities",)
_LAYER_NORM = ("fuse_layer_norm", "fuse_layer_norm_bias", "fuse_layer_norm_unscaled")
_SKIP_NORM = ("fuse_skip_normalization", "fuse_skip_normalization_biased_sum", "fuse_skip_normalization_sum")
_GELU = ("fuse_gelu", "fuse_gelu_tanh")
_CLIP_QUANTIZATION = ("drop_clip_before_quantization", "drop_relu_before_quantization")
_LEVEL_1_RULES: Mapping[str, tuple[str, ...]] = {
    "CastChainElimination": ("shorten_cast_chains",),
    "CastElimination": _IDENTITIES,
    "ConvAddFusion": ("fuse_conv_add",),
    "ConvBNFusion": ("fuse_conv_batchnorm",),
    "ConvMulFusion": ("fuse_conv_multiply",),
    "DivMulFusion": ("fuse_divide_multiply",),
    "EliminateDropout": _IDENTITIES,
    "EliminateIdentity": _IDENTITIES,
    "EliminateSlice": _IDENTITIES,
    "ExpandElimination": _IDENTITIES,
    "FuseReluClip": ("fuse_relu_clip",),
    "GemmSumFusion": ("fuse_matmul_add",),
    "GemmTransposeFusion": ("fuse_gemm_transpose",),
    "LabelEncoderFusion": ("fuse_label_encoders",),
    "MatMul_BatchNormalization_Fusion": ("fuse_matmul_batchnorm",),
    "NoopElimination": _IDENTITIES,
    "NotWhereFusion": ("swap_where_branches",),
    "Pad_Fusion": ("fuse_pad",),
    "PreShapeNodeElimination": ("skip_before_shape",),
    "UnsqueezeElimination": ("fold_constants",),
}
_LEVEL_2_RULES: Mapping[str, tuple[str, ...]] = {
    "ClipQuantFusion": ("drop_clip_before_quantization",),
    "ClipQuantRewrite": ("drop_clip_before_quantization",),
    "ReluQuantFusion": ("drop_relu_before_quantization",),
    "ReluQuantRewrite": ("drop_relu_before_quantization",),
}
_QUANTIZED = (
    "drop_dequantization_before_argmax",
    "fuse_nbits_matmul",
    "fuse_quantized_binary",
    "fuse_quantized_concat",
    "fuse_quantized_conv",
    "fuse_quantized_gemm",
    "fuse_quantized_gemm_to_float",
    "fuse_quantized_matmul",
    "fuse_quantized_matmul_to_float",
    "fuse_quantized_unary",
    "fuse_quantized_where",
    "skip_requantization_of_moves",
)


def _union(rules: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The rules of a RuleBasedTransformer, without the passes that do more than its rules."""
    return tuple(sorted({name for names in rules.values() for name in names} - {"eliminate_identities", "fold_constants"}))


NAMES: Mapping[str, tuple[str, ...]] = {
    **_LEVEL_1_RULES,
    **_LEVEL_2_RULES,
    "AttentionFusion": ("fuse_attention", "fuse_attention_cache", "fuse_attention_groups", "fuse_attention_projections"),
    "Avx2WeightS8ToU8Transformer": ("store_weights_as_uint8",),
    "BiasGeluFusion": ("fuse_bias_gelu",),
    "BiasSkipLayerNormFusion": _SKIP_NORM,
    "BiasSoftmaxFusion": ("fuse_bias_softmax",),
    "CommonSubexpressionElimination": ("eliminate_common_subexpressions",),
    "ConcatSliceElimination": ("drop_slice_of_concat",),
    "ConstantFolding": ("fold_constants",),
    "ConstantSharing": ("eliminate_common_subexpressions",),
    "ConvActivationFusion": ("fuse_conv_activation",),
    "ConvAddActivationFusion": ("fuse_conv_activation", "fuse_conv_sum"),
    "DQMatMulNBitsFusion": ("fuse_nbits_matmul",),
    "DoubleQDQPairsRemover": ("merge_quantizations",),
    "DynamicQuantizeMatMulFusion": ("fuse_dynamic_quantize_matmul",),
    "EmbedLayerNormFusion": ("fuse_embedding",),
    "EnsureUniqueDQForNodeUnit": ("copy_dequantization",),
    "FastGeluFusion": ("fuse_gelu_tanh",),
    "FreeDimensionOverrideTransformer": ("override_dimensions",),
    "GatherSliceToSplitFusion": ("split_parts",),
    "GatherToSliceFusion": ("fuse_gather_range",),
    "GeluApproximation": ("approximate_gelu",),
    "GeluFusion": ("fuse_gelu",),
    "GeluFusionL1": ("fuse_gelu",),
    "GeluFusionL2": ("fuse_gelu",),
    "GemmActivationFusion": ("fuse_gemm_activation",),
    "GroupQueryAttentionFusion": ("fuse_query_rotation", "pack_query_projections"),
    "GroupQueryAttentionPreNormFusion": ("fuse_query_norm",),
    "IdenticalChildrenConsolidation": ("eliminate_common_subexpressions",),
    "LayerNormFusion": _LAYER_NORM,
    "LayerNormFusionL1": _LAYER_NORM,
    "LayerNormFusionL2": _LAYER_NORM,
    "Level1_RuleBasedTransformer": _union(_LEVEL_1_RULES),
    "Level2_RuleBasedTransformer": _CLIP_QUANTIZATION,
    "MatMulActivationFusion": ("fuse_matmul_activation",),
    "MatMulAddFusion": ("fuse_matmul_add",),
    "MatMulIntegerToFloatFusion": ("fuse_matmul_integer", "fuse_matmul_integer_bias"),
    "MatMulNBitsFusion": ("fuse_nbits_bias",),
    "MatMulNBitsMlpFusion": ("fuse_nbits_mlp",),
    "MatMulNBitsQkvFusion": ("fuse_nbits_qkv",),
    "MatMulScaleFusion": ("fold_gemm_scales", "fuse_matmul_multiply", "fuse_matmul_scale"),
    "MatmulTransposeFusion": ("fuse_matmul_transpose",),
    "QuickGeluFusion": ("fuse_swish",),
    "QDQFinalCleanupTransformer": ("drop_quantization_pairs", "skip_requantization"),
    "QDQPropagationTransformer": ("propagate_dequantization", "propagate_quantization"),
    "QDQS8ToU8Transformer": ("quantize_as_uint8",),
    "QDQSelectorActionTransformer": _QUANTIZED,
    "ReshapeFusion": ("merge_reshapes", "merge_squeezes", "merge_unsqueezes", "simplify_reshapes"),
    "SkipLayerNormFusion": _SKIP_NORM,
    "SliceConcatToSpaceToDepthFusion": ("fuse_conv_gather", "fuse_space_to_depth"),
    "SimplifiedLayerNormFusion": ("fuse_rms_norm", "fuse_rms_norm_unscaled"),
    "STFTDecomposition": ("decompose_stft",),
    "TransposeOptimizer": ("merge_transposes", "move_transposes"),
    "TransposeOptimizer_CPUExecutionProvider": ("move_transposes",),
    "WeightBiasQuantization": ("quantize_bias", "quantize_weights"),
    "WhereDummyDq": ("quantize_where_scalar",),
}
"""ONNX Runtime's name -> the rules and passes here that do the same, or of which it is a part."""

_TRAINING = "it is for training, and in no default list of ONNX Runtime's"
ELSEWHERE: Mapping[str, str] = {
    "BiasDropoutFusion": "Dropout, which it is about, does nothing in inference and goes",
    "FuseFp16InitializerToFp32NodeTransformer": "constant folding does it",
    "InsertCastTransformer": "half types are widened once a model is partitioned; session.keep_narrow_floats leaves them",
    "IsInfReduceSumFusion": _TRAINING,
    "MemcpyTransformer": "the partitioner puts copies in, which are always needed",
    "NchwcTransformer": "the CPU provider packs channels when it compiles",
    "NhwcTransformer": "the layout step converts what a provider claims",
    "PropagateCastOps": _TRAINING,
    "UpstreamGather": _TRAINING,
    "UpstreamReshape": _TRAINING,
}
"""ONNX Runtime's name -> why there is nothing of it to leave out: who does it, or why nobody has to."""


def own_names(names: Iterable[str]) -> frozenset[str]:
    """The rules and passes that names of this package, or of ONNX Runtime's, stand for; what neither knows stays as it is.

    Raises:
        InvalidArgument: `names` is one text instead of several.
    """
    if isinstance(names, str):
        raise InvalidArgument(f"optimizers are named in a list, got the text {names!r}")
    return frozenset(own for name in names if name not in ELSEWHERE for own in NAMES.get(name, (name,)))
