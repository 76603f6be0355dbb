"""Choice between integers."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_quantized_where import FUSE_QUANTIZED_WHERE, QUANTIZE_WHERE_SCALAR


def text(line, kind="uint8", number="-2.5"):
    return f"""graph(k: bool[2,3], a: {kind}[2,3], b: {kind}[3], u: float[]) -> (y) {{
        s: float[] = 0.05 z: {kind}[] = 3 t: float[] = 0.02
        v: {kind}[] = 12 r: float[] = 0.03 o: {kind}[] = 100 n: float[] = {number} x = DequantizeLinear(a, s, z)
        w = DequantizeLinear(b, t, v) c = {line} y = QuantizeLinear(c, r, o) }}"""


def test_fires_with_the_same_integers():
    """Both sides are brought to the scale of the result."""
    model, fired = apply_rule(FUSE_QUANTIZED_WHERE, text("Where(k, x, w)"))
    assert fired == 1
    assert operators(model) == ["QLinearWhere"]


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("number", ["-2.5", "0.0", "1e30"])
@pytest.mark.parametrize("line", ["Where(k, x, n)", "Where(k, n, x)"])
def test_scalars_are_quantized_without_loss(line, number, kind):
    """The number is one step of a scale of its own."""
    model, fired = apply_rule(QUANTIZE_WHERE_SCALAR, text(line, kind, number))
    assert fired == 1
    chosen = next(node for node in model.graph if node.op_type == "Where").inputs[1:]
    assert [value.producer.op_type for value in chosen] == ["DequantizeLinear"] * 2


@pytest.mark.parametrize(
    ("rule", "line", "given", "reason"),
    [
        (FUSE_QUANTIZED_WHERE, "Where(k, x, n)", {}, "no match"),
        (FUSE_QUANTIZED_WHERE, "Where(k, x, w)", {"kind": "int16"}, "expected int8 or uint8"),
        (QUANTIZE_WHERE_SCALAR, "Where(k, x, u)", {}, "no match"),
        (QUANTIZE_WHERE_SCALAR, "Where(k, x, n)", {"kind": "int16"}, "expected int8 or uint8"),
    ],
)
def test_declines(rule, line, given, reason):
    """Each case that the rules leave alone."""
    assert reason in declines(rule, text(line, **given))


def test_declines_what_is_not_finite():
    """No integer stands for it."""
    assert "finite" in declines(QUANTIZE_WHERE_SCALAR, text("Where(k, x, n)", number="inf"))
