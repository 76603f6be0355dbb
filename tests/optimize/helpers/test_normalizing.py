"""Division by the root of a mean, in each of its forms."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.normalize.fuse_rms_norm import FUSE_RMS_NORM, FUSE_RMS_NORM_UNSCALED

FORMS = {
    "divided by Sqrt": "r = Sqrt(p) n = Div(x, r)",
    "divided by Pow": "r = Pow(p, half) n = Div(x, r)",
    "times Reciprocal": "r = Sqrt(p) i = Reciprocal(r) n = Mul(x, i)",
    "times a division": "r = Sqrt(p) i = Div(one, r) n = Mul(i, x)",
    "times Pow": "i = Pow(p, minus) n = Mul(x, i)",
}


def text(lines, shape="batch, 5", scale="y = Mul(n, g)", mean="p = Add(m, e)"):
    return f"""graph(x: float[{shape}], h: float[5]) -> (y) {{
        g: float[5] = ... 1 e: float[] = 1e-3 one: float[] = 1.0 half: float[] = 0.5 minus: float[] = -0.5 a: int64[1] = [-1]
        q = Mul(x, x) m = ReduceMean(q, a) {mean} {lines} {scale} }}"""


@pytest.mark.parametrize("lines", FORMS.values(), ids=FORMS)
def test_each_form(lines):
    """However the root divides, it is found."""
    model, fired = apply_rule(FUSE_RMS_NORM, text(lines))
    assert fired == 1
    assert operators(model) == ["RMSNormalization"]


@pytest.mark.parametrize("lines", ["r = Sqrt(p) i = Reciprocal(r)", "r = Sqrt(p) i = Div(one, r)", "i = Pow(p, minus)"])
def test_scaled_before(lines):
    """A scale may multiply the reciprocal."""
    model, fired = apply_rule(FUSE_RMS_NORM, text(lines, scale="n = Mul(i, g) y = Mul(x, n)"))
    assert fired == 1
    assert operators(model) == ["RMSNormalization"]


@pytest.mark.parametrize(
    ("shape", "scale", "reason"),
    [
        ("batch, 3, 5", "[5]", None),
        ("batch, 3, 4, 5", "[4, 5]", None),
        ("batch, 3, 4, 5", "[5]", "expected float (4, 5)"),
    ],
)
def test_a_pool_is_a_mean(shape, scale, reason):
    """A GlobalAveragePool is the mean over all axes but the first two."""
    lines = text(FORMS["divided by Sqrt"], shape).replace("ReduceMean(q, a)", "GlobalAveragePool(q)")
    lines = lines.replace("g: float[5]", f"g: float{scale}")
    if reason is None:
        model, fired = apply_rule(FUSE_RMS_NORM, lines)
        assert fired == 1
        assert operators(model) == ["RMSNormalization"]
    else:
        assert reason in declines(FUSE_RMS_NORM, lines)


def test_without_epsilon():
    """Where nothing is added to the mean, epsilon is 0."""
    model, fired = apply_rule(FUSE_RMS_NORM, text(FORMS["divided by Sqrt"], mean="").replace("Sqrt(p)", "Sqrt(m)"))
    assert fired == 1
    assert model.graph.outputs[0].producer.get("epsilon") == 0.0


@pytest.mark.parametrize("scale", ["y = Mul(n, h)", "y = Neg(n)"])
def test_without_a_constant_scale(scale):
    """A normalization that no constant scales gets a scale of ones."""
    model, fired = apply_rule(FUSE_RMS_NORM_UNSCALED, text(FORMS["times Reciprocal"], scale=scale))
    assert fired == 1
    assert operators(model)[0] == "RMSNormalization"


def test_a_constant_scale_is_left_to_the_rule_that_takes_it():
    """The scaled form is one node, so the unscaled one waits."""
    assert (
        declines(FUSE_RMS_NORM_UNSCALED, text(FORMS["times Pow"]))
        == "a constant scale follows, with which another rule replaces it"
    )


def test_normalized_axes_of_unknown_size_get_no_ones():
    """A scale of ones needs the size."""
    lines = text(FORMS["times Pow"], shape="batch, n", scale="y = Neg(n)")
    assert declines(FUSE_RMS_NORM_UNSCALED, lines) == "the size of the normalized axes is not known"
