"""One node or more, of about a million elements, for every operator that ONNX Runtime's CPU provider has a kernel for.

Where a million elements would take minutes in both engines (strings, forests, maps), there are fewer.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from operator_draws import (
    ML,
    MS,
    Draw,
    boxes,
    codes,
    floats,
    forest,
    graph,
    ints,
    newer_forest,
    node,
    one,
    parts,
    text,
    truths,
    weights,
    whole,
)  # fmt: skip

__all__ = ["INSTANCES", "LOOPS_AROUND_MODELS"]

LOOPS_AROUND_MODELS = {"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"}
"""Operators whose time is that of the models which they hold."""

SQUARE = floats(1000, 1000)
IMAGE = floats(1, 16, 256, 256)
VOLUME = floats(1, 16, 40, 40, 40)
ROWS = floats(512, 2048)
HALF = floats(1000, 1000, low=0.5, high=2, dtype="float16")
NUMBERS = whole(1000, 1000, low=1, dtype="int32")
BYTES = whole(1000, 1000, dtype="uint8")
POSITIVE = floats(1000, 1000, low=0.1, high=0.9)
TOKENS = whole(4, 256, high=1000, dtype="int32")
WORDS = [f"Word {number}" for number in range(500)]
FILL = "() => (float[N] y) {k = Constant <value_ints: ints = [1000000]> () y = ConstantOfShape(k)}"

UNARY = [
    *(
        node(name, SQUARE)
        for name in (
            "Abs Acos Asin Asinh Atan Atanh Ceil Celu Cos Cosh Dropout Elu Erf Exp Flatten Floor Gelu HardSigmoid Hardmax Identity "
            "IsInf IsNaN LeakyRelu LogSoftmax LpNormalization Neg NonZero Reciprocal Relu Round Selu Shape Shrink Sigmoid Sign Sin "
            "Sinh Size Softmax Softplus Softsign Tan Tanh ThresholdedRelu Trilu Unique"
        ).split()
    ),
    node("Acosh", floats(1000, 1000, low=1, high=9)),
    node("Log", POSITIVE),
    node("Sqrt", POSITIVE),
    node("Gelu", SQUARE, approximate="tanh"),
    node("Clip", SQUARE, one(-0.5), one(0.5)),
    node("Not", truths(1000, 1000)),
    node("BitwiseNot", whole(1000, 1000, dtype="int32")),
    node("PRelu", SQUARE, weights(1000)),
    node("Softmax", IMAGE, axis=1),
    node("Cast", SQUARE, to=TensorProto.INT64),
    node("Cast", SQUARE, to=TensorProto.FLOAT16),
    node("Cast", SQUARE, to=TensorProto.FLOAT8E4M3FN),
    node("Cast", floats(1000, 1000, dtype="double"), to=TensorProto.FLOAT),
    node("Cast", BYTES, to=TensorProto.FLOAT),
    node("Cast", floats(1000, 1000, dtype="float16"), to=TensorProto.FLOAT),
    node("Cast", whole(1000, 1000), to=TensorProto.BOOL),
    node("Cast", floats(300, 300), to=TensorProto.STRING),
    node("BitCast", SQUARE, to=TensorProto.INT32, version=26),
    *(node(name, SQUARE, domain=MS) for name in ("Gelu", "QuickGelu", "FastGelu", "ScaledSiLU")),
    node("BiasGelu", SQUARE, weights(1000), domain=MS),
    node("Inverse", floats(100, 64, 64), domain=MS),
    node("Trilu", SQUARE, domain=MS),
]

BINARY = [
    *(
        node(name, SQUARE, floats(1000))
        for name in "Add Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mul Sub Sum".split()
    ),
    *(node(name, HALF, HALF) for name in "Add Div Less Mul Max Pow Sum".split()),
    *(node(name, floats(1000, 1000, dtype="double"), floats(1000, dtype="double")) for name in "Add Div Less Max Mul Pow".split()),
    *(node(name, whole(1000, 1000), whole(1000, 1000, low=1)) for name in "Add Div Less Max Mod Mul Pow Sub".split()),
    *(node(name, truths(1000, 1000), truths(1000, 1000)) for name in "And Or Xor".split()),
    *(node(name, NUMBERS, whole(1000, low=1, dtype="int32")) for name in "BitwiseAnd BitwiseOr BitwiseXor Div Mod".split()),
    node("BitShift", whole(1000, 1000, dtype="uint32"), whole(1000, 1000, high=31, dtype="uint32"), direction="LEFT"),
    node("Pow", POSITIVE, floats(1000, 1000)),
    node("Pow", SQUARE, one(2)),
    node("Mod", SQUARE, POSITIVE, fmod=1),
    node("Mod", floats(1000, 1000, low=1, high=50), POSITIVE, fmod=1),
    node("Where", truths(1000, 1000), SQUARE, floats(1000)),
    node("Where", truths(1000, 1000), whole(1000, 1000), one(0, "int64")),
    node("Where", truths(1000), SQUARE, one(0)),
    node("Where", truths(300, 300), text(300, 300), text(300, 300)),
    node("Equal", text(300, 300), text(300, 300)),
    node("GatedAdd", floats(1, 512, 2048), floats(1, 512, 2048), floats(1, 512, 1), domain=MS),
    node("QLinearAdd", BYTES, one(0.1), one(128, "uint8"), BYTES, one(0.1),
         one(128, "uint8"), one(0.2), one(128, "uint8"), domain=MS),
    node("QLinearMul", BYTES, one(0.1), one(128, "uint8"), BYTES, one(0.1),
         one(128, "uint8"), one(0.2), one(128, "uint8"), domain=MS),
    node("QLinearWhere", truths(1000, 1000), BYTES, one(0.1), one(128, "uint8"),
         BYTES, one(0.1), one(128, "uint8"), one(0.2), one(128, "uint8"), domain=MS),
]  # fmt: skip

REDUCE = [
    *(
        node(name, POSITIVE, ints(1))
        for name in "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean".split()
        + "ReduceMin ReduceProd ReduceSum ReduceSumSquare".split()
    ),
    node("ReduceSum", whole(1000, 1000), ints(1)),
    node("ReduceMax", BYTES, ints(1)),
    node("ReduceMean", floats(1000, 1000, dtype="double"), ints(0)),
    node("ReduceL2", IMAGE, ints(1)),
    node("ReduceSum", IMAGE, ints(0, 2)),
    node("ReduceProd", SQUARE),
    node("ReduceMax", SQUARE, ints(0)),
    node("ReduceSum", SQUARE, ints(0)),
    node("ReduceMean", IMAGE, ints(2, 3)),
    node("ArgMax", SQUARE, axis=1),
    node("ArgMin", SQUARE, axis=0),
    node("ArgMax", BYTES, axis=1, select_last_index=1),
    node("CumSum", SQUARE, one(1, "int64")),
    node("CumSum", SQUARE, one(0, "int64")),
    node("CumProd", SQUARE, one(1, "int64"), version=26),
    node("TopK", SQUARE, ints(10), outputs=2),
    node("TopK", SQUARE, ints(500), outputs=2, axis=0),
    node("TopK", floats(1000000), ints(1000), outputs=2, largest=0),
    node("TopK", whole(1000, 1000, high=1 << 30), ints(5), outputs=2),
    node("Unique", whole(1000000), outputs=4),
    node("Unique", whole(100000, 4, high=10), axis=0, outputs=4),
    node("Unique", text(50000), outputs=4),
    node("Det", floats(1000, 32, 32)),
    node("Einsum", floats(16, 128, 64), floats(16, 64, 128), equation="bij,bjk->bik"),
    node("Einsum", floats(100, 100, 100), equation="ijk->kji"),
    node("Unique", floats(100000), domain=MS, outputs=3),
    node("CDist", floats(1000, 64), floats(1000, 64), domain=MS, metric="euclidean"),
    node("DynamicTimeWarping", floats(200, 1000), domain=MS),
]

MOVE = [
    node("Concat", SQUARE, SQUARE, axis=1),
    node("Concat", *(floats(1000, 3) for _ in range(300)), axis=1),
    node("Concat", text(300, 300), text(300, 300), axis=1),
    node("Split", SQUARE, axis=1, outputs=4, num_outputs=4),
    node("Slice", SQUARE, ints(10, 10), ints(900, 900), ints(0, 1), ints(1, 2)),
    node("Slice", IMAGE, ints(255), ints(-1000), ints(3), ints(-1)),
    node("Transpose", SQUARE),
    node("Transpose", BYTES),
    node("Transpose", floats(10, 20, 10, 25, 20), perm=[4, 2, 0, 3, 1]),
    node("Transpose", text(300, 300)),
    node("Transpose", floats(1, 256, 64, 64), perm=[0, 2, 3, 1]),
    node("Reshape", SQUARE, ints(500, -1)),
    node("Squeeze", floats(1, 1000, 1000), ints(0)),
    node("Unsqueeze", SQUARE, ints(0)),
    node("Expand", floats(1000, 1), ints(1000, 1000)),
    node("Tile", floats(100, 100), ints(10, 10)),
    node("Pad", SQUARE, ints(2, 2, 2, 2)),
    node("Pad", SQUARE, ints(2, 2, 2, 2), mode="reflect"),
    node("Pad", SQUARE, ints(2, 2, 2, 2), mode="wrap"),
    node("Pad", SQUARE, ints(2, 2, 2, 2), domain=MS),
    node("DepthToSpace", IMAGE, blocksize=4),
    node("SpaceToDepth", IMAGE, blocksize=4),
    node("ReverseSequence", SQUARE, whole(1000, low=1, high=1000)),
    node("Compress", SQUARE, truths(1000), axis=0),
    node("Compress", SQUARE, truths(1000000)),
    node("Gather", SQUARE, whole(1000, high=1000)),
    node("Gather", SQUARE, whole(1000, high=1000), axis=1),
    node("Gather", floats(1000000), whole(1000000, low=-1000000, high=1000000)),
    node("Gather", text(300, 300), whole(1000, high=300)),
    node("GatherElements", SQUARE, whole(1000, 1000, high=1000), axis=0),
    node("GatherElements", SQUARE, whole(1000, 1000, high=1000), axis=1),
    node("GatherND", floats(100, 100, 100), whole(100, 100, 2)),
    node("GatherND", floats(100, 100, 100), whole(100000, 3)),
    node("GatherND", floats(100, 100, 100), whole(100000, 3), domain=MS),
    node("ScatterElements", SQUARE, whole(1000, 1000, high=1000), SQUARE, axis=0),
    node("ScatterElements", SQUARE, whole(1000, 1000, high=1000), SQUARE, axis=1, reduction="add"),
    node("ScatterElements", SQUARE, whole(1000, 1000, high=1000), SQUARE, axis=1, reduction="max"),
    node("ScatterElements", SQUARE, whole(1000, 1000, high=1000), SQUARE, axis=1, reduction="mul"),
    node("ScatterND", SQUARE, whole(1000, 1, high=1000), SQUARE),
    node("ScatterND", SQUARE, whole(1000, 1, high=1000), SQUARE, reduction="add"),
    node("ScatterND", SQUARE, whole(1000000, 2, high=1000), floats(1000000), reduction="max"),
    node("ScatterND", SQUARE, whole(1000000, 2, high=1000), floats(1000000)),
    node("Scatter", SQUARE, whole(1000, 1000, high=1000), SQUARE, axis=1, version=10),
    node("TensorScatter", floats(8, 16, 128, 64), floats(8, 16, 16, 64), whole(8), axis=2),
    node("OneHot", whole(100, 100, high=100), one(100, "int64"), np.array([0, 1], np.float32), axis=0),
    node("OneHot", whole(10000, high=100), one(100, "int64"), np.array([0, 1], np.float32)),
    node("EyeLike", SQUARE),
    node("ConstantOfShape", whole(2, low=999, high=1000)),
    node("Range", whole(low=0, high=1), whole(low=999999, high=1000000), whole(low=1, high=2)),
    node("Range", floats(low=0, high=1), floats(low=999999, high=1000000), floats(low=1, high=1.0001), domain=MS),
    node("ExpandDims", SQUARE, one(0, "int32"), domain=MS),
    node("UnfoldTensor", floats(1000, 300), domain=MS, size=10, step=2),
    node("GatherBlockQuantized", codes(1000, 512), whole(1000, high=1000), weights(1000, 32), domain=MS, block_size=32),
    node("QLinearConcat", one(0.1), one(128, "uint8"), BYTES, one(0.2), one(100, "uint8"),
         BYTES, one(0.3), one(100, "uint8"), domain=MS, axis=1),
    node("NGramRepeatBlock", whole(16, 1000, high=50), floats(16, 50000), domain=MS, ngram_size=3),
]  # fmt: skip

CONV = [
    node("Conv", floats(1, 64, 128, 128), weights(64, 64, 3, 3), pads=[1, 1, 1, 1]),
    node("Conv", floats(1, 64, 128, 128), weights(64, 1, 3, 3), group=64, pads=[1, 1, 1, 1]),
    node("Conv", floats(1, 64, 128, 128), weights(64, 64, 1, 1)),
    node("Conv", floats(1, 64, 16384), weights(64, 64, 3)),
    node("Conv", VOLUME, weights(16, 16, 3, 3, 3)),
    node("ConvTranspose", floats(1, 64, 64, 64), weights(64, 32, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1]),
    node("Conv", floats(1, 64, 64, 64, dtype="float16"), weights(64, 64, 3, 3, dtype="float16"), pads=[1, 1, 1, 1]),
    node("Conv", floats(8, 3, 224, 224), weights(32, 3, 7, 7), strides=[4, 4], pads=[3, 3, 3, 3]),
    node("Conv", floats(1, 64, 64, 64), weights(64, 4, 3, 3), group=16, dilations=[2, 2]),
    node("ConvTranspose", floats(1, 64, 64, 64), weights(64, 1, 3, 3), group=64),
    node("ConvInteger", whole(1, 32, 128, 128, dtype="uint8"), codes(32, 32, 3, 3), one(100, "uint8"), one(128, "uint8")),
    node("QLinearConv", whole(1, 32, 128, 128, dtype="uint8"), one(0.1), one(100, "uint8"), codes(32, 32, 3, 3), one(0.1),
         one(128, "uint8"), one(4), one(128, "uint8")),
    node("QLinearConv", whole(1, 32, 128, 128, dtype="uint8"), one(0.1), one(100, "uint8"), codes(32, 32, 3, 3), one(0.1),
         one(128, "uint8"), one(4), one(128, "uint8"), domain=MS),
    node("FusedConv", floats(1, 64, 128, 128), weights(64, 64, 3, 3), domain=MS, pads=[1, 1, 1, 1], activation="Relu"),
    node("DeformConv", floats(1, 16, 64, 64), weights(32, 16, 3, 3), floats(1, 18, 64, 64), pads=[1, 1, 1, 1]),
    node("Col2Im", floats(1, 16 * 9, 126 * 126), ints(128, 128), ints(3, 3)),
    node("AveragePool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    node("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    node("MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], outputs=2),
    node("MaxPool", IMAGE, kernel_shape=[5, 5], pads=[2, 2, 2, 2]),
    node("MaxPool", VOLUME, kernel_shape=[3, 3, 3], strides=[2, 2, 2]),
    node("MaxPool", whole(1, 16, 256, 256, dtype="uint8"), kernel_shape=[3, 3], strides=[2, 2]),
    node("AveragePool", VOLUME, kernel_shape=[3, 3, 3], strides=[2, 2, 2]),
    node("LpPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2]),
    node("GlobalAveragePool", IMAGE),
    node("GlobalMaxPool", IMAGE),
    node("GlobalLpPool", IMAGE, version=21),
    node("MaxUnpool", floats(1, 16, 128, 128), whole(1, 16, 128, 128, high=1 << 20), kernel_shape=[2, 2], strides=[2, 2]),
    node("MaxRoiPool", floats(1, 16, 128, 128), boxes(50, first=0), pooled_shape=[7, 7], version=21),
    *(
        node("RoiAlign", floats(1, 64, 128, 128), boxes(50), np.zeros(50, np.int64), output_height=7, output_width=7, mode=mode,
             sampling_ratio=ratio, version=21)
        for mode, ratio in (("avg", 2), ("max", 2), ("avg", 0))
    ),
    node("Resize", IMAGE, None, np.array([1, 1, 2, 2], np.float32)),
    node("Resize", IMAGE, None, np.array([1, 1, 2, 2], np.float32), mode="linear"),
    node("Resize", IMAGE, None, np.array([1, 1, 2, 2], np.float32), mode="cubic"),
    node("Resize", IMAGE, None, np.array([1, 1, 0.5, 0.5], np.float32), mode="cubic", antialias=1),
    node("Resize", IMAGE, None, np.array([1, 1, 0.7, 0.7], np.float32), mode="linear"),
    node("Resize", IMAGE, None, np.array([1, 1, 0.7, 0.7], np.float32), mode="nearest", nearest_mode="ceil"),
    node("Resize", VOLUME, None, np.array([1, 1, 2, 2, 2], np.float32), mode="linear"),
    node("Resize", whole(1, 3, 512, 512, dtype="uint8"), None, np.array([1, 1, 0.5, 0.5], np.float32), mode="linear"),
    node("Resize", floats(1, 16, 256, 256), None, np.array([1, 1, 2, 2], np.float32), mode="cubic", exclude_outside=1,
         coordinate_transformation_mode="align_corners"),
    node("Upsample", IMAGE, np.array([1, 1, 2, 2], np.float32), version=9, mode="linear"),
    node("Upsample", IMAGE, np.array([1, 1, 2, 2], np.float32), version=9),
    node("GridSample", IMAGE, floats(1, 256, 256, 2)),
    node("GridSample", IMAGE, floats(1, 256, 256, 2), mode="nearest"),
    node("GridSample", IMAGE, floats(1, 256, 256, 2), mode="cubic"),
    node("GridSample", IMAGE, floats(1, 256, 256, 2, low=-2, high=2), mode="linear", padding_mode="reflection"),
    node("GridSample", floats(1, 4, 32, 64, 64), floats(1, 32, 64, 64, 3)),
    node("GridSample", IMAGE, floats(1, 256, 256, 2), domain=MS),
    node("AffineGrid", floats(4, 2, 3), ints(4, 3, 512, 512)),
    node("BatchNormalization", IMAGE, weights(16), weights(16), weights(16), weights(16) ** 2),
    node("InstanceNormalization", IMAGE, weights(16), weights(16)),
    node("LayerNormalization", ROWS, weights(2048), weights(2048)),
    node("RMSNormalization", ROWS, weights(2048)),
    node("SimplifiedLayerNormalization", ROWS, weights(2048)),
    node("SkipLayerNormalization", floats(1, 512, 2048), floats(1, 512, 2048), weights(2048), weights(2048), domain=MS),
    node("SkipSimplifiedLayerNormalization", floats(1, 512, 2048), floats(1, 512, 2048), weights(2048), domain=MS),
    node("GatedRMSNorm", floats(1, 512, 2048), weights(2048), floats(1, 512, 2048), domain=MS),
    node("LayerNormalization", floats(512, 2048, dtype="float16"), weights(2048, dtype="float16"), weights(2048, dtype="float16")),
    node("LayerNormalization", floats(20000, 50), weights(50), weights(50)),
    node("BranchwiseRMSNorm", floats(1, 512, 4, 512), weights(4, 512), domain=MS),
    node("LRN", IMAGE, size=5),
    node("MeanVarianceNormalization", floats(4, 16, 128, 128)),
    node("NhwcMaxPool", whole(1, 256, 256, 16, dtype="uint8"), domain=MS, kernel_shape=[2, 2], strides=[2, 2]),
    node("QLinearAveragePool", whole(1, 16, 256, 256, dtype="uint8"), one(0.1), one(100, "uint8"), one(0.1), one(100, "uint8"),
         domain=MS, kernel_shape=[2, 2], strides=[2, 2]),
    node("QLinearGlobalAveragePool", whole(1, 16, 256, 256, dtype="uint8"), one(0.1), one(100, "uint8"), one(0.1),
         one(100, "uint8"), domain=MS),
]  # fmt: skip

PRODUCT = [
    node("MatMul", floats(512, 512), weights(512, 512)),
    node("MatMul", floats(16, 256, 64), floats(16, 64, 256)),
    node("MatMul", floats(256, 256, dtype="float16"), floats(256, 256, dtype="float16")),
    node("MatMul", floats(512, 512, dtype="double"), floats(512, 512, dtype="double")),
    node("MatMul", floats(1000, 1000), floats(1000)),
    node("MatMul", floats(10000, 8, 8), floats(10000, 8, 8)),
    node("Gemm", floats(512, 512, dtype="float16"), weights(512, 512, dtype="float16"), transA=1),
    node("MatMul", whole(256, 256, dtype="int32"), whole(256, 256, dtype="int32")),
    node("MatMul", whole(256, 256), whole(256, 256)),
    node("Gemm", floats(512, 512), weights(512, 512), weights(512), transB=1),
    node("MatMulInteger", whole(512, 512, dtype="uint8"), codes(512, 512), one(12, "uint8"), one(100, "uint8")),
    node("QLinearMatMul", whole(512, 512, dtype="uint8"), one(0.1), one(100, "uint8"), codes(512, 512), one(0.1), one(100, "uint8"),
         one(9), one(100, "uint8")),
    node("MatMulInteger16", whole(256, 256, dtype="int16"), whole(256, 256, dtype="int16"), domain=MS),
    node("MatMulIntegerToFloat", whole(512, 512, dtype="uint8"), codes(512, 512), one(0.1), one(0.1), one(12, "uint8"),
         one(100, "uint8"), domain=MS),
    node("DynamicQuantizeMatMul", floats(512, 512), codes(512, 512), one(0.1), one(100, "uint8"), domain=MS),
    node("QGemm", whole(512, 512, dtype="uint8"), one(0.1), one(100, "uint8"), codes(512, 512), one(0.1), one(100, "uint8"), None,
         one(9), one(100, "uint8"), domain=MS),
    node("FusedMatMul", floats(512, 512), weights(512, 512), domain=MS, alpha=0.5),
    node("TransposeMatMul", floats(512, 512), weights(512, 512), domain=MS, alpha=0.5),
    node("FusedGemm", floats(512, 512), weights(512, 512), weights(512), domain=MS, activation="Relu"),
    *(
        node("MatMulNBits", floats(rows, 1024), codes(1024, 32, bits * 4), weights(1024 * 32), domain=MS, K=1024, N=1024, bits=bits,
             block_size=32)
        for rows, bits in ((64, 4), (1, 4), (64, 8), (64, 2))
    ),
    node("MatMulBnb4", floats(64, 1024), codes(1024 * 512), weights(1024 * 16), domain=MS, K=1024, N=1024, block_size=64,
         quant_type=1),
    node("MatMulFpQ4", floats(64, 1024), codes(1024 * 32 * 20), ints(1024, 1024), domain=MS, blk_quant_type=0),
    node("Attention", floats(1, 8, 256, 64), floats(1, 8, 256, 64), floats(1, 8, 256, 64), version=24),
    node("RotaryEmbedding", floats(1, 16, 512, 64), weights(512, 32), weights(512, 32), whole(1, 512, high=512), version=23),
    node("QuantizeLinear", SQUARE, one(0.1), one(100, "uint8")),
    node("QuantizeLinear", SQUARE, one(0.1), one(0, "int16"), domain=MS),
    node("DequantizeLinear", BYTES, one(0.1), one(100, "uint8")),
    node("DequantizeLinear", BYTES, weights(1000, 10), block_size=100, axis=1),
    node("DequantizeLinear", whole(1000, 1000, dtype="int16"), one(0.1), one(0, "int16"), domain=MS),
    node("DynamicQuantizeLinear", SQUARE, outputs=3),
    *(
        node(name, BYTES, one(0.1), one(128, "uint8"), one(0.1), one(128, "uint8"), domain=MS)
        for name in ("QLinearLeakyRelu", "QLinearSigmoid")
    ),
    node("QLinearSoftmax", BYTES, one(0.1), one(128, "uint8"), one(1 / 256), one(0, "uint8"), domain=MS,
         opset=13),
]  # fmt: skip

SIGNAL = [
    *(node(name, whole(low=999999, high=1000000)) for name in ("BlackmanWindow", "HammingWindow", "HannWindow")),
    node("DFT", floats(64, 16384, 1), None, one(1, "int64")),
    node("DFT", floats(1000, 1000, 1), None, one(1, "int64"), onesided=1),
    node("DFT", floats(16, 1009, 1), None, one(1, "int64")),
    node("STFT", floats(8, 100000, 1), one(160, "int64"), weights(400), one(400, "int64")),
    node("MelWeightMatrix", one(1000, "int64"), whole(low=2000, high=2001), one(16000, "int64"), one(0), one(8000)),
    node("RandomNormalLike", SQUARE, version=21),
    node("RandomUniformLike", SQUARE, version=21),
    node("RandomNormal", shape=[1000, 1000], version=21),
    node("RandomUniform", shape=[1000, 1000], version=21),
    node("Multinomial", floats(100, 1000), sample_size=1000, version=21),
    node("Dropout", SQUARE, one(0.5), one(True, "bool"), outputs=2),
    node("NonMaxSuppression", floats(1, 10000, 4, low=0, high=1), floats(1, 10, 10000, low=0, high=1), ints(100),
         np.array([0.5], np.float32), np.array([0.2], np.float32)),
    node("NonMaxSuppression", floats(8, 1000, 4, low=0, high=1), floats(8, 20, 1000, low=0, high=1), ints(100),
         np.array([0.5], np.float32), np.array([0.2], np.float32), center_point_box=1),
    node("RNN", floats(250, 16, 256), weights(1, 256, 256), weights(1, 256, 256), hidden_size=256),
    node("GRU", floats(250, 16, 256), weights(1, 768, 256), weights(1, 768, 256), hidden_size=256, linear_before_reset=1),
    node("LSTM", floats(250, 16, 256), weights(1, 1024, 256), weights(1, 1024, 256), hidden_size=256),
    node("GRU", floats(250, 16, 256), weights(1, 768, 256), weights(1, 768, 256), hidden_size=256),
    node("LSTM", floats(1000, 16, 64), weights(2, 256, 64), weights(2, 256, 64), hidden_size=64, direction="bidirectional"),
    node("DynamicQuantizeLSTM", floats(250, 16, 256), codes(1, 256, 1024), codes(1, 256, 1024), None, None, None, None, None,
         np.array([0.001], np.float32), np.array([128], np.uint8), np.array([0.001], np.float32), np.array([128], np.uint8),
         domain=MS, hidden_size=256),
]  # fmt: skip

SEQUENCE = [
    node("SequenceConstruct", SQUARE, SQUARE),
    node("SequenceEmpty"),
    node("SequenceAt", parts(100, 100, 100), one(5, "int64")),
    node("SequenceErase", parts(100, 100, 100), one(5, "int64")),
    node("SequenceInsert", parts(100, 100, 100), floats(100, 100)),
    node("SequenceLength", parts(100, 100, 100)),
    node("ConcatFromSequence", parts(100, 100, 100), axis=0),
    node("SplitToSequence", SQUARE, one(10, "int64"), axis=0),
    node("OptionalGetElement", SQUARE),
    node("OptionalHasElement", SQUARE),
]

TEXT = [
    node("StringConcat", text(300, 300), text(300, 300)),
    node("StringSplit", text(300, 300), outputs=2, delimiter=" "),
    node("StringNormalizer", text(100000), locale="C", case_change_action="LOWER"),
    node("StringNormalizer", text(100000), locale="C", case_change_action="UPPER", stopwords=["Word 1"], is_case_sensitive=1),
    node("RegexFullMatch", text(300, 300), pattern="W[a-z]+ [0-9]{1,2}"),
    node("TfIdfVectorizer", whole(1000, 1000), mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=1,
         ngram_counts=[0, 100], ngram_indexes=list(range(150)), weights=[0.5] * 150,
         pool_int64s=[*range(100), *(number % 97 for number in range(100))]),
    node("TfIdfVectorizer", text(100, 1000), mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
         ngram_counts=[0], ngram_indexes=list(range(100)), pool_strings=[f"Word {number}" for number in range(100)]),
    node("Tokenizer", text(10000), domain=MS, mark=0, mincharnum=1, pad_value="#", separators=[" "]),
]  # fmt: skip

MACHINE_LEARNING = [
    node("ArrayFeatureExtractor", SQUARE, whole(1000, high=1000), domain=ML),
    node("Binarizer", SQUARE, domain=ML, threshold=0.5),
    node("CastMap", Draw((10000,), "map", 0, 0), domain=ML, map_form="DENSE", cast_to="TO_FLOAT"),
    node("CategoryMapper", text(100000), domain=ML, cats_int64s=list(range(500)), cats_strings=WORDS),
    node("CategoryMapper", whole(100000), domain=ML, cats_int64s=list(range(500)), cats_strings=WORDS),
    node("DictVectorizer", Draw((10000,), "map", 0, 0), domain=ML, int64_vocabulary=list(range(20000))),
    node("FeatureVectorizer", SQUARE, SQUARE, domain=ML, inputdimensions=[1000, 1000]),
    node("Imputer", SQUARE, domain=ML, imputed_value_floats=[0.5], replaced_value_float=float("nan")),
    node("LabelEncoder", whole(1000, 1000), domain=ML, keys_int64s=list(range(50)), values_int64s=list(range(50))),
    node("LabelEncoder", text(100000), domain=ML, keys_strings=WORDS, values_int64s=list(range(500))),
    node("LinearClassifier", ROWS, domain=ML, outputs=2, coefficients=weights(20480).tolist(), intercepts=[0.0] * 10,
         classlabels_ints=list(range(10)), post_transform="SOFTMAX"),
    node("LinearRegressor", ROWS, domain=ML, coefficients=weights(20480).tolist(), targets=10),
    node("LinearRegressor", ROWS, domain=ML, coefficients=weights(2048).tolist(), targets=1),
    *(node("Normalizer", SQUARE, domain=ML, norm=norm) for norm in ("L1", "L2", "MAX")),
    node("OneHotEncoder", whole(10000), domain=ML, cats_int64s=list(range(100))),
    node("Scaler", SQUARE, domain=ML, offset=weights(1000).tolist(), scale=weights(1000).tolist()),
    node("SVMRegressor", floats(1000, 100), domain=ML, kernel_type="RBF", kernel_params=[0.1, 0.0, 3.0], n_supports=200,
         support_vectors=weights(20000).tolist(), coefficients=weights(200).tolist(), rho=[0.5]),
    node("SVMClassifier", floats(1000, 100), domain=ML, outputs=2, kernel_type="RBF", kernel_params=[0.1, 0.0, 3.0],
         vectors_per_class=[100, 100, 100], support_vectors=weights(30000).tolist(), coefficients=weights(600).tolist(),
         rho=[0.5, 0.1, 0.2], classlabels_ints=[0, 1, 2]),
    node("ZipMap", floats(10000, 10), domain=ML, classlabels_int64s=list(range(10))),
    node("TreeEnsembleRegressor", floats(10000, 100), domain=ML, **forest("target", trees=100, depth=6)),
    node("TreeEnsembleRegressor", floats(1, 100), domain=ML, **forest("target", trees=100, depth=6)),
    node("TreeEnsembleClassifier", floats(10000, 100), domain=ML, outputs=2, **forest("class", trees=100, depth=6),
         classlabels_int64s=[0, 1, 2], post_transform="SOFTMAX"),
    node("TreeEnsemble", floats(10000, 100), domain=ML, version=5, **newer_forest(trees=100, depth=6)),
]  # fmt: skip

TRANSFORMER = [
    node("DecoderMaskedMultiHeadAttention", floats(1, 1, 512), floats(1, 1, 512), floats(1, 1, 512), None, None,
         floats(1, 8, 1024, 64), floats(1, 8, 1024, 64), np.array([1000], np.int32), domain=MS, num_heads=8, outputs=3,
         past_present_share_buffer=1, shared={"x5": "y1", "x6": "y2"}),
    node("Attention", floats(1, 256, 512), weights(512, 1536), weights(1536), domain=MS, num_heads=8),
    node("MultiHeadAttention", floats(1, 256, 512), floats(1, 256, 512), floats(1, 256, 512), domain=MS, num_heads=8),
    node("GroupQueryAttention", floats(1, 256, 512), floats(1, 256, 128), floats(1, 256, 128), floats(1, 2, 256, 64),
         floats(1, 2, 256, 64), np.array([[255]], np.int32), np.array([256], np.int32), domain=MS, num_heads=8, kv_num_heads=2,
         outputs=3),
    node("SparseAttention", floats(1, 256, 512), floats(1, 256, 128), floats(1, 256, 128), floats(1, 2, 256, 64),
         floats(1, 2, 256, 64), np.array([[0, 1, 3, 6, 10]], np.int32), np.array([[0, 0, 1, 0, 1, 2, 0, 1, 2, 3]], np.int32),
         np.array([256], np.int32), np.array([256], np.int32), domain=MS, num_heads=8, kv_num_heads=2, outputs=3,
         sparse_block_size=64, shared={"x3": "y1", "x4": "y2"}),
    node("LinearAttention", floats(1, 256, 512), floats(1, 256, 512), floats(1, 256, 512), floats(1, 8, 64, 64),
         floats(1, 256, 8, low=-0.1, high=0), floats(1, 256, 8, low=0), domain=MS, q_num_heads=8, kv_num_heads=8, outputs=2),
    node("LinearAttentionGate", floats(1, 1000, 512), weights(512), weights(512), floats(1, 1000, 512), domain=MS, outputs=2),
    node("CausalConvWithState", floats(1, 512, 1000), weights(512, 1, 4), weights(512), floats(1, 512, 3), domain=MS, outputs=2),
    node("RotaryEmbedding", floats(1, 16, 512, 64), whole(1, 512, high=512), weights(512, 32), weights(512, 32), domain=MS),
    node("MoE", floats(256, 256), floats(256, 8), weights(8, 512, 256), None, weights(8, 256, 512), domain=MS, k=2),
    node("QMoE", floats(256, 256), floats(256, 8), codes(8, 512, 128), weights(8, 512), None, codes(8, 256, 256), weights(8, 256),
         domain=MS, k=2),
    node("EmbedLayerNormalization", TOKENS, whole(4, 256, high=2, dtype="int32"), weights(1000, 768), weights(512, 768),
         weights(2, 768), weights(768), weights(768), domain=MS, outputs=2),
    node("QEmbedLayerNormalization", TOKENS, whole(4, 256, high=2, dtype="int32"), codes(1000, 768), codes(512, 768), codes(2, 768),
         codes(768), codes(768), None, one(0.1), one(0.1), one(0.1), one(0.1), one(0.1),
         *(one(100, "uint8") for _ in range(5)), domain=MS, outputs=2),
    node("QAttention", whole(1, 256, 512, dtype="uint8"), codes(512, 1536), weights(1536), one(0.01), one(0.01), None,
         one(100, "uint8"), one(128, "uint8"), domain=MS, num_heads=8),
    node("MRotaryEmbedding", floats(1, 16, 512, 64), whole(3, 1, 512, high=512), weights(512, 32), weights(512, 32), domain=MS,
         mrope_section=[8, 12, 12]),
]  # fmt: skip

LOOP = """b (int64 i, bool c, float[1000] x) => (bool d, float[1000] y, float[1000] s) {
    d = Identity(c) y = Add(x, x) s = Neg(x)
}"""
SCAN = "b (float[1000] h, float[1000] x) => (float[1000] y, float[1000] s) {y = Add(h, x) s = Neg(y)}"

CONTROL = [
    node("If", truths(), then_branch=graph(f"t {FILL}"), else_branch=graph(f"e {FILL}")),
    node("Loop", one(1000, "int64"), one(True, "bool"), floats(1000), body=graph(LOOP), outputs=2),
    node("Scan", floats(1000), SQUARE, body=graph(SCAN), outputs=2, num_scan_inputs=1),
    node("Optional", SQUARE),
]

INSTANCES = [*UNARY, *BINARY, *REDUCE, *MOVE, *CONV, *PRODUCT, *SIGNAL, *SEQUENCE, *TEXT, *MACHINE_LEARNING, *TRANSFORMER, *CONTROL]
"""All of them."""
