"""Whole models on the reference kernels."""

import numpy as np
import pytest
from support.optimizing import model_of

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.whole import run_model


def test_runs_a_model_with_initializers():
    """Nodes run in order on inputs and initializers."""
    model = model_of("graph(x: float[2]) -> (y) { w: float[2] = [1, 2] a = Add(x, w) y = Neg(a) }")
    (y,) = run_model(model, {"x": np.ones(2, np.float32)})
    assert y.tolist() == [-2, -3]


def test_bodies_see_values_and_constants_around_them():
    """Subgraphs read captured values, initializers around them and their own, at two levels."""
    text = """graph(x: float[2], c: bool[]) -> (y) {
        w: float[2] = [1, 2]
        a = Neg(x)
        y = If(c) {then_branch = graph() -> (t) {
            v: float[2] = [3, 3]
            t = If(c) {then_branch = graph() -> (p) { q = Mul(a, w) p = Add(q, v) }, else_branch = graph() -> (a) {}}
        }, else_branch = graph() -> (w) {}}
    }"""
    feed = {"x": np.array([1, 2], np.float32), "c": np.array(True)}
    assert run_model(model_of(text), feed)[0].tolist() == [2, -1]
    assert run_model(model_of(text), {**feed, "c": np.array(False)})[0].tolist() == [1, 2]


def test_missing_input_is_named():
    """An input that is not fed is named."""
    with pytest.raises(InvalidArgument, match=r"the inputs \['x'\] are not fed"):
        run_model(model_of("graph(x: float[2]) -> (y) { y = Neg(x) }"), {})
