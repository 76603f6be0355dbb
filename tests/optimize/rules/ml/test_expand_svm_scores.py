"""Transforms, types and labels are taken out of support vector machines; their numbers: providers/cpu/kernels/test_ml_linear.py."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.ml.expand_svm_scores import EXPAND_SVM_CLASSIFIER, EXPAND_SVM_REGRESSOR

OPSET = "21, ai.onnx.ml 3"


def regressor(more="", kind="float", shape="4,2"):
    return f"""graph(x: {kind}[{shape}]) -> (y) {{ y = ai.onnx.ml.SVMRegressor(x) {{coefficients = [0.125, -0.25], rho = [0.25],
        support_vectors = [1.0, 2.0, 0.5, 0.25], n_supports = 2, kernel_params = [0.5, 0.0, 0.0] {more}}} }}"""


def classifier(more="", kind="float", shape="4,2", counts="[1, 1]"):
    return f"""graph(x: {kind}[{shape}]) -> (l, y) {{ l, y = ai.onnx.ml.SVMClassifier(x) {{coefficients = [0.125, -0.25],
        rho = [0.25], support_vectors = [1.0, 2.0, 0.5, 0.25], vectors_per_class = {counts} {more}}} }}"""


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (regressor(', post_transform = "PROBIT"', shape="2"), "SVMRegressor"),
        (regressor(', post_transform = "SOFTMAX"'), "SVMRegressor"),
        (regressor(kind="int64"), "SVMRegressor"),
        (regressor(', post_transform = "PROBIT", one_class = 1'), "SVMRegressor"),
    ],
)
def test_a_regressor_without_transform_and_other_types(text, made):
    """The same numbers."""
    model, fired = apply_rule(EXPAND_SVM_REGRESSOR, text, opset=OPSET, rtol=1e-4)
    assert fired == 1
    (node,) = (node for node in model.graph if node.op_type == made)
    assert "post_transform" not in node.attributes


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (classifier(', classlabels_ints = [4, 2], post_transform = "LOGISTIC"'), ["SVMClassifier", "Sigmoid"]),
        (classifier(', classlabels_ints = [4, 2], post_transform = "SOFTMAX"'), ["SVMClassifier", "Add"]),
        (classifier(', classlabels_strings = ["a", "b"]'), ["SVMClassifier", "Gather"]),
        (classifier(", classlabels_ints = [4, 2]", kind="double"), ["Cast", "SVMClassifier"]),
        (classifier(", classlabels_ints = [4, 2]", shape="2"), ["Reshape", "SVMClassifier"]),
    ],
)
def test_a_classifier_without_transform_text_and_other_types(text, made):
    """The same labels and numbers."""
    model, fired = apply_rule(EXPAND_SVM_CLASSIFIER, text, opset=OPSET)
    assert (fired, operators(model)) == (1, made)


@pytest.mark.parametrize(
    ("rule", "text", "reason"),
    [
        (EXPAND_SVM_REGRESSOR, regressor(), "nothing to take out"),
        (EXPAND_SVM_REGRESSOR, regressor(shape="2,3,2"), "shape"),
        (EXPAND_SVM_REGRESSOR, regressor(', post_transform = "SOFTMIN"'), "unknown post transform"),
        (EXPAND_SVM_CLASSIFIER, classifier(", classlabels_ints = [4, 2]"), "nothing to take out"),
        (EXPAND_SVM_CLASSIFIER, classifier(", classlabels_ints = [4, 2]", counts="[1]"), "vectors_per_class=(1,)"),
        (EXPAND_SVM_CLASSIFIER, classifier(), "does not fit the labels"),
    ],
)
def test_declines(rule, text, reason):
    """Each case that the rules leave alone."""
    assert reason in declines(rule, text, opset=OPSET)
