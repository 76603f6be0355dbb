"""Which rules take part: those that make quantized or fused operators where a provider prefers these, else those for floats.

    QuantizeLinear (Q), DequantizeLinear (DQ)         a provider prefers QLinearConv          no provider does

    Q(Conv(DQ(x), DQ(w)))                             QLinearConv(x, w)                       Q(Conv(DQ(x), w as floats))
    QLinearConv(x, w)                                 as it is                                Q(Conv(DQ(x), w as floats))

A provider that prefers QuantizeLinear and DequantizeLinear themselves, as compilers that know them do, gets models as they are.
What a provider computes where it stores a result (an activation, a residual) stays a node of its own, unless one prefers the
operators of com.microsoft that do both. A model that is optimized for a file gets quantized and fused operators: who loads it
decides anew. See decisions 10 and 16.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

__all__ = ["APART", "FLOATS", "FUSED", "OPTIONAL", "QUANTIZED", "SEPARATED", "UNSAVED", "Participation", "participation"]

QUANTIZED: Mapping[str, frozenset[str]] = {
    "fuse_dynamic_quantize_matmul": frozenset(["DynamicQuantizeMatMul"]),
    "fuse_quantized_binary": frozenset(["QLinearAdd", "QLinearMul"]),
    "fuse_quantized_concat": frozenset(["QLinearConcat"]),
    "fuse_quantized_conv": frozenset(["QLinearConv"]),
    "fuse_quantized_gemm": frozenset(["QGemm"]),
    "fuse_quantized_gemm_to_float": frozenset(["QGemm"]),
    "fuse_quantized_matmul": frozenset(["QLinearMatMul"]),
    "fuse_quantized_matmul_to_float": frozenset(["MatMulIntegerToFloat"]),
    "fuse_quantized_unary": frozenset(
        ["QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"]
    ),
    "fuse_quantized_where": frozenset(["QLinearWhere"]),
}
"""Rule -> the operators that it makes: it takes part where a provider prefers one of them."""

_SKIP_NORMALIZATIONS = frozenset(["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
FUSED: Mapping[str, frozenset[str]] = {
    "fuse_attention_projections": frozenset(["Attention"]),
    "fuse_bias_gelu": frozenset(["BiasGelu", "FastGelu"]),
    "fuse_conv_activation": frozenset(["FusedConv"]),
    "fuse_conv_sum": frozenset(["FusedConv"]),
    "fuse_embedding": frozenset(["EmbedLayerNormalization"]),
    "fuse_gemm_activation": frozenset(["FusedGemm"]),
    "fuse_matmul_scale": frozenset(["FusedMatMul"]),
    "fuse_matmul_transpose": frozenset(["FusedMatMul"]),
    "fuse_pool_flatten": frozenset(["ReduceMean"]),
    "fuse_skip_normalization": _SKIP_NORMALIZATIONS,
    "fuse_skip_normalization_biased_sum": _SKIP_NORMALIZATIONS,
    "fuse_skip_normalization_sum": _SKIP_NORMALIZATIONS,
    "turn_vector_product": frozenset(["FusedMatMul"]),
}
"""Rule -> the fused operators that it makes: it takes part where a provider prefers one of them."""

_QUERIES = frozenset(["GroupQueryAttention"])
APART: Mapping[str, frozenset[str]] = {
    "decompose_stft": frozenset(["STFT"]),
    "expand_attention": frozenset(["Attention"]),
    "expand_embedding": frozenset(["EmbedLayerNormalization"]),
    "expand_embedding_mask": frozenset(["EmbedLayerNormalization"]),
    "expand_multi_head_attention": frozenset(["MultiHeadAttention"]),
    "expand_multi_head_attention_cache": frozenset(["MultiHeadAttention"]),
    "expand_rotary_embedding": frozenset(["RotaryEmbedding"]) | _QUERIES,
}
"""Rule -> the operators that it takes apart, or their users: it takes no part where a provider prefers one, nor in a file."""

_AROUND = frozenset(
    [
        "drop_dequantization_before_argmax",
        "propagate_dequantization",
        "propagate_quantization",
        "quantize_bias",
        "quantize_weights",
        "quantize_where_scalar",
        "skip_requantization_of_moves",
    ]
)
"""Rules that bring integers to more operators: they take part where a provider prefers an operator that rules make."""

FLOATS = frozenset(
    [
        "defer_scales",
        "dequantize_before_pool",
        "expand_dynamic_quantization",
        "expand_quantized",
        "fold_dequantization",
        "pool_before_quantization",
    ]
)
"""What takes part where no provider prefers a quantized operator."""

UNSAVED: Mapping[str, frozenset[str]] = {
    "fuse_bias_softmax": frozenset(["BiasSoftmax"]),
    "fuse_matmul_activation": frozenset(["FusedMatMulActivation"]),
    "fuse_nbits_mlp": frozenset(["MatMulNBitsMlp"]),
    "fuse_nbits_qkv": frozenset(["MatMulNBitsQkv"]),
    "fuse_query_norm": _QUERIES,
    "fuse_query_rotation": _QUERIES,
    "pack_query_projections": _QUERIES,
}
"""Rule or pass -> the fused operators that it makes, which onnxruntime's CPU provider lacks or does not take so: it takes part
where a provider prefers one, never in files."""

SEPARATED = {"copy_dequantization": frozenset(["DequantizeLinear", "QuantizeLinear"])}
"""Pass -> the operators that it separates: it takes part where a provider prefers one of them as it is."""

_ASKED_FOR = {
    "approximate_gelu": ("optimization.enable_gelu_approximation", "1"),
    "drop_quantization_pairs": ("session.enable_quant_qdq_cleanup", "1"),
    "fuse_nbits_matmul": ("session.enable_dq_matmulnbits_fusion", "1"),
    "quantize_as_uint8": ("session.qdqisint8allowed", "0"),
    "shorten_cast_chains": ("optimization.enable_cast_chain_elimination", "1"),
    "store_weights_as_uint8": ("session.x64quantprecision", "1"),
}
"""Rule or pass -> the session config entry, by onnxruntime's names, and what it says to ask for it."""

_ASKED_OFF = {
    "session.disable_double_qdq_remover": frozenset(["merge_quantizations"]),
    "session.disable_qdq_constant_folding": frozenset(["fold_dequantization"]),
    "session.disable_quant_qdq": _AROUND | frozenset(QUANTIZED) | frozenset(["copy_dequantization", "skip_requantization"]),
}
"""Session config entry that says "1" -> what it leaves out."""

_FUSED_OPERATORS = frozenset(name for made in (*FUSED.values(), *UNSAVED.values()) for name in made)
OPTIONAL = FLOATS | frozenset(_ASKED_FOR) | frozenset(FUSED) | frozenset(SEPARATED) | frozenset(UNSAVED)
"""Rules and passes that take part only where `optimize` is told so by name."""


@dataclasses.dataclass(frozen=True, slots=True)
class Participation:
    """Rules and passes by name, for `optimize`."""

    enabled: frozenset[str]
    """Of `OPTIONAL` those that take part."""
    disabled: frozenset[str]
    """What does not."""


def participation(preferred: Collection[str] | None, entries: Mapping[str, str]) -> Participation:
    """What takes part.

    Args:
        preferred: the quantized and fused operators that providers prefer, by name without domain; None where the model goes to a
            file.
        entries: session config entries.
    """
    enabled = {rule for rule, (key, text) in _ASKED_FOR.items() if entries.get(key) == text}
    enabled |= {rule for rule, made in FUSED.items() if preferred is None or not made.isdisjoint(preferred)}
    enabled |= {name for name, wanted in (*SEPARATED.items(), *UNSAVED.items()) if not wanted.isdisjoint(preferred or ())}
    disabled = {name for key, names in _ASKED_OFF.items() if entries.get(key) == "1" for name in names}
    disabled |= {rule for rule, read in APART.items() if preferred is None or not read.isdisjoint(preferred)}
    if preferred is not None:
        unwanted = {rule for rule, made in QUANTIZED.items() if made.isdisjoint(preferred)}
        disabled |= unwanted | (_AROUND if len(unwanted) == len(QUANTIZED) else frozenset())
        enabled |= FLOATS if frozenset(preferred) <= _FUSED_OPERATORS else frozenset()
    return Participation(frozenset(enabled), frozenset(disabled))
