"""Gelus that are written out."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.activation.fuse_gelu import FUSE_GELU, FUSE_GELU_TANH

CONSTANTS = """r: float[] = 1.4142135 i: float[] = 0.70710677 o: float[] = 1.0 h: float[] = 0.5 t: float[] = 3.0
    k: float[] = 0.044715 c: float[] = 0.7978846 z: float[1, 1, 1] = [0.5] u: float[] = 1.41"""


def text(lines, outputs="y"):
    return f"graph(x: float[batch, 5]) -> ({outputs}) {{ {CONSTANTS} {lines} }}"


ERF = "a = Div(x, r) b = Erf(a) g = Add(b, o)"
TANH = "a = Pow(x, t) b = Mul(a, k) d = Add(x, b) e = Mul(c, d) f = Tanh(e) g = Add(o, f)"


@pytest.mark.parametrize(
    "lines",
    [
        f"{ERF} m = Mul(x, g) y = Mul(m, h)",
        f"{ERF} m = Mul(x, h) y = Mul(m, g)",
        f"{ERF} m = Mul(g, h) y = Mul(m, x)",
        "a = Mul(i, x) b = Erf(a) g = Add(o, b) m = Mul(x, g) y = Mul(h, m)",
    ],
)
def test_exact_form_fires_with_the_same_numbers(lines):
    """Each order of the factors becomes Gelu."""
    model, fired = apply_rule(FUSE_GELU, text(lines))
    assert fired == 1
    assert operators(model) == ["Gelu"]


@pytest.mark.parametrize(
    "lines",
    [
        f"{TANH} m = Mul(x, h) y = Mul(m, g)",
        f"{TANH} m = Mul(x, g) y = Mul(m, h)",
        "s = Mul(x, x) a = Mul(x, s) b = Mul(a, k) d = Add(x, b) e = Mul(d, c) f = Tanh(e) g = Add(f, o) m = Mul(x, h) y = Mul(m, g)",
        "l = Mul(x, c) s = Mul(x, k) a = Mul(s, x) b = Add(a, o) e = Mul(l, b) f = Tanh(e) g = Add(f, o) m = Mul(x, g) y = Mul(m, h)",
        "l = Mul(c, x) s = Mul(x, x) a = Mul(s, k) b = Add(o, a) e = Mul(b, l) f = Tanh(e) g = Add(f, o) m = Mul(x, g) y = Mul(m, h)",
        "s = Mul(x, k) a = Mul(s, x) b = Mul(a, x) d = Add(b, x) e = Mul(d, c) f = Tanh(e) g = Add(f, o) m = Mul(x, h) y = Mul(m, g)",
    ],
)
def test_tanh_form_fires_with_the_same_numbers(lines):
    """Each way to write the tanh form becomes Gelu with approximate = "tanh"."""
    model, fired = apply_rule(FUSE_GELU_TANH, text(lines))
    assert fired == 1
    assert next(iter(model.graph)).get("approximate") == "tanh"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("a = Div(x, u) b = Erf(a) g = Add(b, o) m = Mul(x, g) y = Mul(m, h)", "no match"),
        (f"{ERF} m = Mul(x, g) y = Mul(m, z)", "the result is float (1, batch, 5), the value float (batch, 5)"),
        (f"{ERF} m = Mul(x, g) y = Mul(m, o)", "no match"),
        (f"{ERF} m = Mul(x, g) y = Mul(m, h) w = Neg(b)", "no match"),
    ],
)
def test_exact_form_declines(lines, reason):
    """Another constant, a larger rank, and a value with other users are left alone."""
    assert reason in declines(FUSE_GELU, text(lines, "y, w" if "w =" in lines else "y"))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (f"{TANH.replace('Pow(x, t)', 'Pow(x, o)')} m = Mul(x, h) y = Mul(m, g)", "no match"),
        (f"{TANH} m = Mul(x, g) y = Mul(m, z)", "the result is float (1, batch, 5)"),
        (f"{TANH} m = Mul(x, g) y = Mul(m, h) w = Neg(f)", "no match"),
    ],
)
def test_tanh_form_declines(lines, reason):
    """Another constant, a larger rank, and a value with other users are left alone."""
    assert reason in declines(FUSE_GELU_TANH, text(lines, "y, w" if "w =" in lines else "y"))
