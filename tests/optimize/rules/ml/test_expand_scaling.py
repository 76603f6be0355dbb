"""Scaler, Binarizer and Imputer in operators of ai.onnx."""

import numpy as np
import pytest
from support.ml_models import ml_session, native
from support.optimizing import apply_rule, declines, operators

import sardonyx
from sardonyx.optimize.rules.ml.expand_scaling import EXPAND_BINARIZER, EXPAND_IMPUTER, EXPAND_SCALER

OPSET = "21, ai.onnx.ml 3"


def text(node, kind="float", shape="4,3", made=None):
    return f"graph(x: {kind}[{shape}]) -> (y) {{ y = ai.onnx.ml.{node} }}"


@pytest.mark.parametrize("kind", ["float", "double", "int64", "int32"])
@pytest.mark.parametrize(
    "attributes",
    [
        "offset = [1.5, -2.0, 0.25], scale = [2.0, 0.5, -3.0]",
        "offset = [0.5]",
        "scale = [3.0]",
        "offset = [1.0, 2.0, 3.0], scale = [0.1]",
    ],
)
def test_a_scaler_is_a_difference_and_a_product(kind, attributes):
    """In double for all types but float."""
    model, fired = apply_rule(EXPAND_SCALER, text(f"Scaler(x) {{{attributes}}}", kind), opset=OPSET)
    assert fired == 1
    assert set(operators(model)) <= {"Sub", "Mul", "Cast"}


@pytest.mark.parametrize("shape", ["3", "n,3", "n,m", "2,4,3"])
def test_a_scaler_takes_any_shape_whose_last_axis_may_fit(shape):
    """A size that only the run shows is checked by a Reshape."""
    _, fired = apply_rule(
        EXPAND_SCALER, text("Scaler(x) {offset = [1.5, -2.0, 0.25]}", shape=shape), opset=OPSET, symbols={"n": 5, "m": 3}
    )
    assert fired == 1


@pytest.mark.parametrize(
    ("node", "shape", "reason"),
    [
        ("Scaler(x) {offset = [1.0, 2.0]}", "4,3", "numbers for an axis of 3"),
        ("Scaler(x) {offset = [1.0, 2.0], scale = [1.0, 2.0, 3.0]}", "4,3", "numbers for an axis of 3"),
        ("Scaler(x) {offset = [1.0, 2.0]}", "2,3,n", "numbers for an axis of n"),
    ],
)
def test_a_scaler_that_does_not_fit_is_left_alone(node, shape, reason):
    """The reference provider refuses it."""
    assert reason in declines(EXPAND_SCALER, text(node, shape=shape), opset=OPSET)


@pytest.mark.parametrize("kind", ["float", "double", "int64", "int32"])
def test_a_binarizer_is_a_comparison(kind):
    """With the threshold, in the input's type."""
    _, fired = apply_rule(EXPAND_BINARIZER, text("Binarizer(x) {threshold = 0.5}", kind), opset=OPSET)
    assert fired == 1


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("float", "imputed_value_floats = [7.0], replaced_value_float = nan"),
        ("double", "imputed_value_floats = [7.0, 8.0, 9.0], replaced_value_float = nan"),
        ("float", "imputed_value_floats = [7.0, 8.0, 9.0]"),
        ("int64", "imputed_value_int64s = [7], replaced_value_int64 = 1"),
        ("int32", "imputed_value_int64s = [7, 8, 9], replaced_value_int64 = 1"),
    ],
)
def test_an_imputer_is_a_choice(kind, attributes):
    """NaN is found by IsNaN, other numbers by comparing."""
    _, fired = apply_rule(EXPAND_IMPUTER, text(f"Imputer(x) {{{attributes}}}", kind), opset=OPSET)
    assert fired == 1


@pytest.mark.parametrize(
    ("kind", "attributes", "reason"),
    [
        ("float", "imputed_value_int64s = [7]", "no imputed values"),
        ("float", "imputed_value_floats = [7.0, 8.0]", "2] numbers for an axis of 3"),
        ("int32", "imputed_value_int64s = [7], replaced_value_int64 = 4294967296", "int32 does not hold"),
        ("string", "imputed_value_int64s = [7]", "type string"),
    ],
)
def test_an_imputer_that_does_not_fit_is_left_alone(kind, attributes, reason):
    """The reference provider refuses it, or knows better."""
    assert reason in declines(EXPAND_IMPUTER, text(f"Imputer(x) {{{attributes}}}", kind), opset=OPSET)


def test_a_model_without_operators_of_ai_onnx_is_taken_apart_too():
    """Versions belong to nodes: the new ones are read under 18."""
    text = "graph(x: float[n,2]) -> (y: float[n,2]) { y = ai.onnx.ml.Scaler(x) {offset = [1.0, 2.0]} }"
    made = ml_session(text, opset="ai.onnx.ml 1")
    assert native(made)
    np.testing.assert_array_equal(made.run(None, {"x": np.ones((2, 2), np.float32)})[0], [[0, -1]] * 2)


def test_another_number_of_features_than_scales_is_refused():
    """Where only the run shows it."""
    made = ml_session("graph(x: float[n,m]) -> (y: float[n,m]) { y = ai.onnx.ml.Scaler(x) {offset = [1.0, 2.0]} }")
    for size in (1, 3, 4):
        with pytest.raises(sardonyx.InvalidArgument):
            made.run(None, {"x": np.ones((2, size), np.float32)})
    np.testing.assert_array_equal(made.run(None, {"x": np.ones((1, 2), np.float32)})[0], [[0, -1]])
