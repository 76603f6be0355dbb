"""Rules about quantized operators, in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.quantize.defer_scales import DEFER_SCALES
from sardonyx.optimize.rules.quantize.dequantize_after_moves import (
    DEQUANTIZE_AFTER_CONCAT,
    DEQUANTIZE_AFTER_MOVE,
    DEQUANTIZE_AFTER_PAD,
    QUANTIZE_BEFORE_CONCAT,
)
from sardonyx.optimize.rules.quantize.dequantize_scaled_weights import DEQUANTIZE_SCALED_WEIGHTS
from sardonyx.optimize.rules.quantize.drop_clip_before_quantization import (
    DROP_CLIP_BEFORE_QUANTIZATION,
    DROP_RELU_BEFORE_QUANTIZATION,
)
from sardonyx.optimize.rules.quantize.drop_dequantization_before_argmax import DROP_DEQUANTIZATION_BEFORE_ARGMAX
from sardonyx.optimize.rules.quantize.drop_quantization_pairs import DROP_QUANTIZATION_PAIRS
from sardonyx.optimize.rules.quantize.expand_dynamic_quantization import EXPAND_DYNAMIC_QUANTIZATION
from sardonyx.optimize.rules.quantize.expand_fp_q4 import EXPAND_FP_Q4
from sardonyx.optimize.rules.quantize.expand_nbits_projections import (
    EXPAND_NBITS_MLP,
    EXPAND_NBITS_MLP_SUM,
    EXPAND_NBITS_QKV,
    EXPAND_NBITS_QKV_SUM,
)
from sardonyx.optimize.rules.quantize.expand_quantized import EXPAND_QUANTIZED
from sardonyx.optimize.rules.quantize.expand_quantized_attention import EXPAND_QUANTIZED_ATTENTION, EXPAND_QUANTIZED_ATTENTION_CACHE
from sardonyx.optimize.rules.quantize.expand_quantized_embedding import (
    EXPAND_QUANTIZED_EMBEDDING,
    EXPAND_QUANTIZED_EMBEDDING_MASK,
)
from sardonyx.optimize.rules.quantize.expand_quantized_lstm import (
    EXPAND_QUANTIZED_LSTM,
    EXPAND_QUANTIZED_LSTM_OUTPUT,
    EXPAND_QUANTIZED_LSTM_STATE,
)
from sardonyx.optimize.rules.quantize.fuse_dynamic_quantize_matmul import FUSE_DYNAMIC_QUANTIZE_MATMUL
from sardonyx.optimize.rules.quantize.fuse_matmul_integer import FUSE_MATMUL_INTEGER, FUSE_MATMUL_INTEGER_BIAS
from sardonyx.optimize.rules.quantize.fuse_narrow_weights import FUSE_NARROW_WEIGHTS
from sardonyx.optimize.rules.quantize.fuse_nbits_bias import FUSE_NBITS_BIAS
from sardonyx.optimize.rules.quantize.fuse_nbits_matmul import FUSE_NBITS_MATMUL
from sardonyx.optimize.rules.quantize.fuse_quantized_concat import FUSE_QUANTIZED_CONCAT
from sardonyx.optimize.rules.quantize.fuse_quantized_conv import FUSE_QUANTIZED_CONV
from sardonyx.optimize.rules.quantize.fuse_quantized_elementwise import FUSE_QUANTIZED_BINARY, FUSE_QUANTIZED_UNARY
from sardonyx.optimize.rules.quantize.fuse_quantized_gemm import FUSE_QUANTIZED_GEMM, FUSE_QUANTIZED_GEMM_TO_FLOAT
from sardonyx.optimize.rules.quantize.fuse_quantized_matmul import FUSE_QUANTIZED_MATMUL, FUSE_QUANTIZED_MATMUL_TO_FLOAT
from sardonyx.optimize.rules.quantize.fuse_quantized_where import FUSE_QUANTIZED_WHERE, QUANTIZE_WHERE_SCALAR
from sardonyx.optimize.rules.quantize.gather_before_dequantization import GATHER_BEFORE_DEQUANTIZATION
from sardonyx.optimize.rules.quantize.merge_quantizations import MERGE_QUANTIZATIONS
from sardonyx.optimize.rules.quantize.pool_before_quantization import DEQUANTIZE_BEFORE_POOL, POOL_BEFORE_QUANTIZATION
from sardonyx.optimize.rules.quantize.propagate_quantization import PROPAGATE_DEQUANTIZATION, PROPAGATE_QUANTIZATION
from sardonyx.optimize.rules.quantize.quantize_as_uint8 import QUANTIZE_AS_UINT8
from sardonyx.optimize.rules.quantize.quantize_weights import QUANTIZE_BIAS, QUANTIZE_WEIGHTS
from sardonyx.optimize.rules.quantize.skip_requantization import SKIP_REQUANTIZATION, SKIP_REQUANTIZATION_OF_MOVES
from sardonyx.optimize.rules.quantize.sort_nbits_groups import SORT_NBITS_GROUPS

__all__ = ["BASIC", "DECOMPOSITIONS", "EXTENDED", "LATE_FUSIONS"]

DECOMPOSITIONS: tuple[Rule, ...] = (
    EXPAND_FP_Q4,
    EXPAND_NBITS_MLP,
    EXPAND_NBITS_MLP_SUM,
    EXPAND_NBITS_QKV,
    EXPAND_NBITS_QKV_SUM,
    EXPAND_QUANTIZED_ATTENTION,
    EXPAND_QUANTIZED_ATTENTION_CACHE,
    EXPAND_QUANTIZED_EMBEDDING,
    EXPAND_QUANTIZED_EMBEDDING_MASK,
    EXPAND_QUANTIZED_LSTM,
    EXPAND_QUANTIZED_LSTM_OUTPUT,
    EXPAND_QUANTIZED_LSTM_STATE,
)
"""Rules that take fused operators apart, at level BASIC before all others."""

BASIC: tuple[Rule, ...] = (
    SORT_NBITS_GROUPS,
    DEQUANTIZE_SCALED_WEIGHTS,
    MERGE_QUANTIZATIONS,
    QUANTIZE_AS_UINT8,
    FUSE_MATMUL_INTEGER,
    FUSE_MATMUL_INTEGER_BIAS,
    EXPAND_QUANTIZED,
    EXPAND_DYNAMIC_QUANTIZATION,
    DEFER_SCALES,
    GATHER_BEFORE_DEQUANTIZATION,
    POOL_BEFORE_QUANTIZATION,
    DEQUANTIZE_BEFORE_POOL,
    FUSE_NBITS_MATMUL,
)
"""The rules of level BASIC."""

EXTENDED: tuple[Rule, ...] = (
    DROP_CLIP_BEFORE_QUANTIZATION,
    DROP_RELU_BEFORE_QUANTIZATION,
    DROP_DEQUANTIZATION_BEFORE_ARGMAX,
    DROP_QUANTIZATION_PAIRS,
    SKIP_REQUANTIZATION,
    SKIP_REQUANTIZATION_OF_MOVES,
    FUSE_QUANTIZED_CONV,
    FUSE_QUANTIZED_MATMUL,
    FUSE_QUANTIZED_MATMUL_TO_FLOAT,
    FUSE_QUANTIZED_GEMM,
    FUSE_QUANTIZED_GEMM_TO_FLOAT,
    FUSE_QUANTIZED_BINARY,
    FUSE_QUANTIZED_UNARY,
    FUSE_QUANTIZED_CONCAT,
    FUSE_QUANTIZED_WHERE,
    FUSE_DYNAMIC_QUANTIZE_MATMUL,
    FUSE_NBITS_BIAS,
    QUANTIZE_WEIGHTS,
    QUANTIZE_BIAS,
    QUANTIZE_WHERE_SCALAR,
    PROPAGATE_DEQUANTIZATION,
    PROPAGATE_QUANTIZATION,
    DEQUANTIZE_AFTER_MOVE,
    DEQUANTIZE_AFTER_PAD,
    DEQUANTIZE_AFTER_CONCAT,
    QUANTIZE_BEFORE_CONCAT,
)
"""The rules of level EXTENDED."""

LATE_FUSIONS: tuple[Rule, ...] = (FUSE_NARROW_WEIGHTS,)
"""Rules that make products of what no product of integers was made of."""
