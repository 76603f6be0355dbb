"""Transposes through products, and images that are rows of a product."""

from __future__ import annotations

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.models import model
from support.transposing import operators, pushed

from sardonyx import config
from sardonyx.ir import Model, Tensor
from sardonyx.ir.verify import verify
from sardonyx.ops.infer import infer_graph
from sardonyx.optimize.transposes import products
from sardonyx.optimize.transposes.push import push_transposes

FLATTEN = "f = Flatten(t)"
WEIGHTS = "w: float[72, 3] = ... 1"


def _fed_by_image(body: str, *, opset: int = 21, between_layouts: bool = True) -> Model:
    """The model `body` of t, which is x (N, H, W, C) in NCHW, after pushing; fails where its bits change, with small numbers."""
    text = f"""graph(x: float[n, 4, 6, 3], r: float[n, 72], v: float[72, 3]) -> (y) {{
        t = Transpose(x) {{perm = [0, 3, 1, 2]}}
        {body} }}"""
    before, after = model(text, opset=opset), model(text, opset=opset)
    for held in (before, after):
        for value in held.graph.initializers.values():
            if value.constant is not None and value.constant.size > 70:
                numbers = abs(np.random.default_rng(1).integers(-4, 5, value.constant.shape))
                value.constant = Tensor.from_array(numbers.astype(value.constant.numpy().dtype))
    infer_graph(after)
    push_transposes(after.graph, set(after.graph), between_layouts=between_layouts)
    verify(after)
    shapes = {"x": (2, 4, 6, 3), "r": (2, 72), "v": (72, 3)}
    feeds = {name: np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32) for name, shape in shapes.items()}
    for ours, theirs in zip(evaluate_model(after, feeds), evaluate_model(before, feeds), strict=True):
        assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())
    return after


@pytest.mark.parametrize(
    ("product", "left"),
    [
        ("y = Gemm(f, w)", ["Reshape", "Gemm"]),
        ("y = Gemm(f, u) {transB = 1}", ["Reshape", "Gemm"]),
        ("y = MatMul(f, w)", ["Reshape", "MatMul"]),
        ("y = MatMul(f, one)", ["Reshape", "MatMul"]),
        ("a = Relu(f)\n y = MatMul(a, w)", ["Reshape", "Relu", "MatMul"]),
        ("a = MatMul(f, w)\n b = Gemm(f, w)\n y = Add(a, b)", ["Reshape", "MatMul", "Gemm", "Add"]),
    ],
)
def test_rows_of_weights_are_reordered(product: str, left: list[str]) -> None:
    """What the channels and pixels of an image are multiplied by follows them."""
    held = _fed_by_image(f"{FLATTEN}\n {WEIGHTS}\n u: float[3, 72] = ... 2\n one: float[72] = ... 3\n {product}")
    assert operators(held) == left


def test_a_reshape_is_as_good_as_a_flatten() -> None:
    """Whichever way the exporter says it."""
    body = f"s: int64[2] = [0, -1]\n {WEIGHTS}\n f = Reshape(t, s)\n y = MatMul(f, w)"
    assert operators(_fed_by_image(body)) == ["Reshape", "MatMul"]


def test_quantized_rows_are_reordered_as_integers() -> None:
    """With a scale for each column of the weights, and one for the image."""
    body = f"""{FLATTEN}
        s: float[] = 0.5 z: int8[] = 1 q = QuantizeLinear(f, s, z) d = DequantizeLinear(q, s, z)
        p: int8[72, 3] = ... 1 k: float[3] = [0.5, 1, 2] w = DequantizeLinear(p, k) {{axis = 1}}
        y = MatMul(d, w)"""
    assert sorted(operators(_fed_by_image(body))) == ["DequantizeLinear", "DequantizeLinear", "MatMul", "QuantizeLinear", "Reshape"]


@pytest.mark.parametrize(
    "product",
    [
        "QLinearMatMul(f, s, z, p, k, pz, s, z)",
        "MatMulInteger(f, p, z, pz)",
        "com.microsoft.QGemm(f, s, z, p, k, pz, _, s, z)",
        "com.microsoft.QGemm(f, s, z, pt, k, pz, _, s, z) {transB = 1}",
    ],
)
def test_integers_are_weights_too(product: str) -> None:
    """Of quantized products, with a scale and a zero point for each column."""
    body = f"""s: float[] = 0.5 z: uint8[] = 1 p: uint8[72, 3] = ... 1 pt: uint8[3, 72] = ... 2 k: float[3] = [0.5, 1, 2]
        pz: uint8[3] = [1, 2, 3] q = QuantizeLinear(t, s, z) f = Flatten(q) y = {product}"""
    assert operators(_fed_by_image(body)) == ["QuantizeLinear", "Reshape", product.partition("(")[0].rpartition(".")[2]]


@pytest.mark.parametrize(
    "body",
    [
        "y = MatMul(f, v)",
        "a = Softmax(f)\n y = MatMul(a, w)",
        "a = Add(f, r)\n y = MatMul(a, w)",
        "g = Gemm(f, c) {transA = 1}\n h = MatMul(f, w)\n i = ReduceSum(g) {keepdims = 0}\n y = Add(h, i)",
        "p: int8[72, 3] = ... 1\n k: float[72] = ... 2\n d = DequantizeLinear(p, k) {axis = 0}\n y = MatMul(f, d)",
    ],
)
def test_where_another_reads_the_image_it_stays(body: str) -> None:
    """Weights that are computed, places that matter, rows with scales of their own, and an image that is the right side."""
    held = _fed_by_image(f"{FLATTEN}\n {WEIGHTS}\n c: float[2, 1] = [1, 2]\n {body}")
    assert "Transpose" in operators(held)


def test_nothing_is_reordered_outside_a_conversion() -> None:
    """Sums in another order have other last bits: that is for providers whose convolutions do the same."""
    held = _fed_by_image(f"{FLATTEN}\n {WEIGHTS}\n y = MatMul(f, w)", between_layouts=False)
    assert operators(held) == ["Transpose", "Flatten", "MatMul"]


def test_large_weights_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside such a product the transpose costs nothing."""
    monkeypatch.setattr(products, "LIMITS", config.Limits(fold_bytes=800))
    held = _fed_by_image(f"{FLATTEN}\n {WEIGHTS}\n y = MatMul(f, w)")
    assert operators(held) == ["Transpose", "Flatten", "MatMul"]


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("w: float[4, 5] = ... 1\n a = MatMul(h, w)\n y = Transpose(a) {perm = [0, 2, 1, 3]}", ["MatMul"]),
        ("w: float[4] = ... 1\n a = MatMul(h, w)\n y = Transpose(a) {perm = [0, 2, 1]}", ["MatMul"]),
        ("w: float[4, 5] = ... 1\n y = MatMul(h, w)", ["Transpose", "MatMul"]),
    ],
)
def test_a_product_passes_on_what_leaves_its_rows(step: str, left: list[str]) -> None:
    """Where a transpose waits below."""
    held = pushed(f"h = Transpose(k) {{perm = [0, 2, 1, 3]}}\n {step}", inputs="x: float[1, 2, 2, 2], k: float[2, 3, 5, 4]")
    assert operators(held) == left


def test_a_product_keeps_what_moves_its_rows() -> None:
    """Its sums run along another dimension then."""
    body = "w: float[3, 5] = ... 1\n a = MatMul(t, w)\n y = Transpose(a) {perm = [0, 3, 1, 2]}"
    assert operators(pushed(body)) == ["Transpose", "MatMul", "Transpose"]
