"""Operators of the user's in place of built-in ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.sessions import options_of

import sardonyx
from sardonyx import trace
from sardonyx.dtypes import Array
from sardonyx.errors import RuntimeException
from sardonyx.expr import ElementExpr
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

X = np.float32([[-1, 2, -3]])
CHAIN = """graph(x: float[n, 3]) -> (y: float[n, 3]) {
    a = Neg(x)
    b = Relu(a)
    y = Add(b, x)
}"""
INTEGERS = """graph(x: float[n, 3], i: int64[n]) -> (y: float[n, 3], k: int64[n]) {
    y = Abs(x)
    k = Abs(i)
}"""
BODIES = """graph(c: bool[], x: float[n, 3]) -> (y: float[n, 3]) {
    y = If(c) {then_branch = graph() -> (t) {
        t = Relu(x)
    }, else_branch = graph() -> (e) {
        e = Neg(x)
    }}
}"""


@sardonyx.op("", "Relu")
def hundred(x: Array) -> Array:
    return np.full_like(x, 100)


@sardonyx.expression_op("ai.onnx", "Relu")
def tenfold(x: ElementExpr) -> ElementExpr:
    return x * 10


@sardonyx.op("", "Abs", types={"x": ["float", "double"]}, outputs=["x"])
def negative(x: Array) -> Array:
    return -np.abs(x)


@sardonyx.op("com.microsoft", "Gelu")
def seven(x: Array) -> Array:
    return np.full_like(x, 7)


def session(text: str, *operators: object, imports: str = "") -> sardonyx.InferenceSession:
    options = sardonyx.SessionOptions()
    for operator in operators:
        options.add_operator(operator)  # type: ignore[arg-type]  # PythonOperator of any function
    return sardonyx.InferenceSession(to_bytes(parse_model(f"ir_version 10\nopset 21\n{imports}{text}")), options)


def test_a_function_takes_the_place_of_a_standard_operator() -> None:
    """Between built-in nodes that would be fused with it."""
    np.testing.assert_array_equal(session(CHAIN, hundred).run(None, {"x": X})[0], X + 100)
    np.testing.assert_array_equal(session(CHAIN).run(None, {"x": X})[0], np.maximum(-X, 0) + X)


def test_an_expression_takes_its_place_and_is_fused() -> None:
    """The whole chain stays one partition of the CPU provider."""
    made = session(CHAIN, tenfold)
    np.testing.assert_array_equal(made.run(None, {"x": X})[0], -10 * X + X)
    assert {placement.partition for placement in made.explain()} == {made.explain()[0].partition}


def test_types_that_it_does_not_take_stay_built_in() -> None:
    """Of two nodes of one operator, each is computed by what suits its inputs, and the trace says why."""
    reasons = []
    with trace.observe(lambda event: reasons.append(event.details["reason"]) if event.name == "operator.kept" else None):
        made = session(INTEGERS, negative)
    y, k = made.run(None, {"x": X, "i": np.array([-4])})
    np.testing.assert_array_equal(y, -np.abs(X))
    assert k.tolist() == [4]
    (reason,) = reasons
    assert "elements of int64; expected double or float" in reason


def test_nodes_in_bodies_are_replaced() -> None:
    """In the branch of an If."""
    made = session(BODIES, hundred)
    np.testing.assert_array_equal(made.run(None, {"c": np.array(True), "x": X})[0], np.full_like(X, 100))
    np.testing.assert_array_equal(made.run(None, {"c": np.array(False), "x": X})[0], -X)


def test_operators_of_microsoft_are_replaced() -> None:
    """As those of ai.onnx."""
    text = "graph(x: float[n, 3]) -> (y: float[n, 3]) {\ny = com.microsoft.Gelu(x)\n}"
    made = session(text, seven, imports="opset com.microsoft 1\n")
    np.testing.assert_array_equal(made.run(None, {"x": X})[0], np.full_like(X, 7))


def test_versions_say_for_which_opsets() -> None:
    """An operator that begins with a later opset replaces nothing."""

    @sardonyx.op("", "Relu", since=22)
    def later(x: Array) -> Array:
        return np.full_like(x, 100)

    np.testing.assert_array_equal(session(CHAIN, later).run(None, {"x": X})[0], np.maximum(-X, 0) + X)


def test_a_saved_model_names_the_built_in_operator(tmp_path: Path) -> None:
    """The replacement is the session's, not the model's."""
    options = options_of()
    options.add_operator(hundred)
    options.optimized_model_filepath = os.fspath(tmp_path / "saved.onnx")
    options.graph_optimization_level = sardonyx.GraphOptimizationLevel.ORT_DISABLE_ALL
    sardonyx.InferenceSession(to_bytes(parse_model(f"ir_version 10\nopset 21\n{CHAIN}")), options)
    saved = onnx.load(tmp_path / "saved.onnx")
    assert [(node.domain, node.op_type) for node in saved.graph.node] == [("", "Neg"), ("", "Relu"), ("", "Add")]
    assert [entry.domain for entry in saved.opset_import] == [""]


def test_an_error_names_the_node() -> None:
    """As that of any operator of one's own."""

    @sardonyx.op("", "Relu")
    def broken(x: Array) -> Array:
        raise KeyError("nothing")

    with pytest.raises(RuntimeException, match=r'node that makes "b" .*Relu.*nothing'):
        session(CHAIN, broken).run(None, {"x": X})
