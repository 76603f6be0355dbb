"""Wherever nodes are placed, the answer is the same: models placed at random over all test providers and our own."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.provider_sets import SETS

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.providers import REFERENCE

CONVOLUTIONS = """graph(x: float[n, 4, 8, 8]) -> (y: float[n, 10]) {
    w0: float[8, 4, 3, 3] = ... 1
    w1: float[8, 8, 3, 3] = ... 2
    w2: float[10, 8] = ... 3
    flat: int64[2] = [0, -1]
    a = Conv(x, w0) {pads = [1, 1, 1, 1]}
    b = Relu(a)
    c = Conv(b, w1) {pads = [1, 1, 1, 1]}
    d = Sigmoid(c)
    e = Mul(c, d)
    f = Add(e, b)
    g = MaxPool(f) {kernel_shape = [2, 2], strides = [2, 2]}
    h = Transpose(g) {perm = [0, 2, 3, 1]}
    i = Neg(h)
    j = Transpose(i) {perm = [0, 3, 1, 2]}
    k = GlobalAveragePool(j)
    l = Reshape(k, flat)
    y = Gemm(l, w2) {transB = 1}
}"""
TOKENS = """graph(x: float[b, s, 16], m: bool[b, s]) -> (y: float[b, s, 16], z: int64[b, k]) {
    w: float[16, 16] = ... 1
    scale: float[16] = ... 2
    heads: int64[4] = [0, 0, 2, 8]
    back: int64[3] = [0, 0, 16]
    low: float[] = -1000.0
    zero: float[] = 0.0
    axes: int64[2] = [1, 2]
    two: int64[1] = [2]
    one: int64[1] = [1]
    a = LayerNormalization(x, scale)
    q = MatMul(a, w)
    r = Reshape(q, heads)
    t = Transpose(r) {perm = [0, 2, 1, 3]}
    u = Transpose(r) {perm = [0, 2, 3, 1]}
    v = MatMul(t, u)
    o = Unsqueeze(m, axes)
    p = Where(o, zero, low)
    c = Add(v, p)
    d = Softmax(c)
    e = MatMul(d, t)
    f = Transpose(e) {perm = [0, 2, 1, 3]}
    g = Reshape(f, back)
    y = Add(g, x)
    h = ReduceSum(y, two) {keepdims = 0}
    j = Neg(h)
    k, z = TopK(j, one)
}"""
FEEDS: dict[str, dict[str, Any]] = {
    CONVOLUTIONS: {"x": np.random.default_rng(0).standard_normal((2, 4, 8, 8)).astype(np.float32)},
    TOKENS: {
        "x": np.random.default_rng(1).standard_normal((2, 5, 16)).astype(np.float32),
        "m": np.random.default_rng(2).random((2, 5)) < 0.8,
    },
}


def _name_of(provider: Any) -> str:
    name: str = provider[0] if isinstance(provider, tuple) else getattr(provider, "name", provider)
    return name


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("text", [CONVOLUTIONS, TOKENS], ids=["convolutions", "tokens"])
def test_placement_does_not_change_the_answer(text: str, seed: int) -> None:
    """Providers in a random order, two nodes of three placed at random; what a provider declines falls through."""
    draw = random.Random(seed)
    content, feed = to_bytes(model(text)), FEEDS[text]
    providers = [provider for item in SETS if item.name != "reference" for provider in item.make()]
    draw.shuffle(providers)
    names = [REFERENCE, *(_name_of(provider) for provider in providers)]
    options = ort.SessionOptions()
    options.placement_fall_through = True
    for index in range(len(model(text).graph)):
        if draw.random() < 0.67:
            options.place(str(index), draw.choice(names))
    expected = ort.InferenceSession(content, providers=[REFERENCE]).run(None, feed)
    for found, wanted in zip(ort.InferenceSession(content, options, providers=providers).run(None, feed), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("text", [CONVOLUTIONS, TOKENS], ids=["convolutions", "tokens"])
def test_limits_streams_and_executors_do_not_change_the_answer(text: str, seed: int, tmp_path: Path) -> None:
    """Providers in a random order, each with a random part of the memory, the nodes in random streams, a random executor."""
    draw = random.Random(seed)
    content, feed = to_bytes(model(text)), FEEDS[text]
    providers = [provider for item in SETS if item.name != "reference" for provider in item.make()]
    draw.shuffle(providers)
    limits = {_name_of(provider): draw.choice((0, 1, 4, 16, 64)) for provider in providers}
    streams: list[list[str]] = [[] for _ in range(3)]
    options = ort.SessionOptions()
    options.add_session_config_entry("session.executor", draw.choice(("sequential", "dataflow", "parallel")))
    options.add_session_config_entry("session.memory_limits", ";".join(f"{name}={limit}" for name, limit in limits.items()))
    for name in sorted({place.node for place in ort.InferenceSession(content, options, providers=providers).explain()}):
        draw.choice(streams).append(name)
    (tmp_path / "streams.json").write_text(json.dumps({"streams": streams}))
    options.add_session_config_entry("session.node_partition_config_file", str(tmp_path / "streams.json"))
    expected = ort.InferenceSession(content, providers=[REFERENCE]).run(None, feed)
    for found, wanted in zip(ort.InferenceSession(content, options, providers=providers).run(None, feed), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
