"""Stored weights become floats."""

import numpy as np
import pytest
from support.evaluate import evaluate_node
from support.optimizing import apply_pass, body, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes import fold_dequantization
from sardonyx.optimize.passes.fold_dequantization import FOLD_DEQUANTIZATION

BY_AXIS = """graph(x: float[2,2]) -> (y: float[2,2]) {
    w: int8[2,2] = [[1, -2], [3, -4]] s: float[2] = [0.5, 0.25] z: int8[2] = [0, 1]
    v = DequantizeLinear(w, s, z) {axis = 0} y = MatMul(x, v) }"""
SUB_BYTE = """graph(x: float[2,4]) -> (y: float[2,2]) {
    w: int4[4,2] = [[1, -2], [3, -4], [5, 6], [7, -8]] s: float[2,2] = [[0.5, 0.25], [1.0, 2.0]]
    v = DequantizeLinear(w, s) {axis = 0, block_size = 2} y = MatMul(x, v) }"""


@pytest.mark.parametrize("text", [BY_AXIS, SUB_BYTE])
def test_fires_with_the_same_numbers(text):
    """Scales by axis and by block, zero points, and types below a byte."""
    model, changed = apply_pass(FOLD_DEQUANTIZATION, text)
    assert changed
    assert operators(model) == ["MatMul"]


def test_names_say_what_was_stored():
    """The new constant is named after the stored one."""
    model, _ = apply_pass(FOLD_DEQUANTIZATION, BY_AXIS)
    assert "w/dequantized" in body(model)


@pytest.mark.parametrize(
    "text",
    [
        "graph(x: int8[3]) -> (y: float[3]) { s: float[] = 0.5 y = DequantizeLinear(x, s) }",
        "graph(x: float[]) -> (y: float[3]) { w: int8[3] = [1, 2, 3] y = DequantizeLinear(w, x) }",
        "graph(w: int8[3]) -> (y: float[3]) { w: int8[3] = [1, 2, 3] s: float[] = 0.5 y = DequantizeLinear(w, s) }",
    ],
)
def test_declines(text):
    """What is no constant: fed, or overridable by a feed."""
    _, changed = apply_pass(FOLD_DEQUANTIZATION, text, compare=False)
    assert not changed


def test_declines_without_an_evaluator():
    """Then nothing can be computed."""
    _, changed = apply_pass(FOLD_DEQUANTIZATION, BY_AXIS, context=Context())
    assert not changed


def test_stops_at_the_budget(monkeypatch):
    """What would take too many bytes stays as it is stored."""
    monkeypatch.setattr(fold_dequantization, "MOST_BYTES", 8)
    _, changed = apply_pass(FOLD_DEQUANTIZATION, BY_AXIS, context=Context(evaluate_node))
    assert not changed


@pytest.mark.parametrize(("again_bytes", "kept"), [(79, 6), (80, 0)])
def test_weights_that_many_nodes_read_are_not_made_again_for_each(again_bytes, kept):
    """A small file would else take gigabytes of memory. Six nodes make sixteen bytes each."""
    lines = " ".join(f"s{i}: float[] = {i + 2} v{i} = DequantizeLinear(w, s{i}) x{i + 1} = Max(x{i}, v{i})" for i in range(6))
    text = f"graph(x0: float[4]) -> (x6) {{ w: int8[4] = [1, 2, 3, 4] {lines} }}"
    model, _ = apply_pass(FOLD_DEQUANTIZATION, text, context=Context(evaluate_node, dequantize_again_bytes=again_bytes))
    assert operators(model).count("DequantizeLinear") == kept


def test_the_numbers_are_the_formula():
    """(w - z) * s."""
    model, _ = apply_pass(FOLD_DEQUANTIZATION, BY_AXIS)
    (folded,) = [value.constant.numpy() for value in model.graph.initializers.values() if value.name.endswith("dequantized")]
    np.testing.assert_array_equal(folded, [[0.5, -1.0], [0.5, -1.25]])
