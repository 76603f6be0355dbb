"""Keys and values that attention shares among heads."""

import pytest
from support.optimizing import apply_rule, declines, model_of, operators

from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.rules.attention.fuse_attention_groups import FUSE_ATTENTION_GROUPS

SYMBOLS = {"b": 2, "s": 5}
KEYS = "ku = Unsqueeze(k, ax) ke = Expand(ku, g) K = Reshape(ke, n)"
VALUES = "vu = Unsqueeze(v, ax) ve = Expand(vu, g) V = Reshape(ve, n)"


def text(keys=KEYS, values=VALUES, attention="y = Attention(q, K, V)", outputs="y"):
    return f"""graph(q: float[b, 6, s, 8], k: float[b, 3, 7, 8], v: float[b, 3, 7, 8], w: float[b, 6, 7, 8], m: float[s, 7])
        -> ({outputs}) {{ ax: int64[1] = [2]
        g: int64[5] = [1, 1, 2, 1, 1] n: int64[4] = [0, 6, 7, 8] {keys} {values} {attention} }}"""


@pytest.mark.parametrize("attention", ["y = Attention(q, K, V)", "y = Attention(q, K, V, m) {scale = 0.5}"])
def test_fires_with_the_same_numbers(attention):
    """Without and with a mask."""
    model, fired = apply_rule(FUSE_ATTENTION_GROUPS, text(attention=attention), opset="23", symbols=SYMBOLS)
    assert fired == 1
    assert operators(model) == ["Attention"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"values": "", "attention": "y = Attention(q, K, w)"}, "not both repeated alike"),
        ({"attention": "y, a, c = Attention:23(q, K, V)", "outputs": "y, c"}, "no match"),
        (
            {
                "attention": "j: int64[3] = [0, 7, 48] r = Reshape(K, j) x: float[2, 5, 48] = ... 1 z: float[2, 7, 48] = ... 2"
                " y = Attention(x, z, z) {q_num_heads = 6, kv_num_heads = 6} u = Neg(r)",
                "outputs": "y, u",
            },
            "packed",
        ),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_ATTENTION_GROUPS, text(**options), opset="23")


def test_is_part_of_the_pipeline():
    """Optimized as a whole, nothing repeats."""
    model = model_of(text(), opset="23")
    optimize(model, 99, evaluate=None)
    assert operators(model) == ["Attention"]
