"""Models that tests of sessions share."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Model, Tensor

__all__ = ["BRANCH", "IMAGES", "MLP", "VISION", "VISION_ERROR", "rows", "session"]

MLP = """graph(x: float[batch, 4]) -> (y: float[batch, 3]) {
    w: float[4, 3] = ... 1
    b: float[3] = [0.5, -0.5, 0.0]
    h = MatMul(x, w)
    s = Add(h, b)
    y = Softmax(s)
}"""
BRANCH = """graph(c: bool[], x: float[n]) -> (y: float[n]) {
    d = Mul(x, x)
    y = If(c) {then_branch = graph() -> (t) {
        t = Add(d, x)
    }, else_branch = graph() -> (e) {
        e = Sub(d, x)
    }}
}"""
VISION = model("""graph(x: float[n, 3, 8, 6]) -> (y: float[n, 4, 1, 1]) {
    w: float[5, 3, 3, 3] = ... 1
    v: float[4, 5, 3, 3] = ... 2
    a = Conv(x, w) {pads = [1, 1, 1, 1]}
    r = Relu(a)
    p = MaxPool(r) {kernel_shape = [2, 2], strides = [2, 2]}
    c = Conv(p, v) {pads = [1, 1, 1, 1]}
    e = Exp(c)
    y = GlobalAveragePool(e)
}""")
for _weight in VISION.graph.initializers.values():
    assert _weight.constant is not None
    _weight.constant = Tensor.from_array((np.clip(np.rint(_weight.constant.numpy()), -2, 2) / 16).astype(np.float32))
IMAGES = np.random.default_rng(0).integers(-3, 4, (2, 3, 8, 6)).astype(np.float32)
"""Small whole numbers; with weights that are multiples of 1/16 every sum of the convolutions is exact, in any order."""
VISION_ERROR = 36 * 2.0**-24
"""Between two results of VISION on IMAGES: each exponential is within 3 ulp, and a mean of 12 positive numbers is rounded 12 times."""


def session(source: str | Model, **options: Any) -> ort.InferenceSession:
    """A session of a model, or of one in text form."""
    return ort.InferenceSession(to_bytes(model(source) if isinstance(source, str) else source), **options)


def rows(size: int) -> dict[str, Any]:
    return {"x": np.random.default_rng(size).standard_normal((size, 4)).astype(np.float32)}
