"""Normalizations of heads inside attention."""

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import apply_pass, model_of, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.fuse_query_norm import FUSE_QUERY_NORM
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES

OPSET = "23, com.microsoft 1"


def text(
    norm="RMSNormalization",
    heads="0, 0, -1, 4",
    epsilon="0.01",
    rotary="do_rotary = 1",
    scale="float[4] = ... 1",
    attention="q, k, v, _, _, l, t, c, s",
    result="",
):
    return f"""graph(x: float[2, 3, 16], z: float[2, 3, 8], v: float[2, 3, 8], l: int32[2], t: int32[]) -> (y, o, u {result}) {{
        c: float[5, 2] = ... 1 s: float[5, 2] = ... 2 a: {scale} b: float[4] = ... 4 h: int64[4] = [{heads}]
        w: int64[3] = [0, 0, -1]
        x1 = Reshape(x, h) x2 = {norm}(x1, a) {{epsilon = 0.01}} q = Reshape(x2, w)
        z1 = Reshape(z, h) z2 = {norm}(z1, b) {{epsilon = {epsilon}}} k = Reshape(z2, w)
        y, o, u = com.microsoft.GroupQueryAttention({attention}) {{num_heads = 4, kv_num_heads = 2, {rotary}}} }}"""


@pytest.mark.parametrize("norm", ["RMSNormalization", "SimplifiedLayerNormalization"])
def test_fires_with_the_same_numbers(norm):
    """Both names."""
    before, after = model_of(text(norm), OPSET), model_of(text(norm), OPSET)
    INFER_SHAPES.run(after, Context())
    assert FUSE_QUERY_NORM.run(after, Context())
    assert operators(after) == ["GroupQueryAttention"]
    generator = np.random.default_rng(0)
    feeds = {name: generator.standard_normal((2, 3, width)).astype(np.float32) for name, width in (("x", 16), ("z", 8), ("v", 8))}
    feeds |= {"l": np.full(2, 2, np.int32), "t": np.array(3, np.int32)}
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        {"rotary": "do_rotary = 0"},
        {"epsilon": "0.1"},
        {"heads": "0, 0, -1, 2", "scale": "float[2] = ... 1"},
        {"result": ", x2"},
        {"norm": "LpNormalization"},
        {"scale": "float[1] = ... 1"},
        {"attention": "q, k, v, _, _, l, t, c, s, _, _, _, _, _, b, b"},
    ],
)
def test_declines(given):
    """Attention that does not rotate or normalizes already, two epsilons, other groups, other readers, other normalizations."""
    lines = text(**given)
    if given.get("norm"):
        lines = lines.replace("x1, a)", "x1)").replace("z1, b)", "z1)").replace("epsilon = 0.01", "p = 2")
    assert not apply_pass(FUSE_QUERY_NORM, lines, opset=OPSET, compare=False)[1]
