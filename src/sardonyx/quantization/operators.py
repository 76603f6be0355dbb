"""The rules that make quantized operators of float operators between Q and DQ."""

from __future__ import annotations

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.quantize.drop_clip_before_quantization import (
    DROP_CLIP_BEFORE_QUANTIZATION,
    DROP_RELU_BEFORE_QUANTIZATION,
)
from sardonyx.optimize.rules.quantize.fuse_quantized_concat import FUSE_QUANTIZED_CONCAT
from sardonyx.optimize.rules.quantize.fuse_quantized_conv import FUSE_QUANTIZED_CONV
from sardonyx.optimize.rules.quantize.fuse_quantized_elementwise import FUSE_QUANTIZED_BINARY, FUSE_QUANTIZED_UNARY
from sardonyx.optimize.rules.quantize.fuse_quantized_gemm import FUSE_QUANTIZED_GEMM, FUSE_QUANTIZED_GEMM_TO_FLOAT
from sardonyx.optimize.rules.quantize.fuse_quantized_matmul import FUSE_QUANTIZED_MATMUL, FUSE_QUANTIZED_MATMUL_TO_FLOAT
from sardonyx.optimize.rules.quantize.fuse_quantized_where import FUSE_QUANTIZED_WHERE
from sardonyx.optimize.rules.quantize.skip_requantization import SKIP_REQUANTIZATION, SKIP_REQUANTIZATION_OF_MOVES

__all__ = ["OPERATOR_RULES"]

OPERATOR_RULES: tuple[Rule, ...] = (
    DROP_CLIP_BEFORE_QUANTIZATION,
    DROP_RELU_BEFORE_QUANTIZATION,
    SKIP_REQUANTIZATION,
    SKIP_REQUANTIZATION_OF_MOVES,
    FUSE_QUANTIZED_CONV,
    FUSE_QUANTIZED_GEMM,
    FUSE_QUANTIZED_MATMUL,
    FUSE_QUANTIZED_BINARY,
    FUSE_QUANTIZED_UNARY,
    FUSE_QUANTIZED_CONCAT,
    FUSE_QUANTIZED_WHERE,
    FUSE_QUANTIZED_GEMM_TO_FLOAT,
    FUSE_QUANTIZED_MATMUL_TO_FLOAT,
)
"""In the order in which they are tried; what they leave stays between Q and DQ."""
