"""RotaryEmbedding in older files."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import model_of, operators

from sardonyx.formats.onnx import load, to_bytes
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.older_rotary import can_write_rotary
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.write_older import WRITE_OLDER

SYMBOLS = {"b": 2, "s": 4}


def given(call, attributes="", kind="float", further=""):
    text = f"""graph(h: {kind}[b, 3, s, 8], x: {kind}[b, s, 24], c: {kind}[b, s, 4], n: {kind}[b, s, 4], ct: {kind}[9, 4],
        nt: {kind}[9, 4], p: int64[b, s], w: {kind}[b, k, s, 8]) -> (y) {{ {further}
        y = RotaryEmbedding({call}) {{{attributes}}} }}"""
    model = model_of(text, "23")
    INFER_SHAPES.run(model, Context())
    return model


@pytest.mark.parametrize(
    ("call", "attributes", "further"),
    [
        ("h, c, n", "", ""),
        ("x, c, n", "num_heads = 3", ""),
        ("h, ct, nt, p", "interleaved = 1", ""),
        ("x, c, n", "num_heads = 2, rotary_embedding_dim = 8", ""),
        ("z, c, n", "", "z = RotaryEmbedding(h, c, n)"),
    ],
)
def test_the_same_numbers(call, attributes, further):
    """Heads apart or packed, angles of each position or looked up; those that two nodes read are looked up alike."""
    model = given(call, attributes, further=further)
    feeds = random_feeds(model, symbols=SYMBOLS) | {"p": np.array([[0, 8, 3, 1], [2, 2, 7, 5]])}
    before = evaluate_model(model, feeds)
    model.opset_imports[""] = 14
    assert WRITE_OLDER.run(model, Context())
    again = load(to_bytes(model))
    verify(again)
    np.testing.assert_allclose(evaluate_model(again, feeds)[0], before[0], rtol=1e-6, atol=1e-6)
    assert operators(again).count("Range") == (0 if "p" in call else 1)


def test_angles_for_all_batches():
    """Batches that are seen as more heads need not be."""
    text = """graph(h: float[b, 3, s, 8], c: float[1, s, 4], n: float[1, s, 4]) -> (y) { m: int64[4] = [1, -1, 0, 0]
        k: int64[4] = [-1, 3, 0, 0] r = Reshape(h, m) t = RotaryEmbedding(r, c, n) y = Reshape(t, k) }"""
    model = model_of(text, "23")
    INFER_SHAPES.run(model, Context())
    feeds = random_feeds(model, symbols=SYMBOLS)
    before = evaluate_model(model, feeds)
    model.opset_imports[""] = 14
    assert WRITE_OLDER.run(model, Context())
    assert operators(model) == ["Reshape", "Reshape", "RotaryEmbedding"]
    np.testing.assert_allclose(evaluate_model(load(to_bytes(model)), feeds)[0], before[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "options", "opset", "can"),
    [
        ("h, c, n", {}, 14, True),
        ("h, c, n", {"kind": "float16"}, 14, True),
        ("h, c, n", {"kind": "double"}, 14, False),
        ("h, c, n", {}, 10, False),
        ("x, c, n", {}, 14, False),
        ("w, c, n", {}, 14, True),
        ("w, c, n", {"attributes": "rotary_embedding_dim = 8"}, 14, False),
    ],
)
def test_which_can_be_written(call, options, opset, can):
    """Those of known heads, in types that onnxruntime has kernels for."""
    (node,) = given(call, **options).graph
    assert can_write_rotary(node, opset) is can
