"""How long is a run of one operator deaf to signals, flags and times?

    python benchmarks/cancel_operators.py [NAME …] [--reference] [--threads N] [--over MS] [--gib N]

Runs each of the operators below once at sizes that take some tenths of a second or more, in a process of its own with a limit of
memory, and notes when a signal that comes every few milliseconds is heard: the longest time between two of them, in processor time,
is how long Ctrl-C may have to wait. Another run is ended by a flag where that time began, and prints how long it took to return.
`--reference` runs the reference provider only, on a tenth of the elements. Bar: 100 ms.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx import InferenceSession, RunOptions, RunTerminated, SessionOptions
from sardonyx.errors import SardonyxError
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

BAR_MS = 100
TICK_SECONDS = 0.004
M = 1_000_000

HEAD = "ir_version 10\nopset 23, com.microsoft 1, ai.onnx.ml 5\n"
"""What each model begins with."""

CASES: dict[str, tuple[str, str]] = {
    # name: (inputs, body); `M` behind a number is a million, and `y` is given out
    "MatMul 1x20M x 20Mx1": ("a: float[1, 20M], b: float[20M, 1]", "y = MatMul(a, b)"),
    "MatMul 4x5M x 5Mx4": ("a: float[4, 5M], b: float[5M, 4]", "y = MatMul(a, b)"),
    "MatMul 20x1M x 1Mx20": ("a: float[20, 1M], b: float[1M, 20]", "y = MatMul(a, b)"),
    "MatMul 3x20M x vector": ("a: float[3, 20M], b: float[20M]", "y = MatMul(a, b)"),
    "MatMul double 10M": ("a: double[2, 10M], b: double[10M, 2]", "y = MatMul(a, b)"),
    "MatMul int64 20M": ("a: int64[2, 20M], b: int64[20M, 2]", "y = MatMul(a, b)"),
    "MatMul float16 20M": ("a: float16[2, 20M], b: float16[20M, 2]", "y = MatMul(a, b)"),
    "MatMul 4096": ("a: float[4096, 4096]", "y = MatMul(a, a)"),
    "MatMul double 2500": ("a: double[2500, 2500]", "y = MatMul(a, a)"),
    "MatMul int32 2000": ("a: int32[2000, 2000]", "y = MatMul(a, a)"),
    "Gemm transposed 10M": ("a: float[10M, 3], b: float[3, 10M]", "y = Gemm(a, b) {transA = 1, transB = 1}"),
    "Gemm outer 12000": ("a: float[12000, 1], b: float[1, 12000]", "y = Gemm(a, b)"),
    "MatMulInteger 6000": ("a: uint8[6000, 6000], b: int8[6000, 6000]", "y = MatMulInteger(a, b)"),
    "MatMulInteger 1x20M": ("a: uint8[1, 20M], b: int8[20M, 1]", "y = MatMulInteger(a, b)"),
    "MatMulNBits 1x2M": (
        "x: float[1, 2M], b: uint8[320, 62500, 16], s: float[20M]",
        "y = com.microsoft.MatMulNBits(x, b, s) {K = 2000000, N = 320, bits = 4, block_size = 32}",
    ),
    "Einsum ij,jk->ik": ("a: float[3000, 3000]", 'y = Einsum(a, a) {equation = "ij,jk->ik"}'),
    "Einsum i,i->": ("a: float[100M]", 'y = Einsum(a, a) {equation = "i,i->"}'),
    "Einsum ij->ji": ("a: float[10000, 10000]", 'y = Einsum(a) {equation = "ij->ji"}'),
    "Einsum three": ("a: float[100, 100, 100]", 'y = Einsum(a, a, a) {equation = "abc,bdc,dac->abd"}'),
    "Conv 2M channels": ("x: float[1, 2M, 4, 4], w: float[4, 2M, 1, 1]", "y = Conv(x, w)"),
    "Conv 3x3 200k channels": ("x: float[1, 200000, 6, 6], w: float[8, 200000, 3, 3]", "y = Conv(x, w)"),
    "Conv plane": ("x: float[1, 1, 8000, 8000], w: float[1, 1, 11, 11]", "y = Conv(x, w)"),
    "Conv image": ("x: float[1, 3, 4000, 4000], w: float[16, 3, 3, 3]", "y = Conv(x, w)"),
    "Conv 1D": ("x: float[1, 1, 50M], w: float[1, 1, 9]", "y = Conv(x, w)"),
    "Conv 1D one long filter": ("x: float[1, 1, 10M], w: float[1, 1, 4M]", "y = Conv(x, w) {strides = [100000]}"),
    "Conv depthwise": ("x: float[1, 64, 1200, 1200], w: float[64, 1, 5, 5]", "y = Conv(x, w) {group = 64}"),
    "Conv 3D": ("x: float[1, 4, 128, 200, 200], w: float[8, 4, 3, 3, 3]", "y = Conv(x, w)"),
    "Conv double": ("x: double[1, 16, 600, 600], w: double[16, 16, 3, 3]", "y = Conv(x, w)"),
    "ConvTranspose": ("x: float[1, 64, 300, 300], w: float[64, 64, 3, 3]", "y = ConvTranspose(x, w) {strides = [2, 2]}"),
    "ConvInteger": ("x: uint8[1, 64, 512, 512], w: int8[64, 64, 3, 3]", "y = ConvInteger(x, w)"),
    "ConvInteger 1M channels": ("x: uint8[1, 2M, 3, 3], w: int8[4, 2M, 1, 1]", "y = ConvInteger(x, w)"),
    "DeformConv": ("x: float[1, 16, 512, 512], w: float[16, 16, 3, 3], o: float[1, 18, 510, 510]", "y = DeformConv(x, w, o)"),
    "LSTM 4096": ("x: float[6, 1, 64], w: float[1, 16384, 64], r: float[1, 16384, 4096]", "y = LSTM(x, w, r) {hidden_size = 4096}"),
    "LSTM wide input": ("x: float[1, 1, 8M], w: float[1, 4, 8M], r: float[1, 4, 1]", "y = LSTM(x, w, r) {hidden_size = 1}"),
    "LSTM large batch": (
        "x: float[1, 100000, 64], w: float[1, 512, 64], r: float[1, 512, 128]",
        "y = LSTM(x, w, r) {hidden_size = 128}",
    ),
    "GRU long": ("x: float[100000, 1, 32], w: float[1, 96, 32], r: float[1, 96, 32]", "y = GRU(x, w, r) {hidden_size = 32}"),
    "Softmax row": ("x: float[1, 150M]", "y = Softmax(x)"),
    "Softmax columns": ("x: float[40M, 3]", "y = Softmax(x) {axis = 0}"),
    "Softmax double row": ("x: double[1, 60M]", "y = Softmax(x)"),
    "LogSoftmax row": ("x: float[1, 150M]", "y = LogSoftmax(x)"),
    "Hardmax row": ("x: float[1, 150M]", "y = Hardmax(x)"),
    "LayerNormalization row": ("x: float[1, 100M], s: float[100M]", "y = LayerNormalization(x, s)"),
    "RMSNormalization row": ("x: float[1, 100M], s: float[100M]", "y = RMSNormalization(x, s)"),
    "InstanceNormalization": ("x: float[1, 1, 100M], s: float[1], b: float[1]", "y = InstanceNormalization(x, s, b)"),
    "GroupNormalization": ("x: float[1, 2, 50M], s: float[2], b: float[2]", "y = GroupNormalization(x, s, b) {num_groups = 1}"),
    "LpNormalization row": ("x: float[1, 100M]", "y = LpNormalization(x)"),
    "MeanVarianceNormalization": ("x: float[1, 1, 1000, 100000]", "y = MeanVarianceNormalization(x)"),
    "SkipLayerNormalization": (
        "x: float[1, 1, 50M], k: float[1, 1, 50M], g: float[50M]",
        "y = com.microsoft.SkipLayerNormalization(x, k, g)",
    ),
    "LRN": ("x: float[1, 64, 1000, 1000]", "y = LRN(x) {size = 5}"),
    "ReduceSum all": ("x: float[200M]", "y = ReduceSum(x)"),
    "ReduceSum double": ("x: double[100M]", "y = ReduceSum(x)"),
    "ReduceSum float16": ("x: float16[200M]", "y = ReduceSum(x)"),
    "ReduceSum int64": ("x: int64[100M]", "y = ReduceSum(x)"),
    "ReduceMean columns": ("x: float[50M, 3]", "a: int64[1] = [0]\ny = ReduceMean(x, a)"),
    "ReduceMax row": ("x: float[1, 200M]", "a: int64[1] = [1]\ny = ReduceMax(x, a)"),
    "ReduceMax uint8": ("x: uint8[500M]", "y = ReduceMax(x)"),
    "ReduceLogSumExp": ("x: float[100M]", "y = ReduceLogSumExp(x)"),
    "ReduceProd": ("x: float[200M]", "y = ReduceProd(x)"),
    "ArgMax row": ("x: float[1, 200M]", "y = ArgMax(x) {axis = 1}"),
    "ArgMin columns": ("x: float[60M, 2]", "y = ArgMin(x) {axis = 0}"),
    "CumSum row": ("x: float[1, 150M]", "a: int64[] = 1\ny = CumSum(x, a)"),
    "CumSum columns": ("x: float[30M, 3]", "a: int64[] = 0\ny = CumSum(x, a)"),
    "CumSum int64": ("x: int64[60M]", "a: int64[] = 0\ny = CumSum(x, a) {reverse = 1}"),
    "GlobalAveragePool": ("x: float[1, 1, 10000, 10000]", "y = GlobalAveragePool(x)"),
    "TopK many": ("x: float[20M]", "k: int64[1] = [5000000]\ny, i = TopK(x, k)"),
    "TopK int64": ("x: int64[20M]", "k: int64[1] = [5000000]\ny, i = TopK(x, k)"),
    "TopK few": ("x: float[150M]", "k: int64[1] = [50]\ny, i = TopK(x, k)"),
    "TopK columns": ("x: float[4M, 4]", "k: int64[1] = [1000000]\ny, i = TopK(x, k) {axis = 0}"),
    "TopK unsorted": ("x: float[20M]", "k: int64[1] = [5000000]\ny, i = TopK(x, k) {sorted = 0}"),
    "TopK double": ("x: double[10M]", "k: int64[1] = [3000000]\ny, i = TopK(x, k)"),
    "Unique": ("x: float[20M]", "y = Unique(x)"),
    "Unique int64": ("x: int64[20M]", "y, i, v, c = Unique(x)"),
    "Unique rows": ("x: int64[1M, 4]", "y = Unique(x) {axis = 0}"),
    "Unique unsorted": ("x: int64[10M]", "y = Unique(x) {sorted = 0}"),
    "NonZero": ("x: float[80M]", "y = NonZero(x)"),
    "Compress": ("x: float[100M], c: bool[100M]", "y = Compress(x, c)"),
    "Expand": ("x: float[200, 1]", "s: int64[2] = [200, 1000000]\ny = Expand(x, s)"),
    "Expand scalar": ("x: float[1]", "s: int64[1] = [300000000]\ny = Expand(x, s)"),
    "Tile": ("x: float[1000, 100]", "r: int64[2] = [10, 200]\ny = Tile(x, r)"),
    "Tile scalar": ("x: float[1, 1]", "r: int64[2] = [1, 300000000]\ny = Tile(x, r)"),
    "Transpose 2D": ("x: float[14000, 14000]", "y = Transpose(x)"),
    "Transpose 5D": ("x: float[40, 50, 30, 40, 50]", "y = Transpose(x) {perm = [4, 2, 0, 3, 1]}"),
    "Transpose uint8": ("x: uint8[20000, 20000]", "y = Transpose(x)"),
    "Resize linear": (
        "x: float[1, 1, 100, 100]",
        's: float[4] = [1, 1, 140, 140]\ny = Resize(x, _, s) {mode = "linear"}',
    ),
    "Resize cubic": ("x: float[1, 1, 100, 100]", 's: float[4] = [1, 1, 100, 100]\ny = Resize(x, _, s) {mode = "cubic"}'),
    "Resize nearest": ("x: float[1, 1, 100, 100]", "s: float[4] = [1, 1, 140, 140]\ny = Resize(x, _, s)"),
    "Resize down antialias": (
        "x: float[1, 1, 10000, 10000]",
        's: float[4] = [1, 1, 0.001, 0.001]\ny = Resize(x, _, s) {mode = "linear", antialias = 1}',
    ),
    "Resize 1D": ("x: float[1, 1, 1000]", 's: float[3] = [1, 1, 150000]\ny = Resize(x, _, s) {mode = "linear"}'),
    "Gather": ("x: float[40M, 2], i: int64[50M]", "y = Gather(x, i)"),
    "Gather rows": ("x: float[100, 1M], i: int64[200]", "y = Gather(x, i)"),
    "GatherElements": ("x: float[60M], i: int64[60M]", "y = GatherElements(x, i)"),
    "GatherND": ("x: float[6000, 6000], i: int64[40M, 2]", "y = GatherND(x, i)"),
    "ScatterElements": ("x: float[40M], i: int64[40M], u: float[40M]", "y = ScatterElements(x, i, u)"),
    "ScatterElements add": ("x: float[40M], i: int64[40M], u: float[40M]", 'y = ScatterElements(x, i, u) {reduction = "add"}'),
    "ScatterND": ("x: float[40M], i: int64[40M, 1], u: float[40M]", "y = ScatterND(x, i, u)"),
    "ScatterND max": ("x: float[40M], i: int64[40M, 1], u: float[40M]", 'y = ScatterND(x, i, u) {reduction = "max"}'),
    "Pad constant": ("x: float[10]", "p: int64[2] = [150000000, 150000000]\ny = Pad(x, p)"),
    "Pad reflect": ("x: float[100M]", 'p: int64[2] = [90000000, 90000000]\ny = Pad(x, p) {mode = "reflect"}'),
    "Pad edge": ("x: float[2, 10]", 'p: int64[4] = [0, 90000000, 0, 90000000]\ny = Pad(x, p) {mode = "edge"}'),
    "Slice steps": (
        "x: float[200M]",
        "s: int64[1] = [-1]\ne: int64[1] = [-300000000]\na: int64[1] = [0]\ny = Slice(x, s, e, a, s)",
    ),
    "Concat": ("x: float[100M]", "y = Concat(x, x, x) {axis = 0}"),
    "Split": ("x: float[2, 100M]", "y, z = Split(x) {axis = 1, num_outputs = 2}"),
    "Trilu": ("x: float[14000, 14000]", "y = Trilu(x)"),
    "DepthToSpace": ("x: float[1, 4, 5000, 5000]", "y = DepthToSpace(x) {blocksize = 2}"),
    "ReverseSequence": ("x: float[100M, 1], l: int64[1]", "y = ReverseSequence(x, l)"),
    "OneHot": ("i: int64[1000]", "d: int64[] = 200000\nv: float[2] = [0.0, 1.0]\ny = OneHot(i, d, v)"),
    "EyeLike": ("x: float[14000, 14000]", "y = EyeLike(x)"),
    "ConstantOfShape": ("s: int64[1]", "t: int64[1] = [300000000]\nu = Max(s, t)\ny = ConstantOfShape(u)"),
    "Range": ("n: int64[]", "o: int64[] = 0\nd: int64[] = 1\nm: int64[] = 100000000\nl = Max(n, m)\ny = Range(o, l, d)"),
    "Where": ("c: bool[100M], x: float[100M]", "y = Where(c, x, x)"),
    "Exp": ("x: float[150M]", "y = Exp(x)"),
    "Add": ("x: float[150M]", "y = Add(x, x)"),
    "Pow double": ("x: double[60M]", "y = Pow(x, x)"),
    "Mod int64": ("x: int64[80M]", "y = Mod(x, x)"),
    "Cast to float16": ("x: float[150M]", "y = Cast(x) {to = 10}"),
    "Cast to string": ("x: float[2M]", "y = Cast(x) {to = 8}"),
    "Cast from string": ("x: string[4M]", "y = Cast(x) {to = 1}"),
    "BitCast": ("x: float[200M]", "y = Identity(x)"),
    "StringConcat": ("x: string[10M]", "y = StringConcat(x, x)"),
    "StringSplit": ("x: string[5M]", 'y, n = StringSplit(x) {delimiter = "1"}'),
    "StringNormalizer": ("x: string[5M]", 'y = StringNormalizer(x) {case_change_action = "UPPER"}'),
    "RegexFullMatch": ("x: string[5M]", 'y = RegexFullMatch(x) {pattern = "[0-9]+1"}'),
    "Equal strings": ("x: string[20M]", "y = Equal(x, x)"),
    "Unique strings": ("x: string[4M]", "y = Unique(x)"),
    "Gather strings": ("x: string[10M], i: int64[10M]", "y = Gather(x, i)"),
    "Transpose strings": ("x: string[3000, 3000]", "y = Transpose(x)"),
    "Concat strings": ("x: string[10M]", "y = Concat(x, x) {axis = 0}"),
    "LabelEncoder strings": (
        "x: string[5M]",
        'y = ai.onnx.ml.LabelEncoder(x) {keys_strings = ["1", "2"], values_int64s = [1, 2]}',
    ),
    "LabelEncoder numbers": (
        "x: int64[50M]",
        "y = ai.onnx.ml.LabelEncoder(x) {keys_int64s = [1, 2], values_floats = [1.0, 2.0]}",
    ),
    "TfIdfVectorizer": (
        "x: int64[10M]",
        'y = TfIdfVectorizer(x) {max_gram_length = 2, max_skip_count = 1, min_gram_length = 1, mode = "TF", '
        "ngram_counts = [0, 2], ngram_indexes = [0, 1, 2], pool_int64s = [1, 2, 1, 3]}",
    ),
    "Tokenizer": (
        "x: string[500000]",
        'y = com.microsoft.Tokenizer(x) {mark = 0, mincharnum = 1, pad_value = "#", separators = ["1"]}',
    ),
    "MurmurHash3": ("x: int32[60M]", "y = com.microsoft.MurmurHash3(x)"),
    "Det": ("x: float[2500, 2500]", "y = Det(x)"),
    "Inverse": ("x: float[1800, 1800]", "y = com.microsoft.Inverse(x)"),
    "DFT prime": ("x: float[1, 9999991, 1]", "y = DFT(x)"),
    "DFT 2^23": ("x: float[1, 8388608, 2]", "y = DFT(x)"),
    "DFT double": ("x: double[1, 5000000, 1]", "y = DFT(x)"),
    "STFT": ("x: float[1, 20M, 1], w: float[1024]", "s: int64[] = 256\ny = STFT(x, s, w)"),
    "HannWindow": ("n: int64[]", "m: int64[] = 100000000\nl = Max(n, m)\ny = HannWindow(l)"),
    "MelWeightMatrix": (
        "n: int64[]",
        "a: int64[] = 128\nb: int64[] = 600000\nr: int64[] = 16000\nl: float[] = 0\nh: float[] = 8000\n"
        "m = Max(n, a)\ny = MelWeightMatrix(m, b, r, l, h)",
    ),
    "NonMaxSuppression": (
        "b: float[1, 200000, 4], s: float[1, 1, 200000]",
        "k: int64[1] = [200000]\nt: float[1] = [0.9]\ny = NonMaxSuppression(b, s, k, t)",
    ),
    "GridSample": ("x: float[1, 1, 100, 100], g: float[1, 8000, 8000, 2]", "y = GridSample(x, g)"),
    "AffineGrid": ("t: float[1, 2, 3]", "s: int64[4] = [1, 1, 9000, 9000]\ny = AffineGrid(t, s)"),
    "RoiAlign": (
        "x: float[1, 8, 500, 500], r: float[20000, 4], i: int64[20000]",
        "b = Sub(i, i)\ny = RoiAlign(x, r, b) {output_height = 14, output_width = 14, sampling_ratio = 4}",
    ),
    "MaxRoiPool": ("x: float[1, 8, 500, 500], r: float[20000, 5]", "y = MaxRoiPool(x, r) {pooled_shape = [14, 14]}"),
    "MaxPool": ("x: float[1, 1, 3000, 3000]", "y = MaxPool(x) {kernel_shape = [25, 25]}"),
    "MaxPool one window": ("x: float[1, 1, 100M]", "y = MaxPool(x) {kernel_shape = [100000000]}"),
    "MaxPool indices": ("x: float[1, 1, 3000, 3000]", "y, i = MaxPool(x) {kernel_shape = [15, 15]}"),
    "AveragePool": ("x: float[1, 1, 3000, 3000]", "y = AveragePool(x) {kernel_shape = [25, 25]}"),
    "AveragePool one window": ("x: float[1, 1, 100M]", "y = AveragePool(x) {kernel_shape = [100000000]}"),
    "LpPool one window": ("x: float[1, 1, 10000, 8000]", "y = LpPool(x) {kernel_shape = [10000, 8000]}"),
    "MaxUnpool": (
        "x: float[1, 1, 5000, 5000], i: int64[1, 1, 5000, 5000]",
        "y = MaxUnpool(x, i) {kernel_shape = [2, 2], strides = [2, 2]}",
    ),
    "Col2Im": (
        "x: float[1, 9, 4M]",
        "s: int64[2] = [2002, 2002]\nb: int64[2] = [3, 3]\ny = Col2Im(x, s, b)",
    ),
    "Attention one head": (
        "q: float[1, 1, 4, 128], k: float[1, 1, 1M, 128], v: float[1, 1, 1M, 128]",
        "y = Attention(q, k, v)",
    ),
    "Attention square": ("q: float[1, 1, 8000, 64]", "y = Attention(q, q, q)"),
    "MultiHeadAttention": (
        "q: float[1, 4, 128], k: float[1, 500000, 128]",
        "y = com.microsoft.MultiHeadAttention(q, k, k) {num_heads = 1}",
    ),
    "LinearAttention": (
        "q: float[1, 100000, 128]",
        'y, z = com.microsoft.LinearAttention(q, q, q) {q_num_heads = 1, kv_num_heads = 1, update_rule = "linear"}',
    ),
    "RotaryEmbedding": ("x: float[1, 8, 100000, 128], c: float[1, 100000, 64]", "y = RotaryEmbedding(x, c, c)"),
    "QuantizeLinear": ("x: float[200M]", "s: float[] = 0.1\nz: uint8[] = 3\ny = QuantizeLinear(x, s, z)"),
    "DequantizeLinear": ("x: uint8[200M]", "s: float[] = 0.1\ny = DequantizeLinear(x, s)"),
    "DynamicQuantizeLinear": ("x: float[200M]", "y, s, z = DynamicQuantizeLinear(x)"),
    "RandomNormal": ("n: float[1]", "r = RandomNormal() {shape = [50000000]}\ny = Add(r, n)"),
    "RandomUniformLike": ("x: float[60M]", "y = RandomUniformLike(x)"),
    "Bernoulli": ("x: float[40M]", "a = Abs(x)\nb = Sub(a, a)\ny = Bernoulli(b)"),
    "Multinomial": ("x: float[1, 1000]", "y = Multinomial(x) {sample_size = 20000000}"),
    "Dropout": ("x: float[40M]", "r: float[] = 0.5\nt: bool[] = true\ny = Dropout(x, r, t)"),
    "SVMRegressor": (
        "x: float[4M, 4]",
        'y = ai.onnx.ml.SVMRegressor(x) {coefficients = [1.0, 2.0, 3.0], n_supports = 3, rho = [0.5], kernel_type = "RBF", '
        "kernel_params = [0.5, 0.0, 3.0], support_vectors = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}",
    ),
    "LinearRegressor": (
        "x: float[1, 20M]",
        "w: float[20M, 2] = ... 3\ny = MatMul(x, w)",
    ),
    "Normalizer": ("x: float[1, 100M]", 'y = ai.onnx.ml.Normalizer(x) {norm = "L2"}'),
    "Scaler": ("x: float[40M, 2]", "y = ai.onnx.ml.Scaler(x) {offset = [1.0, 2.0], scale = [1.0, 2.0]}"),
    "ArrayFeatureExtractor": ("x: float[2, 20M], i: int64[50M]", "y = ai.onnx.ml.ArrayFeatureExtractor(x, i)"),
    "CDist": ("a: float[4000, 64]", 'y = com.microsoft.CDist(a, a) {metric = "euclidean"}'),
    "NegativeLogLikelihoodLoss": ("x: float[20M, 4], i: int64[20M]", "z = Sub(i, i)\ny = NegativeLogLikelihoodLoss(x, z)"),
    "SoftmaxCrossEntropyLoss": ("x: float[20M, 4], i: int64[20M]", "z = Sub(i, i)\ny = SoftmaxCrossEntropyLoss(x, z)"),
    "SplitToSequence": ("x: float[500000, 100]", "y = SplitToSequence(x) {keepdims = 0}"),
    "ConcatFromSequence": ("x: float[200M]", "s = SequenceConstruct(x, x)\ny = ConcatFromSequence(s) {axis = 0}"),
    "TensorScatter": ("x: float[1, 1, 100M, 1], u: float[1, 1, 1, 1]", "y = TensorScatter(x, u)"),
    "DynamicTimeWarping": ("x: float[5000, 5000]", "y = com.microsoft.DynamicTimeWarping(x)"),
}


def cut_down(text: str, factor: int) -> str:
    """Write numbers of millions out, divided by `factor`."""
    return re.sub(r"\b(\d+)M\b", lambda found: str(int(found[1]) * M // factor), text)


def feed_of(session: InferenceSession) -> dict[str, Any]:
    """Random elements; indices are small, texts are numbers."""
    rng = np.random.default_rng(0)
    feed: dict[str, Any] = {}
    for item in session.get_inputs():
        kind = item.type[len("tensor(") : -1]
        count = math.prod(item.shape)
        block = min(count, 1 << 20)
        if kind == "string":
            drawn: Any = np.array([str(number) for number in rng.integers(0, 100_000, block)], object)
        elif kind == "bool":
            drawn = rng.integers(0, 2, block) > 0
        elif "int" in kind:
            drawn = rng.integers(1, 100, block).astype(kind)
        else:
            drawn = rng.standard_normal(block).astype({"float": np.float32, "double": np.float64, "float16": np.float16}[kind])
        feed[item.name] = np.resize(drawn, count).reshape(item.shape)
    return feed


def longest_wait(run: Callable[[], object]) -> tuple[float, float, float]:
    """Return how long `run` takes, and when the longest time without a signal's handler begins and how long it is, in seconds.

    Times are those of the process on its processors, which are one where it has one thread.
    """
    heard: list[float] = []
    signal.signal(signal.SIGALRM, lambda *_: heard.append(time.process_time()))
    signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
    start = time.process_time()
    try:
        run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    end = time.process_time()
    times = [start, *heard, end]
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    longest = max(range(len(waits)), key=waits.__getitem__)
    return end - start, times[longest] - start, waits[longest]


def flagged(session: InferenceSession, feed: dict[str, Any], after: float) -> float | None:
    """Return the seconds after which a run has ended whose flag is set `after` its beginning; None if it was done before.

    Times are as in `longest_wait`.
    """
    options = RunOptions()
    set_at: list[float] = []

    def end_it() -> None:
        start = time.process_time()
        while time.process_time() - start < after:
            time.sleep(0.002)
        options.terminate = True
        set_at.append(time.process_time())

    thread = threading.Thread(target=end_it, daemon=True)
    thread.start()
    try:
        session.run(None, feed, options)
    except RunTerminated:
        return time.process_time() - set_at[0]
    return None


def measure(name: str, *, reference: bool, threads: int) -> str:
    """Run one case in this process; return its line."""
    inputs, body = (cut_down(text, 10 if reference else 1) for text in CASES[name])
    outputs = re.match(r"[\w, ]+(?= =)", body.splitlines()[-1])
    assert outputs is not None
    text = f"{HEAD}graph g({inputs}) -> ({', '.join(outputs[0].split(', ')[:1])}) {{\n{body}\n}}"
    options = SessionOptions()
    options.intra_op_num_threads = threads
    providers = ["ReferenceExecutionProvider"] if reference else None
    session = InferenceSession(to_bytes(parse_model(text)), options, providers)
    feed = feed_of(session)
    whole, at, wait = longest_wait(lambda: session.run(None, feed))
    found = [flagged(session, feed, after) for after in (at + min(0.01, wait / 4), 0.1 * whole, 0.5 * whole)]
    by_flag = max((seconds for seconds in found if seconds is not None), default=None)
    heard = "     -" if by_flag is None else f"{by_flag * 1e3:6.0f}"
    worst = max(wait, by_flag or 0) * 1e3
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    over = "  over the bar" if worst > BAR_MS else ""
    return f"{name:>28} {whole * 1e3:8.0f} ms  signal {wait * 1e3:6.0f} at {at * 1e3:6.0f}  flag {heard}  {gib:4.1f} GiB{over}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="cases whose names begin so; all without any")
    parser.add_argument("--reference", action="store_true", help="run the reference provider only")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--over", type=float, default=0, help="print only waits of more milliseconds than this")
    parser.add_argument("--gib", type=float, default=3, help="the most memory that a case may take")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.alone is not None:
        limit = int(given.gib * (1 << 30)) + (1 << 30)  # address space, of which libraries take a part
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            print(measure(given.alone, reference=given.reference, threads=given.threads))
        except SardonyxError as error:
            print(f"{given.alone:>28} {type(error).__name__}: {str(error)[:200]}")
        return
    flags = ["--threads", str(given.threads), "--gib", str(given.gib), *["--reference"] * given.reference]
    for name in CASES:
        if not given.names or any(name.startswith(start) for start in given.names):
            done = subprocess.run(
                [sys.executable, __file__, "--alone", name, *flags], capture_output=True, text=True, check=False, env=os.environ
            )
            line = done.stdout.strip() or f"{name:>28} ended by {done.returncode}: {done.stderr.strip()[-200:]}"
            found = re.search(r"signal +(\d+) .*flag +(\d+|-)", line)
            if found is None or max(int(text) for text in found.groups() if text != "-") >= given.over:
                print(line, flush=True)


if __name__ == "__main__":
    main()
