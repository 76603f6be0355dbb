"""A small valid node of each operator that no case of the suite has: those of com.microsoft, ai.onnx.ml and sardonyx.tflite.

Inputs and node are in the text form; numbers are drawn, whole ones from 0 and 1, which are indices of anything. What follows a `+`
sets apart nodes of one operator that take other inputs or attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from support.backend_suite import SuiteCase

from sardonyx.dtypes import DataType
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

__all__ = ["contrib_cases"]

_ROW, _PAIR = "x: float[2, 3]", "x: float[2, 4] | y: float[2, 4]"
_BYTES = "x: uint8[2, 3] | a: float[] | b: uint8[]"
_TREE = """nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [1, 0, 0], nodes_values = [0.5, 0.5, 0.5],
    nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0]"""

_LEARNED = f"""
ArrayFeatureExtractor({_ROW} | i: int64[2])
Binarizer({_ROW}) threshold = 0.5
CategoryMapper(x: string[2]) cats_int64s = [1, 2], cats_strings = ["a", "b"]
FeatureVectorizer({_ROW} | y: float[2, 2]) inputdimensions = [3, 2]
Imputer({_ROW}) imputed_value_floats = [0.5], replaced_value_float = 0.5
LabelEncoder(x: int64[3]) keys_int64s = [1, 2], values_floats = [0.5, 1.5]
LinearClassifier({_ROW}) coefficients = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5], intercepts = [0.5, 1.5], classlabels_ints = [0, 1], post_transform = "SOFTMAX"
LinearRegressor({_ROW}) coefficients = [1.5, 2.5, 3.5], intercepts = [1.5], targets = 1
Normalizer({_ROW}) norm = "L2"
OneHotEncoder(x: int64[3]) cats_int64s = [0, 1, 2]
Scaler({_ROW}) offset = [1.5, 2.5, 3.5], scale = [1.5, 2.5, 3.5]
SVMRegressor({_ROW}) coefficients = [1.5, 2.5], kernel_params = [1.5, 0.5, 3.5], kernel_type = "RBF", n_supports = 2, rho = [0.5], support_vectors = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
SVMClassifier({_ROW}) classlabels_ints = [0, 1], coefficients = [1.5, 2.5], kernel_params = [1.5, 0.5, 3.5], kernel_type = "RBF", rho = [0.5], support_vectors = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5], vectors_per_class = [1, 1]
TreeEnsembleClassifier({_ROW}) {_TREE}, class_treeids = [0, 0], class_nodeids = [1, 2], class_ids = [0, 1], class_weights = [1.5, 2.5], classlabels_int64s = [0, 1]
TreeEnsembleRegressor({_ROW}) {_TREE}, target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0], target_weights = [1.5, 2.5], n_targets = 1
ZipMap(x: float[2, 2]) classlabels_int64s = [0, 1]
"""
_CACHE = "k: float[1, 2, 4] | v: float[1, 2, 4] | a: float[1, 1, 2, 4] | b: float[1, 1, 2, 4]"
_MICROSOFT = f"""
Attention(x: float[1, 4, 8] | w: float[8, 24] | b: float[24]) num_heads = 2
BiasAdd(x: float[1, 2, 4] | b: float[4] | s: float[1, 2, 4])
BiasGelu(x: float[2, 4] | b: float[4])
BiasSoftmax(x: float[2, 3, 4] | b: float[2, 1, 4]) axis = 2, is_inner_broadcast = 1
BiasSplitGelu(x: float[1, 2, 4] | b: float[4])
BranchwiseRMSNorm(x: float[2, 2, 4] | s: float[2, 4])
CausalConvWithState(x: float[1, 3, 5] | w: float[3, 1, 2] | b: float[3] | p: float[1, 3, 1]) activation = "silu"
CDist({_PAIR})
DequantizeLinear({_BYTES})
DynamicQuantizeLSTM(x: float[2, 1, 3] | w: uint8[1, 3, 8] | r: uint8[1, 2, 8] | _ | _ | _ | _ | _ | a: float[1] | b: uint8[1] | c: float[1] | d: uint8[1]) hidden_size = 2
DynamicQuantizeMatMul(x: float[2, 4] | y: uint8[4, 3] | a: float[] | b: uint8[])
DynamicTimeWarping({_ROW})
EmbedLayerNormalization(i: int32[1, 3] | s: int32[1, 3] | w: float[5, 4] | p: float[3, 4] | t: float[2, 4] | g: float[4] | b: float[4])
EngramGate(k: float[1, 2, 2, 4] | q: float[1, 2, 2, 4] | v: float[1, 2, 4] | s: float[2, 4] | t: float[2, 4] | u: float[2, 4])
ExpandDims({_ROW} | a: int32[])
AttnLSTM(x: float[2, 1, 2] | w: float[1, 8, 5] | r: float[1, 8, 2] | _ | _ | _ | _ | _ | q: float[1, 2, 2] | m: float[1, 3, 2] | v: float[1, 2] | n: float[1, 4, 3]) hidden_size = 2
BifurcationDetector(a: int64[4] | b: int64[2] | i: int64[1] | p: int64[4])
ConvTransposeWithDynamicPads(x: float[1, 2, 3, 3] | w: float[2, 1, 2, 2] | p: int64[4])
CropAndResize(x: float[2, 1, 4, 4] | r: float[3, 4] | i: int32[3] | c: int32[2])
FastGelu(x: float[2, 4] | b: float[4])
FusedConv(x: float[1, 2, 4, 4] | w: float[3, 2, 2, 2] | b: float[3]) activation = "Relu", pads = [1, 1, 1, 1], strides = [2, 2]
FusedGemm(x: float[2, 3] | y: float[3, 4] | z: float[4]) activation = "Relu", alpha = 0.5
FusedMatMul(x: float[2, 3] | y: float[4, 3]) transB = 1, alpha = 0.5
FusedMatMulActivation(x: float[2, 3] | y: float[4, 3]) transB = 1, activation = "Softmax"
GatedAdd(x: float[2, 4] | y: float[2, 4] | g: float[2, 1])
GatedDeltaNet(q: float[4, 1, 2] | k: float[4, 1, 2] | v: float[4, 2, 3] | c: int32[3] | d: float[4, 2] | b: float[4, 2] | s: float[2, 2, 3, 2] | a: float[2] | e: float[2]) gate_activation = "softplus"
GatedRMSNorm(x: float[2, 4] | s: float[2] | g: float[2, 4])
GatherBlockQuantized(x: uint8[3, 8] | i: int64[2] | s: float[3, 1]) block_size = 16
GatherND({_ROW} | i: int64[2, 2])
GatherPacked(x: uint8[3, 36] | i: int64[2]) packed_type = 2, K = 64, output_dtype = 1
Gelu({_ROW})
GridSample(x: float[1, 2, 3, 3] | g: float[1, 2, 2, 2]) mode = "bilinear", align_corners = 1
GroupQueryAttention(q: float[1, 2, 8] | {_CACHE} | s: int32[1] | t: int32[]) num_heads = 2, kv_num_heads = 1
HyperConnectionPostMix(x: float[2, 2, 4] | b: float[2, 4] | p: float[2, 2] | s: float[2, 2, 2])
HyperConnectionPreMix(x: float[2, 2, 4] | p: float[2, 2, 1]) reduction_scale = 0.5
Inverse(x: float[2, 3, 3])
LinearAttention(q: float[1, 3, 4] | k: float[1, 3, 4] | v: float[1, 3, 4] | s: float[1, 2, 2, 2] | d: float[1, 3, 2] | b: float[1, 3, 2]) q_num_heads = 2, kv_num_heads = 2
LinearAttentionGate(a: float[1, 2, 4] | d: float[4] | e: float[4] | b: float[1, 2, 4])
MatMulBnb4(x: float[2, 8] | w: uint8[16] | a: float[2]) K = 8, N = 4, block_size = 16, quant_type = 1
MatMulInteger16(x: int16[2, 3] | y: int16[3, 2])
MatMulIntegerToFloat(x: uint8[2, 3] | y: uint8[3, 4] | a: float[] | b: float[] | c: uint8[] | d: uint8[] | e: float[4])
MatMulNBits(x: float[2, 32] | w: uint8[4, 1, 16] | s: float[4]) K = 32, N = 4, bits = 4, block_size = 32
MatMulNBits+g_idx(x: float[2, 32] | w: uint8[4, 2, 8] | s: float[8] | _ | g: int32[32]) K = 32, N = 4, bits = 4, block_size = 16
MatMulNBits+3(x: float[2, 32] | w: uint8[4, 2, 6] | s: float[8] | z: uint8[4]) K = 32, N = 4, bits = 3, block_size = 16
MatMulNBits+5(x: float[2, 32] | w: uint8[4, 2, 10] | s: float[8] | z: uint8[8] | g: int32[32]) K = 32, N = 4, bits = 5, block_size = 16
MatMulNBits+6(x: float[2, 32] | w: uint8[4, 2, 12] | s: float[8]) K = 32, N = 4, bits = 6, block_size = 16
MatMulNBits+7(x: float[2, 32] | w: uint8[4, 2, 14] | s: float[8] | z: uint8[8] | _ | b: float[4]) K = 32, N = 4, bits = 7, block_size = 16
MatMulFpQ4(x: float[2, 32] | w: uint8[84] | s: int64[2])
MatMulFpQ4+signed(x: float[2, 32] | w: uint8[80] | s: int64[2]) blk_quant_type = 0
MatMulNBitsMlp(x: float[2, 32] | r: float[2, 32] | n: float[32] | w: uint8[4, 1, 16] | s: float[4] | _ | v: uint8[4, 1, 16] | t: float[4]) K = 32, N = 4, bits = 4, block_size = 32, activation = "silu"
MatMulNBitsQkv(x: float[2, 32] | _ | n: float[32] | w: uint8[4, 1, 16] | s: float[4] | _ | v: uint8[2, 1, 16] | t: float[2] | _ | u: uint8[2, 1, 16] | q: float[2]) K = 32, Nq = 4, Nkv = 2, bits = 4, block_size = 32
MaxpoolWithMask(x: float[1, 2, 4, 4] | m: int32[1, 1, 4, 4]) kernel_shape = [2, 2]
MurmurHash3(x: int64[2, 3]) seed = 7
MoE(x: float[2, 4] | r: float[2, 2] | w: float[2, 6, 4] | _ | v: float[2, 4, 6]) k = 1
MoEGroupRouter(x: float[3, 8] | b: float[8]) top_k = 2, n_group = 4, topk_group = 2
MRotaryEmbedding(x: float[1, 2, 3, 8] | p: int64[3, 1, 3] | c: float[4, 4] | s: float[4, 4]) mrope_section = [2, 1, 1]
MultiHeadAttention(q: float[1, 2, 4] | k: float[1, 3, 4] | v: float[1, 3, 4] | b: float[12] | m: int32[1, 3]) num_heads = 2
NGramHashMapping(i: int64[2, 3] | m: int64[3] | n: int64[4] | p: int64[2, 2] | o: int64[4] | e: int64[] | s: int32[2, 3]) max_ngram_size = 3, n_head_per_ngram = 2, pad_id = 7
NGramRepeatBlock(i: int64[2, 5] | s: float[2, 4]) ngram_size = 2
NhwcMaxPool(x: uint8[1, 4, 4, 2]) kernel_shape = [2, 2], strides = [2, 2]
Pad({_ROW} | p: int64[4] | v: float[]) mode = "constant"
QAttention(x: uint8[1, 4, 8] | w: uint8[8, 24] | b: float[24] | c: float[] | d: float[] | _ | e: uint8[] | f: uint8[]) num_heads = 2
QAttention+past(x: uint8[1, 4, 8] | w: uint8[8, 24] | b: float[24] | c: float[] | d: float[] | m: int32[1, 7] | e: uint8[] | f: uint8[] | p: float[2, 1, 2, 3, 4]) num_heads = 2, unidirectional = 1
QGemm(x: uint8[2, 3] | a: float[] | b: uint8[] | y: uint8[3, 4] | c: float[] | d: uint8[] | _ | e: float[] | f: uint8[])
QLinearAdd({_BYTES} | y: uint8[2, 3] | c: float[] | d: uint8[] | e: float[] | f: uint8[])
QLinearAveragePool(x: uint8[1, 2, 4, 4] | a: float[] | b: uint8[] | c: float[] | d: uint8[]) kernel_shape = [2, 2]
QLinearConcat(c: float[] | d: uint8[] | {_BYTES}) axis = 1
QLinearConv(x: uint8[1, 2, 4, 4] | a: float[] | b: uint8[] | w: uint8[3, 2, 2, 2] | c: float[] | d: uint8[] | e: float[] | f: uint8[]) pads = [1, 1, 1, 1]
QLinearGlobalAveragePool(x: uint8[1, 2, 4, 4] | a: float[] | b: uint8[] | c: float[] | d: uint8[])
QLinearLeakyRelu({_BYTES} | c: float[] | d: uint8[]) alpha = 0.1
QLinearMul({_BYTES} | y: uint8[2, 3] | c: float[] | d: uint8[] | e: float[] | f: uint8[])
QLinearSigmoid({_BYTES} | c: float[] | d: uint8[])
QLinearSoftmax({_BYTES} | c: float[] | d: uint8[]) axis = 1, opset = 13
QLinearWhere(t: bool[2, 3] | {_BYTES} | y: uint8[2, 3] | c: float[] | d: uint8[] | e: float[] | f: uint8[])
QMoE(x: float[2, 4] | r: float[2, 2] | w: uint8[2, 6, 2] | s: float[2, 6] | _ | v: uint8[2, 4, 3] | t: float[2, 4]) k = 1
QuantizeLinear({_ROW} | a: float[] | b: uint8[])
QuickGelu({_ROW}) alpha = 1.5
Range(a: int64[] | b: int64[] | c: int64[])
RotaryEmbedding(x: float[1, 2, 3, 8] | p: int64[1, 3] | c: float[4, 4] | s: float[4, 4]) interleaved = 1
SampleOp({_ROW})
ScaledSiLU({_ROW} | s: float[]) alpha = 0.5
SkipLayerNormalization(x: float[1, 2, 4] | s: float[1, 2, 4] | g: float[4] | b: float[4]) epsilon = 0.1
SkipSimplifiedLayerNormalization(x: float[1, 2, 4] | s: float[1, 2, 4] | g: float[4]) epsilon = 0.1
SparseAttention(q: float[1, 2, 8] | {_CACHE} | r: int32[1, 2] | c: int32[1, 1] | s: int32[1] | t: int32[1]) num_heads = 2, kv_num_heads = 1, sparse_block_size = 16
Tokenizer(x: string[2]) mark = 1, mincharnum = 1, pad_value = "#", separators = ["a"]
TransposeMatMul(x: float[2, 3] | y: float[4, 3]) transB = 1
Trilu(x: float[3, 3] | k: int64[]) upper = 0
UnfoldTensor({_ROW}) dim = 1, size = 2, step = 1
Unique(x: float[5])
VarlenCausalConvWithState(x: float[5, 3] | w: float[3, 1, 2] | c: int32[3] | b: float[3] | s: float[2, 3, 1]) activation = "silu"
VarlenNGramHashMapping(i: int64[4] | m: int64[3] | n: int64[4] | c: int32[3] | p: int64[2, 2] | o: int64[4] | e: int64[] | s: int32[4]) max_ngram_size = 3, n_head_per_ngram = 2, pad_id = 7
WordConvEmbedding(x: int32[2, 4] | w: float[3, 1, 2, 2] | b: float[3] | c: float[2, 2])
"""
_TFLITE = """
Atan2(y: float[2, 3] | x: float[2, 3])
Bitcast(x: float[2, 3]) to = 6
ComplexAbs(x: complex64[2, 3])
ComplexAdd(x: complex64[2, 3] | y: complex64[3])
ComplexCast(x: float[2, 3]) to = 14
ComplexImag(x: complex64[2, 3])
ComplexMul(x: complex64[2, 3] | y: complex64[3])
ComplexReal(x: complex64[2, 3])
ComplexSub(x: complex64[2, 3] | y: complex64[3])
DetectionPostProcess(b: float[1, 3, 4] | s: float[1, 3, 3] | a: float[3, 4]) max_detections = 2, num_classes = 2, nms_score_threshold = 0.1, nms_iou_threshold = 0.5, y_scale = 10.5, x_scale = 10.5, h_scale = 5.5, w_scale = 5.5
LshProjection(s: float[2, 3] | x: int32[4] | w: float[4]) is_sparse = 1
NonMaxSuppressionPadded(b: float[3, 4] | s: float[3] | m: int32[] | i: float[] | t: float[])
Rfft2d(x: float[2, 4] | n: int32[2])
RngBitGenerator(s: uint64[3]) algorithm = "PHILOX", shape = [2, 3], to = 12
SkipGram(x: string[1]) ngram_size = 2, max_skip_size = 1
"""


_OUTPUTS = {
    "BifurcationDetector": 2,
    "CausalConvWithState": 2,
    "DetectionPostProcess": 4,
    "GatedDeltaNet": 2,
    "GroupQueryAttention": 3,
    "LinearAttention": 2,
    "LinearClassifier": 2,
    "MatMulNBitsQkv": 3,
    "NonMaxSuppressionPadded": 3,
    "QAttention+past": 2,
    "RngBitGenerator": 2,
    "SVMClassifier": 2,
    "SparseAttention": 3,
    "TreeEnsembleClassifier": 2,
    "Unique": 3,
    "VarlenCausalConvWithState": 2,
}
"""How many outputs a node must have where it is not one."""
_FED = {
    "BifurcationDetector": {"i": [1]},
    "CropAndResize": {"c": [2, 2]},
    "GatedDeltaNet": {"c": [0, 1, 4]},
    "GroupQueryAttention": {"s": [1], "t": 2},
    "MatMulFpQ4": {"s": [32, 4]},
    "MatMulFpQ4+signed": {"s": [32, 4]},
    "NGramHashMapping": {"n": [5, 7, 11, 13]},
    "Rfft2d": {"n": [2, 4]},
    "SparseAttention": {"r": [[0, 1]], "c": [[0]], "s": [2], "t": [2]},
    "VarlenCausalConvWithState": {"c": [0, 2, 5]},
    "VarlenNGramHashMapping": {"n": [5, 7, 11, 13], "c": [0, 1, 4]},
}
"""What must be certain numbers."""


def contrib_cases() -> Iterator[SuiteCase]:
    """One case for each operator, with what it is fed and no expected outputs."""
    for domain, text in ("ai.onnx.ml", _LEARNED), ("com.microsoft", _MICROSOFT), ("sardonyx.tflite", _TFLITE):
        for line in text.replace(",\n    ", ", ").strip().splitlines():
            yield _case(domain, line)


def _case(domain: str, line: str) -> SuiteCase:
    name, _, rest = line.partition("(")
    inputs, _, attributes = rest.partition(")")
    parts = inputs.split(" | ")
    names = ", ".join(part.partition(":")[0] for part in parts)
    outputs = ", ".join(["out", "more", "third", "last"][: _OUTPUTS.get(name, 1)])
    graph = f"graph main({', '.join(part for part in parts if part != '_')}) -> (out) {{ {outputs} = {domain}.{name.partition('+')[0]}({names})"
    text = f"ir_version 10 opset 21, com.microsoft 1, ai.onnx.ml 3, sardonyx.tflite 1 {graph} {{{attributes}}} }}"
    model = onnx.ModelProto.FromString(to_bytes(parse_model(text)))
    generator = np.random.default_rng(0)
    fixed = _FED.get(name, {})
    drawn = {item.name: _drawn(generator, item.type.tensor_type) for item in model.graph.input}
    fed = [np.asarray(fixed.get(key, array), array.dtype) for key, array in drawn.items()]
    return SuiteCase("contrib", f"{domain}.{name}", model, ((tuple(fed), ()),))


def _drawn(generator: np.random.Generator, kind: Any) -> Any:
    shape = tuple(dim.dim_value for dim in kind.shape.dim)
    dtype = DataType(kind.elem_type)
    if dtype is DataType.STRING:
        return np.full(shape, "a b", object)
    whole = dtype.numpy.kind in "iub"
    return np.asarray(generator.integers(0, 2, shape) if whole else generator.uniform(0.1, 1, shape)).astype(dtype.numpy)
