"""Activations with their parameters."""

import pytest
from support.optimizing import model_of

from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.activation import PARAMETERS, activation_of, any_activation, fused_type_reason
from sardonyx.optimize.match import find_matches
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.pattern import compile_pattern

LARGEST = 3.4028234663852886e38


def pattern(op, x):
    return any_activation(op, PARAMETERS, x)


def found(call, opset="21", limits="low: float[] = -0.5 high: float[1] = [2]"):
    model = model_of(f"graph(x: float[3], v: float[]) -> (y) {{ {limits} y = {call} }}", opset)
    INFER_SHAPES.run(model, Context())
    node = next(iter(model.graph))
    (match,) = find_matches(compile_pattern(pattern), node, frozenset())
    return activation_of(match)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Relu(x)", ("Relu", [])),
        ("HardSigmoid(x)", ("HardSigmoid", [0.2, 0.5])),
        ("LeakyRelu(x) {alpha = 0.25}", ("LeakyRelu", [0.25])),
        ("Clip(x, low, high)", ("Clip", [-0.5, 2])),
        ("Clip(x, low)", ("Clip", [-0.5, LARGEST])),
        ("Clip(x)", ("Clip", [-LARGEST, LARGEST])),
    ],
)
def test_parameters_in_their_order(call, expected):
    """With defaults, and limits that are left out."""
    name, parameters = found(call)
    assert (name, parameters) == (expected[0], pytest.approx(expected[1]))


def test_limits_that_are_attributes():
    """Of Clip before opset 11."""
    assert found("Clip(x) {min = 0.5, max = 6.0}", "6", "") == ("Clip", [0.5, 6])


def test_types_that_fused_operators_take():
    """Those that onnxruntime has kernels for."""
    values = model_of("graph(a: float[2], b: float16[2], c: double[2]) -> (a) {}").graph.inputs
    assert fused_type_reason(*values[:2]) is None
    assert "float64" in fused_type_reason(*values) or "double" in fused_type_reason(*values)
