"""Rotations inside attention."""

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import apply_pass, model_of, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.fuse_query_rotation import FUSE_QUERY_ROTATION
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES

OPSET = "23, com.microsoft 1"


def text(
    queries="com.microsoft.RotaryEmbedding(x, p, c, s) {A}",
    keys="com.microsoft.RotaryEmbedding(z, p, c, s) {A}",
    attributes="interleaved = 0",
    attention="q, k, v, _, _, l, t",
    options="",
    result="",
    positions="2, 3",
    size=4,
):
    braced = "{" + attributes + "}"
    return f"""graph(x: float[2, 3, 16], z: float[2, 3, 8], v: float[2, 3, 8], p: int64[{positions}], l: int32[2], t: int32[],
        d: float[5, 2]) -> (y, o, u {result}) {{ c: float[5, {size // 2}] = ... 1 s: float[5, {size // 2}] = ... 2
        e: float[5, 2] = ... 3 q = {queries.replace("{A}", braced)} k = {keys.replace("{A}", braced)}
        y, o, u = com.microsoft.GroupQueryAttention({attention}) {{num_heads = 4, kv_num_heads = 2 {options}}} }}"""


PLAIN = {"queries": "RotaryEmbedding(x, c, s, p) {num_heads = 4}", "keys": "RotaryEmbedding(z, c, s, p) {num_heads = 2}"}
PARTLY = {"attributes": "rotary_embedding_dim = 2, num_heads = N", "size": 2}


def feeds(shape):
    generator = np.random.default_rng(0)
    floats = {name: generator.standard_normal((2, 3, width)).astype(np.float32) for name, width in (("x", 16), ("z", 8), ("v", 8))}
    positions = np.arange(np.prod(shape)).reshape(shape) % 5
    return {**floats, "p": positions, "l": np.full(2, 2, np.int32), "t": np.array(3, np.int32), "d": np.zeros((5, 2), np.float32)}


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ({}, (2, 3)),
        ({"positions": "1"}, (1,)),
        ({"attributes": "interleaved = 1"}, (2, 3)),
        (PLAIN, (2, 3)),
        (PARTLY, (2, 3)),
    ],
)
def test_fires_with_the_same_numbers(given, shape):
    """Positions of each token or of the first; pairs of neighbours; parts of heads; the operator of either domain."""
    lines = text(**given)
    lines = lines.replace("num_heads = N", "num_heads = 4", 1).replace("num_heads = N", "num_heads = 2", 1)
    before, after = model_of(lines, OPSET), model_of(lines, OPSET)
    INFER_SHAPES.run(after, Context())
    assert FUSE_QUERY_ROTATION.run(after, Context())
    assert operators(after) == ["GroupQueryAttention"]
    for old, new in zip(evaluate_model(before, feeds(shape)), evaluate_model(after, feeds(shape)), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        {"options": ", do_rotary = 1", "attention": "q, k, v, _, _, l, t, c, s"},
        {"result": ", q"},
        {"attributes": "scale = 2.0"},
        {"keys": "com.microsoft.RotaryEmbedding(z, p, c, e)"},
        {"keys": "com.microsoft.RotaryEmbedding(z, p, c, s) {interleaved = 1}"},
        {"keys": "Neg(z)"},
        {"size": 2, "attributes": "rotary_embedding_dim = 2, num_heads = 4"},
        {"size": 2},
        {"attributes": "is_packed_batching = 1"},
        {"queries": "RotaryEmbedding(x, c, s) {num_heads = 4}"},
    ],
)
def test_declines(given):
    """Attention that rotates, other readers, scales, rotations that differ or are missing, other heads."""
    assert not apply_pass(FUSE_QUERY_ROTATION, text(**given), opset=OPSET, compare=False)[1]
