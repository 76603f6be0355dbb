"""Gradient nodes become the derivative of the graph that they name."""

from __future__ import annotations

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import model_of, operators

from sardonyx import errors
from sardonyx.errors import InvalidGraph
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.expand_gradients import EXPAND_GRADIENTS

IMPORTS = "opset 21\nopset ai.onnx.preview.training 1\n"


def expanded(text):
    model = model_of(IMPORTS + text)
    assert EXPAND_GRADIENTS.run(model, Context())
    verify(model)
    assert "Gradient" not in operators(model)
    assert not EXPAND_GRADIENTS.run(model, Context())
    return model


def gradient(outputs, inputs, attributes):
    return f"{outputs} = ai.onnx.preview.training.Gradient({inputs}) {{{attributes}}}"


def test_product_rule():
    """The gradient of a (a + b) is 2a + b by a, and a by b."""
    node = gradient("p, q", "a, b", 'xs = ["a", "b"], y = "d"')
    model = expanded(f"graph(a: double[2], b: double[2]) -> (d, p, q) {{ c = Add(a, b) d = Mul(c, a) {node} }}")
    a, b = np.array([1.0, -2.0]), np.array([3.0, 5.0])
    _, p, q = evaluate_model(model, {"a": a, "b": b})
    np.testing.assert_array_equal(p, 2 * a + b)
    np.testing.assert_array_equal(q, a)


def test_second_order():
    """The gradient of a gradient: x**3 has 3 x**2, then 6 x."""
    first = gradient("p", "x", 'xs = ["x"], y = "y"')
    second = gradient("q", "x", 'xs = ["x"], y = "p"')
    model = expanded(f"graph(x: double[2]) -> (p, q) {{ s = Mul(x, x) y = Mul(s, x) {first} {second} }}")
    x = np.array([2.0, -3.0])
    p, q = evaluate_model(model, {"x": x})
    np.testing.assert_allclose(p, 3 * x**2)
    np.testing.assert_allclose(q, 6 * x)


def test_other_values_may_be_given():
    """Inputs that are not the named values compute the forward part anew: dy/dh at h = k, with w held."""
    node = gradient("p", "k, w", 'xs = ["h"], zs = ["w"], y = "y"')
    body = f"h = Exp(x) s = Mul(h, h) y = Mul(s, w) {node}"
    model = expanded(f"graph(x: double[2], w: double[2], k: double[2]) -> (y, p) {{ {body} }}")
    w, k = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    _, p = evaluate_model(model, {"x": np.zeros(2), "w": w, "k": k})
    np.testing.assert_allclose(p, 2 * k * w)


def test_what_y_does_not_depend_on_has_gradient_zero():
    """Zeros in the shape of x."""
    node = gradient("p", "a, b", 'xs = ["a", "b"], y = "y"').replace("p =", "p, q =")
    model = expanded(f"graph(a: double[2], b: double[3]) -> (y, p, q) {{ y = Neg(a) {node} }}")
    _, p, q = evaluate_model(model, {"a": np.ones(2), "b": np.ones(3)})
    assert p.tolist() == [-1, -1]
    assert q.tolist() == [0, 0, 0]


def test_unknown_names_are_refused():
    """A name that no value has, and a number of inputs that does not fit."""
    node = gradient("p", "a", 'xs = ["z"], y = "y"')
    with pytest.raises(InvalidGraph, match="names 'z', which is no value of its graph"):
        expanded(f"graph(a: double[2]) -> (y, p) {{ y = Neg(a) {node} }}")
    node = gradient("p", "a, a", 'xs = ["a"], y = "y"')
    with pytest.raises(InvalidGraph, match="has 2 inputs and 1 outputs; expected 1 inputs"):
        expanded(f"graph(a: double[2]) -> (y, p) {{ y = Neg(a) {node} }}")


def test_operators_without_derivative_are_named():
    """NotImplemented says which node is in the way."""
    node = gradient("p", "a", 'xs = ["a"], y = "y"')
    with pytest.raises(errors.NotImplemented, match=r'no derivative of node that makes "y" \(Gelu, opset 21\) is known'):
        expanded(f"graph(a: double[2]) -> (y, p) {{ y = Gelu(a) {node} }}")
