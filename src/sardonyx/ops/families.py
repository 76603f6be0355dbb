"""The family of each operator: the stem of the files that define it in every package.

    family_of("Conv")  ->  "conv":  ops/shapes/conv.py, providers/<provider>/kernels/conv.py and their tests.

An operator of a custom domain has no family.
"""

from __future__ import annotations

__all__ = ["FAMILIES", "family_of"]

FAMILIES: dict[str, str] = {
    "unary": "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor Log Neg Not Reciprocal Round Sign Sin "
    "Sinh Sqrt Tan Tanh IsInf IsNaN",
    "activation": "Celu Clip Elu Gelu HardSigmoid HardSwish LeakyRelu Mish PRelu Relu Selu Shrink Sigmoid Softplus Softsign "
    "SwiGLU Swish ThresholdedRelu",
    "binary": "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod "
    "Mul Or Pow Sub Sum Where Xor",
    "cast": "BitCast Cast CastLike",
    "constant": "Constant ConstantOfShape EyeLike Identity Range Shape Size",
    "random": "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "signal": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT",
    "reduce": "ArgMax ArgMin CumProd CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
    "ReduceProd ReduceSum ReduceSumSquare",
    "softmax": "Hardmax LogSoftmax Softmax",
    "normalize": "BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization "
    "MeanVarianceNormalization RMSNormalization",
    "loss": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "conv": "CausalConvWithState Col2Im Conv ConvInteger ConvTranspose DeformConv QLinearConv",
    "pool": "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxRoiPool MaxUnpool RoiAlign",
    "matmul": "Det Einsum Gemm MatMul MatMulInteger QLinearMatMul",
    "quantize": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "resize": "AffineGrid GridSample Resize Upsample",
    "gather": "Compress Gather GatherElements GatherND NonZero OneHot Scatter ScatterElements ScatterND TensorScatter",
    "sort": "NonMaxSuppression TopK Unique",
    "reshape": "DepthToSpace Expand Flatten Reshape SpaceToDepth Squeeze Tile Transpose Unsqueeze",
    "slice": "CenterCropPad Concat Pad ReverseSequence Slice Split Trilu",
    "rnn": "GRU LSTM RNN",
    "attention": "Attention FlexAttention LinearAttention RotaryEmbedding",
    "control_flow": "If Loop Scan SequenceMap",
    "sequence": "ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty "
    "SequenceErase SequenceInsert SequenceLength SplitToSequence",
    "string": "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer",
    "image": "ImageDecoder",
    "ml_tree": "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor",
    "ml_linear": "LinearClassifier LinearRegressor SVMClassifier SVMRegressor",
    "ml_feature": "ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder "
    "Normalizer OneHotEncoder Scaler ZipMap",
    "training": "Adagrad Adam Gradient Momentum",
    "contrib/array": "CDist DynamicTimeWarping ExpandDims Inverse NGramRepeatBlock NhwcMaxPool UnfoldTensor",
    "contrib/attention": "DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention GroupQueryAttention MRotaryEmbedding "
    "MultiHeadAttention PagedAttention QAttention SparseAttention",
    "contrib/experimental": "Affine Crop DynamicSlice ImageScaler ParametricSoftplus Scale ScaledTanh",
    "contrib/elementwise": "BiasAdd BiasGelu BiasSplitGelu FastGelu GatedAdd LinearAttentionGate QuickGelu ScaledSiLU",
    "contrib/gated_delta_net": "GatedDeltaNet",
    "contrib/generation": "BeamSearch GreedySearch Sampling WhisperBeamSearch",
    "contrib/hashing": "NGramHashMapping VarlenNGramHashMapping",
    "contrib/hyper_connection": "EngramGate HyperConnectionPostMix HyperConnectionPreMix",
    "contrib/matmul": "DynamicQuantizeMatMul FusedConv FusedGemm FusedMatMul FusedMatMulActivation "
    "MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight MatMulBnb4 MatMulFpQ4 MatMulInteger16 "
    "MatMulIntegerToFloat MatMulNBits SparseToDenseMatMul TransposeMatMul",
    "contrib/moe": "MoE MoEGroupRouter QMoE",
    "contrib/normalize": "BiasSoftmax BranchwiseRMSNorm EmbedLayerNormalization GatedRMSNorm QEmbedLayerNormalization "
    "SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization",
    "contrib/packed_conv": "VarlenCausalConvWithState",
    "contrib/projection": "MatMulNBitsMlp MatMulNBitsQkv",
    "contrib/qlinear": "QGemm QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul "
    "QLinearSigmoid QLinearSoftmax QLinearWhere",
    "contrib/quantize": "GatherBlockQuantized GatherPacked",
    "contrib/rnn": "AttnLSTM DynamicQuantizeLSTM",
    "contrib/string": "Tokenizer",
    "contrib/text": "BifurcationDetector MurmurHash3 SampleOp WordConvEmbedding",
    "tflite/detection": "DetectionPostProcess NonMaxSuppressionPadded",
    "tflite/hashing": "LshProjection RngBitGenerator SkipGram",
    "tflite/numbers": "Atan2 Bitcast ComplexAbs ComplexAdd ComplexCast ComplexImag ComplexMul ComplexReal ComplexSub Rfft2d",
    "contrib/vision": "ConvTransposeWithDynamicPads CropAndResize MaxpoolWithMask",
}
"""Family -> the operators in it, of all domains, separated by blanks.

The tflite families are sardonyx.tflite, the contrib families com.microsoft; a name that is in ai.onnx too (Attention, Gelu,
QuantizeLinear …) stands in its family
there.
"""

_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}


def family_of(op_type: str) -> str | None:
    """Return the family of `op_type`, or None for an operator that is unknown."""
    return _FAMILY_OF.get(op_type)
