"""Choices that are written as products."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.elementwise.fuse_select import FUSE_SELECT

SYMBOLS = {"s": 3}


def text(
    lines="a = Cast(c) {to = 1} n = Not(c) d = Cast(n) {to = 1} u = Mul(a, x) v = Mul(f, d) y = Add(u, v)",
    condition="bool",
    kind="float",
):
    return f"graph(c: {condition}[s, 4], x: {kind}[2, s, 4], e: {kind}[4]) -> (y) {{ f: {kind}[] = -9.5 {lines} }}"


@pytest.mark.parametrize(
    "lines",
    [
        "a = Cast(c) {to = 1} n = Not(c) d = Cast(n) {to = 1} u = Mul(a, x) v = Mul(f, d) y = Add(u, v)",
        "a = Cast(c) {to = 1} n = Not(c) d = Cast(n) {to = 1} u = Mul(x, a) v = Mul(d, e) y = Add(v, u)",
        "n = Not(c) d = Cast(n) {to = 1} a = Cast(c) {to = 1} u = Mul(a, x) v = Mul(x, d) w = Add(v, u) y = Add(w, a)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """In any order, among values of any rank; a cast that others read stays."""
    model, fired = apply_rule(FUSE_SELECT, text(lines), symbols=SYMBOLS)
    assert fired == 1
    assert operators(model).count("Where") == 1
    assert "Mul" not in operators(model)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"condition": "int32"}, "no match"),
        ({"lines": "a = Cast(c) {to = 1} d = Cast(c) {to = 1} u = Mul(a, x) v = Mul(f, d) y = Add(u, v)"}, "no match"),
        (
            {
                "lines": "a = Cast(c) {to = 10} n = Not(c) d = Cast(n) {to = 10} u = Mul(a, x) v = Mul(f, d) y = Add(u, v)",
                "kind": "float16",
            },
            "among float16 and float16",
        ),
    ],
)
def test_declines(options, reason):
    """Another condition, one that is not negated, half types."""
    body = text(**options)
    body = body.replace("n = Not(c)", "b = Cast(c) {to = 9} n = Not(b)") if options.get("condition") else body
    assert reason in declines(FUSE_SELECT, body)
