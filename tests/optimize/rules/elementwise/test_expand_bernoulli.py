"""Coins as comparisons with random numbers."""

import numpy as np
import pytest
from support.cpu_run import run_cpu
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.elementwise.expand_bernoulli import EXPAND_BERNOULLI


@pytest.mark.parametrize(("kind", "casts"), [("float", 2), ("double", 1), ("float16", 2)])
def test_fires_whatever_the_type(kind: str, casts: int) -> None:
    """All are compared in double."""
    text = f"opset 22 graph(x: {kind}[n, 3]) -> (y) {{ y = Bernoulli(x) {{dtype = 9}} }}"
    model, fired = apply_rule(EXPAND_BERNOULLI, text, compare=False)
    assert fired == 1
    assert sorted(operators(model)) == sorted(["RandomUniformLike", "Less", *["Cast"] * casts])


def test_keeps_the_seed() -> None:
    """A node with one draws the same numbers at each run."""
    model, _ = apply_rule(EXPAND_BERNOULLI, "opset 22 graph(x: float[n]) -> (y) { y = Bernoulli(x) {seed = 2.5} }", compare=False)
    assert [node.number("seed") for node in model.graph if node.op_type == "RandomUniformLike"] == [2.5]


def test_declines_an_unknown_type() -> None:
    """The probabilities of a custom operator may be anything."""
    assert declines(EXPAND_BERNOULLI, "opset 22, own 1 graph(x: float[n]) -> (y) { t = own.Thing(x) y = Bernoulli(t) }")


@pytest.mark.parametrize("kind", ["float", "double", "float16"])
def test_draws_by_probability(kind: str) -> None:
    """Probabilities 0 and 1 are certain, 0.25 holds on average."""
    body = f"graph(x: {kind}[n, 3]) -> (y: int64[n, 3]) {{ y = Bernoulli(x) {{dtype = 7, seed = 3.0}} }}"
    numpy = {"float": np.float32, "double": np.float64, "float16": np.float16}[kind]
    (found,) = run_cpu(body, {"x": np.tile(np.array([0, 0.25, 1], numpy), (20_000, 1))}, opset=22)
    shares = found.mean(axis=0)
    assert (shares[0], shares[2]) == (0, 1)
    assert abs(shares[1] - 0.25) < 0.02
