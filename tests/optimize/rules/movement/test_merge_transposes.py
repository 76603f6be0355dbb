"""Transposes merge and cancel."""

import pytest
from support.optimizing import apply_rule, body, declines, operators

from sardonyx.optimize.rules.movement.merge_transposes import MERGE_TRANSPOSES


def test_fires_with_the_same_numbers():
    """Two transposes become one with the product of the permutations."""
    text = "graph(x: float[2, 3, 4]) -> (y) { a = Transpose(x) {perm = [1, 2, 0]} y = Transpose(a) {perm = [0, 2, 1]} }"
    model, fired = apply_rule(MERGE_TRANSPOSES, text)
    assert fired == 1
    assert next(iter(model.graph)).get("perm") == (1, 0, 2)


def test_cancelling_transposes_go():
    """Two transposes that undo each other leave the value itself."""
    text = "graph(x: float[2, 3]) -> (y: float[2, 3]) { r = Relu(x) a = Transpose(r) b = Transpose(a) {perm = [1, 0]} y = Neg(b) }"
    model, fired = apply_rule(MERGE_TRANSPOSES, text)
    assert fired == 1
    assert operators(model) == ["Relu", "Neg"]


def test_chain_becomes_one():
    """A chain of transposes shrinks to one."""
    lines = " ".join(f"a{i + 1} = Transpose(a{i}) {{perm = [1, 2, 0]}}" for i in range(7))
    model, fired = apply_rule(MERGE_TRANSPOSES, f"graph(a0: float[2, 3, 4]) -> (a7) {{ {lines} }}")
    assert fired >= 3
    assert operators(model) == ["Transpose"]


def test_inner_transpose_stays_for_others():
    """Where the inner result has other users, the inner transpose stays, and the outer reads its input."""
    text = "graph(x: float[2, 3]) -> (y, z) { a = Transpose(x) {perm = [1, 0]} y = Transpose(a) {perm = [1, 0]} z = Relu(a) }"
    model, _ = apply_rule(MERGE_TRANSPOSES, text)
    assert "y = Identity(x)" in body(model)
    assert "z = Relu(a)" in body(model)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("graph(x: float) -> (y) { a = Transpose(x) y = Transpose(a) }", "the rank is unknown"),
        ("graph(x: float) -> (y) { a = Transpose(x) {perm = [1, 0]} y = Transpose(a) {perm = [0, 2, 1]} }", "do not fit"),
    ],
)
def test_declines(text, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(MERGE_TRANSPOSES, text, infer=False)
