"""Expand whose result is broadcast anyway."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.drop_expand import DROP_EXPAND


def text(step, outputs="y", x="n, 3, 4, 5"):
    return f"""graph(x: float[{x}], s: float[n, 3, 1, 1], g: int64[4], k: bool[n, 3, 4, 5], z: float[n, 3, 4, 5]) -> ({outputs}) {{
        e = Expand(s, g) {step} }}"""


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("t = Shape(x) f = Expand(s, t) y = Mul(x, f)", ["Mul"]),
        ("t = Shape(x) f = Expand(s, t) y = Sub(f, x)", ["Sub"]),
        ("t = Shape(x) f = Expand(s, t) y = PRelu(x, f)", ["PRelu"]),
        ("t = Shape(x) f = Expand(s, t) y = Where(k, f, x)", ["Where"]),
        ("t = Shape(x) f = Expand(s, t) a = Less(f, x) y = Where(a, x, z)", ["Less", "Where"]),
    ],
)
def test_fires_with_the_same_numbers(step, left):
    """An operand of the result's shape broadcasts what was expanded."""
    model, fired = apply_rule(DROP_EXPAND, text(step).replace("e = Expand(s, g)", ""), symbols={"n": 2})
    assert fired == 1
    assert [name for name in operators(model) if name not in ("Shape", "Expand")] == left


def test_one_of_two_is_left():
    """Where both are expanded, the result needs the shape of one."""
    lines = "t = Shape(x) e = Expand(s, t) f = Expand(q, t) y = Add(e, f)"
    model, fired = apply_rule(DROP_EXPAND, f"graph(x: float[2, 3, 4], s: float[2, 1, 4], q: float[3, 1]) -> (y) {{ {lines} }}")
    assert fired == 1
    assert operators(model).count("Expand") == 1


def test_it_stays_for_other_users():
    """Whose result is the expanded one."""
    model, fired = apply_rule(
        DROP_EXPAND,
        text("t = Shape(x) f = Expand(s, t) y = Mul(x, f) o = Neg(f)", "y, o").replace("e = Expand(s, g)", ""),
        symbols={"n": 2},
    )
    assert fired == 1
    assert operators(model).count("Expand") == 1


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("y = Mul(x, e)", "no other operand is known to have the result's shape"),
        ("y = Mul(e, e)", "no other operand"),
        ("y = PRelu(e, x)", "no match"),
        ("y = Neg(e)", "no match"),
        ("y = Add:6(e, x)", "does not broadcast yet"),
    ],
)
def test_declines(step, reason):
    """Shapes that are not known to be equal, and operators that do not broadcast both ways."""
    assert reason in declines(DROP_EXPAND, text(step))
