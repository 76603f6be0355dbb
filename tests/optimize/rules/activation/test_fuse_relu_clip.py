"""A Relu beside a Clip."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.activation.fuse_relu_clip import FUSE_RELU_CLIP


def text(lines, outputs="y"):
    return f"""graph(x: float[9], u: float[]) -> ({outputs}) {{
        n: float[] = -0.5 z: float[] = 0.0 p: float[] = 0.25 h: float[] = 0.75 {lines} }}"""


@pytest.mark.parametrize(
    "lines",
    [
        "a = Relu(x) y = Clip(a, n, h)",
        "a = Relu(x) y = Clip(a, p, h)",
        "a = Relu(x) y = Clip(a, _, h)",
        "a = Relu(x) y = Clip(a, p)",
        "a = Clip(x, n, h) y = Relu(a)",
        "a = Clip(x, p) y = Relu(a)",
        "a = Clip(x, z, h) y = Relu(a)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """Relu goes, and the lower bound becomes at least 0."""
    model, fired = apply_rule(FUSE_RELU_CLIP, text(lines), rtol=0)
    assert fired == 1
    assert operators(model) == ["Clip"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("a = Relu(x) y = Clip(a, u, h)", "no match"),
        ("a = Relu(x) y = Clip:6(a) {min = -1.0, max = 1.0}", "the bounds are attributes"),
        ("a = Relu(x) y = Clip(a, n, n)", "the upper bound is below 0"),
        ("a = Relu(x) y = Clip(a, n, h) v = Neg(a)", "no match"),
    ],
)
def test_declines(lines, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_RELU_CLIP, text(lines, "y, v" if "v =" in lines else "y"))


def test_declines_an_unknown_type():
    """Without the type there is no zero to clip at."""
    text_of_unknown = "graph(x) -> (y) { a = Relu(x) y = Clip(a) }"
    assert declines(FUSE_RELU_CLIP, text_of_unknown, infer=False) == "the type is unknown"
