"""Root-mean-square normalizations that are written out."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.normalize.fuse_rms_norm import FUSE_RMS_NORM


def text(
    square="Pow(x, two)", mean="ReduceMean(q, a)", norm="n = Div(x, s)", scale="g: float[5] = ... 1", epsilon="e: float[1] = [0.01]"
):
    return f"""graph(x: float[batch, 3, 5]) -> (y) {{
        {scale} {epsilon} two: float[] = 2.0 one: float[] = 1.0 a: int64[1] = [-1] f: int64[1] = [1]
        q = {square} m = {mean} p = Add(m, e) s = Sqrt(p) {norm} y = Mul(g, n) }}"""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"square": "Mul(x, x)"},
        {"norm": "r = Reciprocal(s) n = Mul(x, r)"},
        {"norm": "r = Div(one, s) n = Mul(r, x)"},
    ],
)
def test_fires_with_the_same_numbers(options):
    """Each way to write it becomes one node."""
    model, fired = apply_rule(FUSE_RMS_NORM, text(**options))
    assert fired == 1
    assert operators(model) == ["RMSNormalization"]
    assert next(iter(model.graph)).version == 23


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mean": "ReduceMean(q, f)"}, "the axes of the means are not the same last axes"),
        ({"mean": "ReduceMean(q)"}, "the axes of the means are not the same last axes"),
        ({"scale": "g: float[1] = ... 1"}, "scale is float (1,), expected float (5,)"),
        ({"scale": "h: float[5] = ... 1 g = Neg(h)"}, "no match"),
        ({"epsilon": "e: float[5] = ... 1"}, "epsilon is not one number"),
        ({"norm": "n = Div(x, p)"}, "no match"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_RMS_NORM, text(**options))


def test_declines_an_unknown_rank():
    """Without the rank it is not known which axes are the last."""
    assert declines(FUSE_RMS_NORM, text().replace("x: float[batch, 3, 5]", "x: float"), infer=False) == "the rank is unknown"
