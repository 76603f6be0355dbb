"""LinearRegressor and LinearClassifier in operators of ai.onnx."""

import numpy as np
import pytest
from support.ml_models import ml_session, native
from support.optimizing import apply_rule, declines, operators

import sardonyx
from sardonyx.optimize.rules.ml.expand_linear_models import EXPAND_LINEAR_CLASSIFIER, EXPAND_LINEAR_REGRESSOR

OPSET = "21, ai.onnx.ml 3"
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
RNG = np.random.default_rng(3)
X = np.concatenate([RNG.standard_normal((6, 4)), np.zeros((1, 4)), [[np.nan, 0, 1, 2]]]).astype(np.float32) / 8
W3 = [0.5, -0.25, 0.125, 1.0, 0.25, 0.5, -0.5, 0.75, -1.0, 0.5, 0.25, -0.125]


def regressor(attributes, kind="float", shape="n,4"):
    return f"graph(x: {kind}[{shape}]) -> (y: float[k,t]) {{ y = ai.onnx.ml.LinearRegressor(x) {{{attributes}}} }}"


def classifier(attributes, kind="float", shape="n,4", label="int64"):
    return (
        f"graph(x: {kind}[{shape}]) -> (l: {label}[k], y: float[k,c]) {{ l, y = ai.onnx.ml.LinearClassifier(x) {{{attributes}}} }}"
    )


def compare(model, x, rtol=2e-6):
    ours, reference = ml_session(model), ml_session(model, is_reference=True)
    for rows in (x, x[:1], x[:0]) if x.ndim == 2 else (x,):
        for found, expected in zip(ours.run(None, {"x": rows}), reference.run(None, {"x": rows}), strict=True):
            assert found.shape == expected.shape
            if found.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-7)
            else:
                np.testing.assert_array_equal(found, expected)
    return ours


@pytest.mark.parametrize("post_transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_a_regressor_is_a_product(targets, post_transform):
    """With the post transform, which for one target is PROBIT alone."""
    intercepts = [0.25, 0.5, 0.75][:targets]
    text = regressor(
        f'coefficients = {W3[: 4 * targets]}, intercepts = {intercepts}, targets = {targets}, post_transform = "{post_transform}"'
    )
    with np.errstate(all="ignore"):
        assert native(compare(text, X))


@pytest.mark.parametrize(("kind", "dtype"), [("double", np.float64), ("int64", np.int64), ("int32", np.int32)])
def test_other_types_are_rounded_to_float_first(kind, dtype):
    """As by the reference provider."""
    assert native(compare(regressor(f"coefficients = {W3[:4]}", kind), (X[:6] * 16).astype(dtype)))


def test_a_vector_is_one_row():
    """Of both models."""
    compare(regressor(f"coefficients = {W3[:4]}", shape="4"), X[0])
    compare(classifier(f"coefficients = {W3}, intercepts = [0.5, 0.25, 1.0], classlabels_ints = [5, 6, 9]", shape="4"), X[0])


@pytest.mark.parametrize("post_transform", TRANSFORMS)
@pytest.mark.parametrize("labels", ["[0, 1, 2]", "[7, -3, 5]"])
def test_a_classifier_chooses_the_greatest_score(post_transform, labels):
    """And transforms them all."""
    text = classifier(
        f'coefficients = {W3}, intercepts = [0.5, 0.25, 1.0], classlabels_ints = {labels}, post_transform = "{post_transform}"'
    )
    assert native(compare(text, X))


@pytest.mark.parametrize("post_transform", TRANSFORMS)
@pytest.mark.parametrize("intercepts", ["", "intercepts = [0.125],"])
def test_one_row_of_coefficients_makes_both_columns_of_two_labels(post_transform, intercepts):
    """The second label is chosen by a positive score: neither 0 nor NaN."""
    text = classifier(f'coefficients = {W3[:4]}, {intercepts} classlabels_ints = [4, 2], post_transform = "{post_transform}"')
    assert native(compare(text, X))


def test_labels_of_text_are_looked_up_behind_the_native_program():
    """Scores and places are compiled."""
    text = classifier(f'coefficients = {W3}, classlabels_strings = ["a", "bc", ""]', label="string")
    session = compare(text, X)
    assert [place.op_type for place in session.explain() if place.provider != "CPUExecutionProvider"] == ["Gather"]


def test_coefficients_beyond_the_last_label_are_not_read():
    """As in ONNX Runtime."""
    assert native(
        compare(classifier(f"coefficients = {[*W3, 9.0, 9.0]}, intercepts = [0.0, 0.0, 1.0], classlabels_ints = [1, 2, 3]"), X)
    )


def test_features_may_be_known_only_in_the_run():
    """Others than there are coefficients for are refused."""
    session = compare(
        classifier(f"coefficients = {W3}, intercepts = [0.0, 0.0, 1.0], classlabels_ints = [1, 2, 3]", shape="n,m"), X
    )
    assert native(session)
    with pytest.raises(sardonyx.InvalidArgument):
        session.run(None, {"x": X[:, :3]})


def test_the_operators_are_those_of_ai_onnx():
    """A product, the greatest, a table of labels."""
    text = classifier(f'coefficients = {W3}, classlabels_ints = [5, 2, 3], post_transform = "SOFTMAX"')
    assert operators(apply_rule(EXPAND_LINEAR_CLASSIFIER, text, opset=OPSET, compare=False)[0]) == [
        "Gemm",
        "ArgMax",
        "Gather",
        "Softmax",
    ]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        (f"coefficients = {W3[:5]}", "5 coefficients and 0 intercepts for 1 rows of 4 features"),
        (f"coefficients = {W3[:4]}, intercepts = [1.0, 2.0]", "2 intercepts"),
        (f"coefficients = {W3[:4]}, targets = 0", "targets=0"),
        (f'coefficients = {W3[:4]}, post_transform = "SOFTMIN"', "unknown post transform"),
    ],
)
def test_a_regressor_that_does_not_fit_is_left_alone(attributes, reason):
    """The reference provider refuses it."""
    assert reason.partition(" and")[0] in declines(EXPAND_LINEAR_REGRESSOR, regressor(attributes), opset=OPSET)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        (f"coefficients = {W3}, classlabels_ints = [1, 2]", "3 rows of coefficients for 2 labels"),
        (f"coefficients = {W3[:4]}, classlabels_ints = [1, 2, 3]", "1 rows of coefficients for 3 labels"),
        (f"coefficients = {W3[:4]}", "no class labels"),
        ("coefficients = [1.0], intercepts = [1.0, 2.0], classlabels_ints = [1, 2]", "1 coefficients"),
    ],
)
def test_a_classifier_that_does_not_fit_is_left_alone(attributes, reason):
    """The reference provider refuses it."""
    assert reason in declines(EXPAND_LINEAR_CLASSIFIER, classifier(attributes), opset=OPSET)


def test_what_does_not_fit_is_refused_with_the_reference_providers_error():
    """In the run, as the number of features is known there."""
    session = ml_session(regressor(f"coefficients = {W3[:5]}"))
    with pytest.raises(sardonyx.InvalidArgument, match="5 coefficients and 0 intercepts for 1 targets of 4 features"):
        session.run(None, {"x": X})
