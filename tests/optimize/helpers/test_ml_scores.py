"""Post transforms and labels in operators of ai.onnx: the rules' tests compare their numbers (rules/ml)."""

import numpy as np
import pytest
from support.optimizing import model_of

from sardonyx.optimize.helpers.ml_scores import Maker, class_labels, labelled, post_transformed, two_columns
from sardonyx.optimize.rule import Builder


def made(opset="21, ai.onnx.ml 3"):
    graph = model_of(
        "graph(x: float[4,2]) -> (l, y) { l, y = ai.onnx.ml.SVMClassifier(x) {classlabels_ints = [3, 4]} }", opset
    ).graph
    (node,) = graph
    return node, Maker(Builder(node, {"": 17}, lambda name: name))


def test_nodes_have_the_models_version_or_18():
    """Whichever is newer."""
    node, make = made()
    assert make("Abs", node.inputs[0]).producer.version == 18


@pytest.mark.parametrize(
    ("name", "operator"), [("LOGISTIC", "Sigmoid"), ("SOFTMAX", "Softmax"), ("SOFTMAX_ZERO", "Div"), ("PROBIT", "Mul")]
)
def test_a_post_transform_ends_in_an_operator(name, operator):
    """NONE is none."""
    node, make = made()
    assert post_transformed(make, node.inputs[0], name).producer.op_type == operator
    assert post_transformed(make, node.inputs[0], "NONE") is node.inputs[0]


def test_two_columns_of_a_probability_are_its_complement_and_itself():
    """1 is added to the first."""
    node, make = made()
    found = two_columns(make, node.inputs[0], True, "SOFTMAX").producer
    assert found.op_type == "Add"
    np.testing.assert_array_equal(found.inputs[1].constant.numpy(), [1, 0])
    assert two_columns(make, node.inputs[0], False, "NONE") is node.inputs[0]


def test_labels_are_integers_or_text():
    """A table that is 0, 1, … needs no lookup."""
    node, make = made()
    np.testing.assert_array_equal(class_labels(node), [3, 4])
    assert labelled(make, node.inputs[0], np.arange(3)) is node.inputs[0]
    assert labelled(make, node.inputs[0], np.array([1, 0])).producer.op_type == "Gather"
