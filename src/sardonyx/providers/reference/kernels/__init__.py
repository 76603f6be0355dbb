"""Reference kernels by family: a family is imported when the first kernel of one of its operators is looked for."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping

from sardonyx.forks import without_fork

__all__ = ["FAMILIES", "load_all", "load_family"]

FAMILIES: Mapping[str, str] = {
    "activation": (
        "Celu Clip Elu Gelu HardSigmoid HardSwish LeakyRelu Mish PRelu Relu Selu Shrink Sigmoid Softplus Softsign "
        "SwiGLU Swish ThresholdedRelu"
    ),
    "attention": "Attention RotaryEmbedding ai.onnx.preview.FlexAttention",
    "batch_norm": "BatchNormalization",
    "binary": (
        "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean "
        "Min Mod Mul Or Pow Sub Sum Where Xor"
    ),
    "cast": "BitCast Cast CastLike",
    "constant": "Constant ConstantOfShape EyeLike Identity Range Shape Size",
    "control_flow": "If Loop Scan SequenceMap",
    "conv": "CausalConvWithState Conv ConvInteger QLinearConv",
    "conv_transpose": "Col2Im ConvTranspose",
    "deform_conv": "DeformConv",
    "einsum": "Einsum",
    "gather": "Compress Gather GatherElements GatherND NonZero OneHot Scatter ScatterElements ScatterND TensorScatter",
    "grid": "AffineGrid GridSample",
    "image": "ImageDecoder",
    "loss": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "matmul": "Det Gemm MatMul MatMulInteger QLinearMatMul",
    "ml_feature": (
        "ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.Binarizer ai.onnx.ml.CastMap ai.onnx.ml.CategoryMapper "
        "ai.onnx.ml.DictVectorizer ai.onnx.ml.FeatureVectorizer ai.onnx.ml.Imputer ai.onnx.ml.LabelEncoder "
        "ai.onnx.ml.Normalizer ai.onnx.ml.OneHotEncoder ai.onnx.ml.Scaler ai.onnx.ml.ZipMap"
    ),
    "ml_linear": "ai.onnx.ml.LinearClassifier ai.onnx.ml.LinearRegressor ai.onnx.ml.SVMClassifier ai.onnx.ml.SVMRegressor",
    "ml_tree": "ai.onnx.ml.TreeEnsemble ai.onnx.ml.TreeEnsembleClassifier ai.onnx.ml.TreeEnsembleRegressor",
    "normalize": (
        "GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization MeanVarianceNormalization RMSNormalization"
    ),
    "pool": "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool",
    "quantize": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "random": "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "reduce": (
        "ArgMax ArgMin CumProd CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
        "ReduceProd ReduceSum ReduceSumSquare"
    ),
    "reshape": "DepthToSpace Expand Flatten Reshape SpaceToDepth Squeeze Tile Transpose Unsqueeze",
    "resize": "Resize Upsample",
    "rnn": "GRU LSTM RNN",
    "roi": "MaxRoiPool RoiAlign",
    "sequence": (
        "ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty "
        "SequenceErase SequenceInsert SequenceLength SplitToSequence"
    ),
    "signal": "BlackmanWindow HammingWindow HannWindow MelWeightMatrix",
    "slice": "CenterCropPad Concat Pad ReverseSequence Slice Split Trilu",
    "softmax": "Hardmax LogSoftmax Softmax",
    "sort": "NonMaxSuppression TopK Unique",
    "spectrum": "DFT STFT",
    "string": "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer",
    "training": "ai.onnx.preview.training.Adagrad ai.onnx.preview.training.Adam ai.onnx.preview.training.Momentum",
    "unary": (
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor IsInf IsNaN Log Neg Not Reciprocal "
        "Round Sign Sin Sinh Sqrt Tan Tanh"
    ),
    "unpool": "MaxUnpool",
    "contrib.array": (
        "com.microsoft.CDist com.microsoft.DynamicTimeWarping com.microsoft.ExpandDims com.microsoft.GatherND "
        "com.microsoft.GridSample com.microsoft.Inverse com.microsoft.NGramRepeatBlock com.microsoft.NhwcMaxPool "
        "com.microsoft.Pad com.microsoft.Range com.microsoft.Trilu com.microsoft.UnfoldTensor com.microsoft.Unique"
    ),
    "contrib.attention": "com.microsoft.Attention com.microsoft.MultiHeadAttention com.microsoft.QAttention",
    "contrib.attention_rnn": "com.microsoft.AttnLSTM",
    "contrib.block_weights": (
        "com.microsoft.MatMulBlockQuantizedFp4Weight com.microsoft.MatMulBlockQuantizedFp8Weight com.microsoft.MatMulFpQ4"
    ),
    "contrib.conv": "com.microsoft.CausalConvWithState",
    "contrib.decoder_attention": "com.microsoft.DecoderMaskedMultiHeadAttention com.microsoft.DecoderMaskedSelfAttention",
    "contrib.elementwise": (
        "com.microsoft.BiasAdd com.microsoft.BiasGelu com.microsoft.BiasSplitGelu com.microsoft.FastGelu "
        "com.microsoft.GatedAdd com.microsoft.Gelu com.microsoft.LinearAttentionGate com.microsoft.QuickGelu "
        "com.microsoft.ScaledSiLU"
    ),
    "contrib.experimental": "Affine Crop DynamicSlice ImageScaler ParametricSoftplus Scale ScaledTanh",
    "contrib.gated_delta_net": "com.microsoft.GatedDeltaNet",
    "contrib.generation": (
        "com.microsoft.BeamSearch com.microsoft.GreedySearch com.microsoft.Sampling com.microsoft.WhisperBeamSearch"
    ),
    "contrib.group_query_attention": "com.microsoft.GroupQueryAttention com.microsoft.SparseAttention",
    "contrib.hashing": "com.microsoft.NGramHashMapping com.microsoft.VarlenNGramHashMapping",
    "contrib.hyper_connection": (
        "com.microsoft.EngramGate com.microsoft.HyperConnectionPostMix com.microsoft.HyperConnectionPreMix"
    ),
    "contrib.linear_attention": "LinearAttention com.microsoft.LinearAttention",
    "contrib.matmul": (
        "com.microsoft.DynamicQuantizeMatMul com.microsoft.FusedConv com.microsoft.FusedGemm com.microsoft.FusedMatMul "
        "com.microsoft.FusedMatMulActivation com.microsoft.MatMulInteger16 com.microsoft.MatMulIntegerToFloat "
        "com.microsoft.MatMulNBits com.microsoft.SparseToDenseMatMul com.microsoft.TransposeMatMul"
    ),
    "contrib.matmul_bnb4": "com.microsoft.MatMulBnb4",
    "contrib.moe": "com.microsoft.MoE com.microsoft.QMoE",
    "contrib.moe_router": "com.microsoft.MoEGroupRouter",
    "contrib.normalize": (
        "SimplifiedLayerNormalization com.microsoft.BiasSoftmax com.microsoft.BranchwiseRMSNorm "
        "com.microsoft.EmbedLayerNormalization com.microsoft.GatedRMSNorm com.microsoft.QEmbedLayerNormalization "
        "com.microsoft.SimplifiedLayerNormalization com.microsoft.SkipLayerNormalization "
        "com.microsoft.SkipSimplifiedLayerNormalization"
    ),
    "contrib.packed_conv": "com.microsoft.VarlenCausalConvWithState",
    "contrib.paged_attention": "com.microsoft.PagedAttention",
    "contrib.projection": "com.microsoft.MatMulNBitsMlp com.microsoft.MatMulNBitsQkv",
    "contrib.qlinear": (
        "com.microsoft.QGemm com.microsoft.QLinearAdd com.microsoft.QLinearAveragePool com.microsoft.QLinearConcat "
        "com.microsoft.QLinearConv com.microsoft.QLinearGlobalAveragePool com.microsoft.QLinearLeakyRelu "
        "com.microsoft.QLinearMul com.microsoft.QLinearSigmoid com.microsoft.QLinearSoftmax com.microsoft.QLinearWhere"
    ),
    "contrib.quantize": (
        "com.microsoft.DequantizeLinear com.microsoft.GatherBlockQuantized com.microsoft.GatherPacked com.microsoft.QuantizeLinear"
    ),
    "contrib.rnn": "com.microsoft.DynamicQuantizeLSTM",
    "contrib.rotary": "com.microsoft.MRotaryEmbedding com.microsoft.RotaryEmbedding",
    "contrib.string": "com.microsoft.Tokenizer",
    "contrib.text": (
        "com.microsoft.BifurcationDetector com.microsoft.MurmurHash3 com.microsoft.SampleOp com.microsoft.WordConvEmbedding"
    ),
    "tflite.detection": "sardonyx.tflite.DetectionPostProcess sardonyx.tflite.NonMaxSuppressionPadded",
    "tflite.hashing": "sardonyx.tflite.LshProjection sardonyx.tflite.RngBitGenerator sardonyx.tflite.SkipGram",
    "tflite.numbers": (
        "sardonyx.tflite.Atan2 sardonyx.tflite.Bitcast sardonyx.tflite.ComplexAbs sardonyx.tflite.ComplexAdd "
        "sardonyx.tflite.ComplexCast sardonyx.tflite.ComplexImag sardonyx.tflite.ComplexMul sardonyx.tflite.ComplexReal "
        "sardonyx.tflite.ComplexSub sardonyx.tflite.Rfft2d"
    ),
    "contrib.vision": "com.microsoft.ConvTransposeWithDynamicPads com.microsoft.CropAndResize com.microsoft.MaxpoolWithMask",
}
"""Module -> the operators that it registers kernels of, each with its domain where that is not ai.onnx."""


@functools.cache
def _owners() -> Mapping[str, str]:
    return {operator: family for family, operators in FAMILIES.items() for operator in operators.split()}


@functools.cache
def load_family(domain: str, op_type: str) -> None:
    """Import the family of an operator, where there is one."""
    family = _owners().get(f"{domain}.{op_type}" if domain else op_type)
    if family is not None:
        with without_fork():
            importlib.import_module(f"{__name__}.{family}")


@functools.cache
def load_all() -> None:
    """Import all families."""
    with without_fork():
        for family in FAMILIES:
            importlib.import_module(f"{__name__}.{family}")
