"""Models and feeds that quantization is tried on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import load, save
from sardonyx.quantization.calibrate import CalibrationDataReader

CNN = """graph(x: float[n, 3, 8, 8]) -> (y: float[n, 5]) {
    w1: float[6, 3, 3, 3] = ... 1
    b1: float[6] = ... 2
    c1 = Conv(x, w1, b1) {pads = [1, 1, 1, 1]} @first
    r1 = Relu(c1) @clip
    p1 = MaxPool(r1) {kernel_shape = [2, 2], strides = [2, 2]} @pool
    w2: float[6, 6, 3, 3] = ... 3
    c2 = Conv(p1, w2) {pads = [1, 1, 1, 1]} @second
    a = Add(c2, p1) @sum
    f = Flatten(a) @flat
    w3: float[5, 96] = ... 4
    b3: float[5] = ... 5
    y = Gemm(f, w3, b3) {transB = 1} @last
}"""
"""Convolutions, a residual sum, a pool and a Gemm."""
PRODUCTS = """graph(i: int64[n]) -> (y: float[n, 6]) {
    t: float[20, 32] = ... 1
    x = Gather(t, i) @table
    w: float[32, 32] = ... 2
    a = MatMul(x, w) @first
    g = Tanh(a)
    v: float[6, 32] = ... 3
    b: float[6] = ... 4
    y = Gemm(g, v, b) {transB = 1} @second
}"""
"""A table of embeddings, a MatMul and a Gemm."""


def saved(text: str, folder: Path, *, opset: int = 17) -> Path:
    """Save a model and return its path."""
    path = folder / "float.onnx"
    save(model(text, opset=opset), path)
    return path


def images(count: int = 4) -> Iterator[dict[str, Any]]:
    """Feeds of CNN."""
    draw = np.random.default_rng(0)
    return ({"x": draw.standard_normal((2, 3, 8, 8)).astype(np.float32)} for _ in range(count))


class Reader(CalibrationDataReader):
    """Feeds one after the other, without a length, as most scripts write it."""

    def __init__(self, feeds: Iterator[dict[str, Any]]) -> None:
        self._feeds = feeds

    def get_next(self) -> dict[str, Any] | None:
        return next(self._feeds, None)


def numbers() -> Iterator[dict[str, Any]]:
    """Feeds of PRODUCTS."""
    return ({"i": np.arange(first, first + 5)} for first in range(0, 15, 5))


def relative_error(first: Path, second: Path, feeds: Callable[[], Iterator[dict[str, Any]]]) -> float:
    """Return the root mean square of the differences of two models' first outputs, relative to that of the first's."""
    left, right = (np.concatenate([ort.InferenceSession(path).run(None, feed)[0] for feed in feeds()]) for path in (first, second))
    return float(np.sqrt(np.mean((left - right) ** 2) / np.mean(left**2)))


def operators(path: Path) -> Counter[str]:
    """Return how many nodes a file has of each operator."""
    return Counter(node.op_type for node in load(path).graph)
