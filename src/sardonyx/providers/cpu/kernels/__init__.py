"""How the CPU provider lowers operators, by family: a family is imported when the first node of one of its operators is claimed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from sardonyx.forks import without_fork
from sardonyx.providers.cpu.expressions import ELEMENTWISE, MICROSOFT_ELEMENTWISE
from sardonyx.providers.cpu.quantization import QUANTIZATION

__all__ = ["FAMILIES", "load_all", "load_family"]

_NHWC, _ROWS, _TFLITE = "sardonyx.nhwc.", "sardonyx.rows.", "sardonyx.tflite."
_CONTRIB, _ML = "com.microsoft.", "ai.onnx.ml."

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "attention": ("Attention",),
    "batch_norm": ("BatchNormalization", f"{_NHWC}BatchNormalization"),
    "constant": ("ConstantOfShape", "EyeLike", "Range"),
    "control_flow": ("If", "Loop", "Scan"),
    "conv": (f"{_NHWC}Conv",),
    "conv_transpose": (f"{_NHWC}ConvTranspose",),
    "dynamic_quantize": ("DynamicQuantizeLinear",),
    "elementwise": tuple(
        name
        for name in (*ELEMENTWISE, *(f"{_CONTRIB}{name}" for name in sorted(MICROSOFT_ELEMENTWISE)))
        if name.removeprefix(_CONTRIB) not in QUANTIZATION
    ),
    "experts.moe": (f"{_CONTRIB}MoE", f"{_CONTRIB}QMoE"),
    "gather": ("Gather", "GatherElements", "GatherND", "OneHot", "Scatter", "ScatterElements", "ScatterND"),
    "group_norm": (f"{_NHWC}GroupNormalization",),
    "group_query": (f"{_CONTRIB}GroupQueryAttention",),
    "hybrid.linear_attention": ("LinearAttention", f"{_CONTRIB}LinearAttention"),
    "images.affine_grid": ("AffineGrid",),
    "images.col2im": ("Col2Im",),
    "images.deform_conv": ("DeformConv",),
    "images.detection": (f"{_TFLITE}DetectionPostProcess",),
    "images.grid": ("GridSample", f"{_CONTRIB}GridSample"),
    "images.lrn": ("LRN",),
    "images.plane_conv": ("Conv",),
    "images.plane_pool": ("AveragePool", "LpPool"),
    "images.pool_places": ("MaxPool",),
    "images.roi": ("MaxRoiPool", "RoiAlign"),
    "images.unpool": ("MaxUnpool",),
    "integer_matmul": (
        "MatMulInteger",
        "QLinearMatMul",
        f"{_CONTRIB}DynamicQuantizeMatMul",
        f"{_CONTRIB}MatMulIntegerToFloat",
        f"{_CONTRIB}QGemm",
    ),
    "matmul": ("Gemm", "MatMul"),
    "matrices.det": ("Det",),
    "matrices.inverse": (f"{_CONTRIB}Inverse",),
    "ml_feature": (f"{_ML}LabelEncoder", f"{_ML}Normalizer", f"{_ML}OneHotEncoder"),
    "ml_linear": (f"{_ML}SVMClassifier", f"{_ML}SVMRegressor"),
    "ml_tree": (f"{_ML}TreeEnsemble", f"{_ML}TreeEnsembleClassifier", f"{_ML}TreeEnsembleRegressor"),
    "moves.reverse": ("ReverseSequence",),
    "moves.tensor_scatter": ("TensorScatter",),
    "nbits": (f"{_CONTRIB}MatMulNBits",),
    "normalize": (
        "GroupNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "LpNormalization",
        "RMSNormalization",
        "SimplifiedLayerNormalization",
        f"{_NHWC}InstanceNormalization",
    ),
    "paged_attention": (f"{_CONTRIB}PagedAttention",),
    "pool": (
        f"{_CONTRIB}NhwcMaxPool",
        *(f"{_NHWC}{name}" for name in ("AveragePool", "LpPool", "MaxPool", "QLinearAveragePool", "QLinearGlobalAveragePool")),
    ),
    "qconv": (f"{_NHWC}ConvInteger", f"{_NHWC}QLinearConv"),
    "quantized.bnb4": (f"{_CONTRIB}MatMulBnb4",),
    "quantized.gather_blocks": (f"{_CONTRIB}GatherBlockQuantized",),
    "quantized.global_mean": (f"{_CONTRIB}QLinearGlobalAveragePool",),
    "quantized.linear": tuple(f"{domain}{name}" for domain in ("", _CONTRIB) for name in QUANTIZATION),
    "reduce": (
        "ArgMax",
        "ArgMin",
        "CumProd",
        "CumSum",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
        f"{_NHWC}GlobalAveragePool",
        f"{_NHWC}GlobalMaxPool",
    ),
    "reshape": (
        "BitCast",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Identity",
        "Reshape",
        "SpaceToDepth",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
        f"{_NHWC}DepthToSpace",
        f"{_NHWC}SpaceToDepth",
    ),
    "resize": ("Resize", "Upsample"),
    "rnn": ("GRU", "LSTM", "RNN"),
    "rotary": ("RotaryEmbedding",),
    "rows": (f"{_ROWS}Rows",),
    "select": ("Compress", "NonZero"),
    "signal.random": ("Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    "signal.spectrum": ("DFT", "STFT"),
    "signal.windows": ("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"),
    "slice": ("CenterCropPad", "Concat", "Pad", "Slice", "Split", "Trilu"),
    "softmax": ("Hardmax", "LogSoftmax", "Softmax"),
    "sort": ("NonMaxSuppression", "Unique"),
    "top_k": ("TopK",),
}
"""Module, below this package -> the operators that it registers, each with its domain where that is not ai.onnx."""

_OWNERS = {operator: family for family, operators in FAMILIES.items() for operator in operators}


def load_family(domain: str, op_type: str) -> bool:
    """Import the family of an operator; return whether there is one."""
    family = _OWNERS.get(f"{domain}.{op_type}" if domain else op_type)
    if family is None:
        return False
    with without_fork():
        importlib.import_module(f"{__name__}.{family}")
    return True


def load_all() -> None:
    """Import all families."""
    with without_fork():
        for family in FAMILIES:
            importlib.import_module(f"{__name__}.{family}")
