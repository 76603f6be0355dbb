"""Operators whose activations are quantized in each run; whole models are in test_quantize.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Model
from sardonyx.ir.verify import verify
from sardonyx.ops.infer import infer_graph
from sardonyx.quantization.dynamic import OPERATORS, quantize_operators
from sardonyx.quantization.quant_utils import Grid, grid_of_weights

LSTM = """graph(x: float[5, 2, 8]) -> (y: float[5, 1, 2, 6]) {
    w: float[1, 24, 8] = ... 1
    r: float[1, 24, 6] = ... 2
    y = LSTM(x, w, r) {hidden_size = 6}
}"""
ATTENTION = """graph(x: float[2, 3, 8]) -> (y: float[2, 3, 8]) {
    w: float[8, 24] = ... 1
    b: float[24] = ... 2
    y = com.microsoft.Attention(x, w, b) {num_heads = 2}
}"""


EMBEDDING = """graph(i: int32[2, 3], s: int32[2, 3]) -> (y: float[2, 3, 8]) {{
    w: float[9, 8] = ... 1
    p: float[5, 8] = ... 2
    t: float[2, 8] = ... 3
    g: float[8] = ... 4
    b: float[8] = ... 5
    y, m = com.microsoft.EmbedLayerNormalization(i, {segments}, g, b)
}}"""


def _int8(array: Array, axis: int | None) -> Grid:
    return grid_of_weights(array, DataType.INT8, axis=axis)


def _quantized(text: str, *, per_channel: bool = False, opset: int = 17) -> Model:
    made = model(text, opset=opset)
    if "com.microsoft" in text:
        made.opset_imports["com.microsoft"] = 1
    infer_graph(made)
    quantize_operators(made, OPERATORS, (), (), _int8, per_channel=per_channel)
    verify(made)
    return made


def _operators(made: Model) -> Counter[str]:
    return Counter(node.op_type for node in made.graph)


@pytest.mark.parametrize("segments", ["s, w, p, t", "_, w, p, _"])
def test_tables_of_embeddings_have_a_quantized_form(segments: str) -> None:
    """With segments or without, whose results onnxruntime agrees with."""
    made = _quantized(EMBEDDING.format(segments=segments))
    assert _operators(made) == {"QEmbedLayerNormalization": 1}
    feed = {"i": np.int32([[0, 8, 3], [2, 2, 1]]), "s": np.int32([[0, 1, 1], [1, 0, 0]])}
    found = ort.InferenceSession(to_bytes(made)).run(["y"], feed)[0]
    plain = model(EMBEDDING.format(segments=segments), opset="17, com.microsoft 1")
    np.testing.assert_allclose(found, ort.InferenceSession(to_bytes(plain)).run(["y"], feed)[0], atol=0.1)
    peer = pytest.importorskip("onnxruntime")
    wanted = peer.InferenceSession(to_bytes(made), providers=["CPUExecutionProvider"]).run(["y"], feed)[0]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (LSTM, "DynamicQuantizeLSTM"),
        (LSTM.replace("hidden_size = 6", "hidden_size = 6, input_forget = 1, clip = 0.9"), "DynamicQuantizeLSTM"),
        (ATTENTION, "QAttention"),
    ],
)
def test_recurrent_operators_and_attention_have_quantized_forms(text: str, kind: str, per_channel: bool) -> None:
    """Of com.microsoft, with about the same results."""
    made = _quantized(text, per_channel=per_channel)
    assert _operators(made)[kind] == 1
    plain = model(text, opset=17)
    plain.opset_imports["com.microsoft"] = 1
    shape = (5, 2, 8) if kind.endswith("LSTM") else (2, 3, 8)
    feed = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    wanted, found = (ort.InferenceSession(to_bytes(item)).run(None, feed)[0] for item in (plain, made))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.1)


def test_one_quantization_serves_all_users() -> None:
    """And weights that two nodes share are stored once."""
    made = _quantized(
        "graph(x: float[n, 4]) -> (y: float[n, 4], z: float[n, 4]) { w: float[4, 4] = ... 1 y = MatMul(x, w) z = MatMul(x, w) }"
    )
    assert _operators(made)["DynamicQuantizeLinear"] == 1
    assert [name for name in made.graph.initializers if "quantized" in name] == ["w_quantized"]


@pytest.mark.parametrize(
    "text",
    [
        "graph(x: float[4, 4]) -> (y: float[4, 4]) { y = MatMul(x, x) }",
        "graph(x: float[4, 4]) -> (y: float[4, 4]) { w: float[4, 4] = ... 1 y = Gemm(x, w) {alpha = 2.0} }",
        "graph(x: float[4, 4]) -> (y: float[4, 4]) { w: float[4, 4] = ... 1 y = Gemm(x, w) {transA = 1} }",
        "graph(x: double[4, 4]) -> (y: double[4, 4]) { w: double[4, 4] = ... 1 y = MatMul(x, w) }",
        "graph(x: float[4, 4], w: float[4, 4]) -> (y: float[4, 4]) { w: float[4, 4] = ... 1 y = MatMul(x, w) }",
    ],
)
def test_what_has_no_quantized_form_is_left_alone(text: str) -> None:
    """Computed or overridable weights, other types, scaled or transposed inputs."""
    assert "DynamicQuantizeLinear" not in _operators(_quantized(text))


def test_weights_that_are_not_finite_are_refused() -> None:
    """With node and name."""
    with pytest.raises(InvalidArgument, match=r"MatMul.*'w'"):
        _quantized("graph(x: float[1, 1]) -> (y: float[1, 1]) { w: float[1, 1] = [[inf]] y = MatMul(x, w) }")


def test_asymmetric_weights_of_convolutions_have_one_zero_point(tmp_path: Path) -> None:
    """As onnxruntime takes no other."""
    made = model("graph(x: float[1, 2, 5]) -> (y: float[1, 3, 5]) { w: float[3, 2, 1] = ... 1 y = Conv(x, w) }", opset=17)
    infer_graph(made)
    quantize_operators(
        made,
        OPERATORS,
        (),
        (),
        lambda array, axis: grid_of_weights(array + 1, DataType.UINT8, axis=axis, symmetric=False),
        per_channel=True,
    )
    product = next(node for node in made.graph if node.op_type == "ConvInteger")
    assert product.inputs[3] is not None
    assert product.inputs[3].shape == ()
