"""One product for queries, keys and values."""

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import apply_pass, model_of, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.pack_query_projections import PACK_QUERY_PROJECTIONS

OPSET = "23, com.microsoft 1"
PLAIN = ("MatMul(x, a)", "MatMul(x, b)", "MatMul(x, c)")
SIZES = "{K = 32, N = %d, bits = 4, block_size = 16}"
BLOCKS = tuple(f"com.microsoft.MatMulNBits(x, {name}n, {name}s) {SIZES % size}" for name, size in (("a", 16), ("b", 8), ("c", 8)))
SHIFTED = tuple(part.replace(f"{name}s)", f"{name}s, {name}z, _, {name}d)") for part, name in zip(BLOCKS, "abc", strict=True))


def text(parts=PLAIN, attention="q, k, v, _, _, l, t", result=""):
    constants = " ".join(
        f"{name}: float[32, {size}] = ... {place} {name}n: uint8[{size}, 2, 8] = ... {place} "
        f"{name}s: float[{size}, 2] = ... {place} {name}z: uint8[{size}] = ... {place} {name}d: float[{size}] = ... {place}"
        for place, (name, size) in enumerate((("a", 16), ("b", 8), ("c", 8)))
    )
    nodes = " ".join(f"{name} = {part}" for name, part in zip("qkv", parts, strict=True))
    return f"""graph(x: float[2, 3, 32], o: float[32, 8], l: int32[2], t: int32[], f: float[2, 3, 32]) -> (y, g, h {result}) {{
        {constants} w: float[4] = ... 9 {nodes}
        y, g, h = com.microsoft.GroupQueryAttention({attention}) {{num_heads = 4, kv_num_heads = 2}} }}"""


@pytest.mark.parametrize(("parts", "left"), [(PLAIN, "MatMul"), (BLOCKS, "MatMulNBits"), (SHIFTED, "MatMulNBits")])
def test_fires_with_the_same_numbers(parts, left):
    """Weights of floats and packed ones, with zero points and biases."""
    before, after = model_of(text(parts), OPSET), model_of(text(parts), OPSET)
    INFER_SHAPES.run(after, Context())
    assert PACK_QUERY_PROJECTIONS.run(after, Context())
    assert operators(after) == [left, "GroupQueryAttention"]
    feeds = {
        "x": np.random.default_rng(0).standard_normal((2, 3, 32)).astype(np.float32),
        "o": np.zeros((32, 8), np.float32),
        "l": np.full(2, 2, np.int32),
        "t": np.array(3, np.int32),
        "f": np.zeros((2, 3, 32), np.float32),
    }
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5 * np.abs(old).max())


@pytest.mark.parametrize(
    "given",
    [
        {"parts": (PLAIN[0], PLAIN[1], "MatMul(x, o)")},
        {"parts": (PLAIN[0], PLAIN[1], "MatMul(f, c)")},
        {"parts": (PLAIN[0], PLAIN[1], "MatMul(x, b)")},
        {"parts": (PLAIN[0], BLOCKS[1], PLAIN[2])},
        {"result": ", v"},
        {"parts": (BLOCKS[0], BLOCKS[1].replace("bits = 4", "bits = 4, accuracy_level = 4"), BLOCKS[2])},
        {"parts": (PLAIN[0], PLAIN[1], "Neg(x)")},
        {"attention": "q, k, v, _, _, l, t, _, _, _, _, _, _, _, w, w"},
    ],
)
def test_declines(given):
    """Weights that are computed or shared, other inputs, products of two kinds, other readers, normalized queries."""
    assert not apply_pass(PACK_QUERY_PROJECTIONS, text(**given), opset=OPSET, compare=False)[1]
