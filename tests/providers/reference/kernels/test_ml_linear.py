"""Facts about linear models and support vector machines."""

import functools

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

run_ml = functools.partial(run_op, domain="ai.onnx.ml")
ROWS = np.float32([[1, 2], [-1, 0.5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_linear_regressor_multiplies_and_adds(dtype):
    """Coefficients lie target by target; the result is float."""
    result = run_ml("LinearRegressor", ROWS.astype(dtype)[:1], coefficients=(1.0, 0.0, 0.5, 1.0), intercepts=(0.0, 1.0), targets=2)
    assert (result.dtype, result.tolist()) == (np.float32, [[1, 3.5]])


def test_linear_regressor_needs_no_intercepts():
    """A vector is one row; a wrong number of coefficients is an error."""
    assert run_ml("LinearRegressor", ROWS[0], coefficients=(1.0, 1.0)).tolist() == [[3]]
    with pytest.raises(InvalidArgument, match="3 coefficients"):
        run_ml("LinearRegressor", ROWS, coefficients=(1.0, 1.0, 1.0))


def test_linear_classifier_takes_the_greatest_score():
    """One row of coefficients for each label."""
    weights = {"coefficients": (1.0, 0.0, 0.0, 1.0), "intercepts": (0.5, 0.0)}
    labels, scores = run_ml("LinearClassifier", ROWS, outputs=2, classlabels_strings=("a", "b"), **weights)
    assert labels.tolist() == ["b", "b"]
    assert scores.tolist() == [[1.5, 2], [-0.5, 0.5]]


def test_linear_classifier_may_have_one_row_for_two_labels():
    """A positive score means the second label."""
    labels, scores = run_ml(
        "LinearClassifier", ROWS, outputs=2, coefficients=(0.25, 0.0), intercepts=(0.0,), classlabels_ints=(7, 9)
    )
    assert labels.tolist() == [9, 7]
    assert scores.tolist() == [[0.75, 0.25], [1.25, -0.25]]


def test_linear_classifier_rejects_rows_without_labels():
    """Three rows for two labels do not fit."""
    with pytest.raises(InvalidArgument, match="3 rows of coefficients"):
        run_ml("LinearClassifier", ROWS, coefficients=(1.0,) * 6, intercepts=(0.0,) * 3, classlabels_ints=(0, 1))


PARAMS = (0.5, 1.0, 2.0)
KERNEL_OF = {
    "LINEAR": lambda x, v: x @ v,
    "POLY": lambda x, v: (0.5 * (x @ v) + 1) ** 2,
    "SIGMOID": lambda x, v: np.tanh(0.5 * (x @ v) + 1),
    "RBF": lambda x, v: np.exp(-0.5 * ((x - v) ** 2).sum()),
}


@pytest.mark.parametrize("kernel_type", KERNEL_OF)
def test_svm_regressor_sums_kernels(kernel_type):
    """Every support vector is weighed by its coefficient, and rho added."""
    vectors, weights = np.array([[1.0, 0.5], [-0.25, 2.0], [0.0, 1.0]]), np.array([0.5, -1.0, 2.0])
    result = run_ml(
        "SVMRegressor",
        ROWS,
        coefficients=tuple(weights),
        rho=(0.25,),
        support_vectors=tuple(vectors.ravel()),
        n_supports=3,
        kernel_type=kernel_type,
        kernel_params=PARAMS,
    )
    want = [sum(w * KERNEL_OF[kernel_type](x, v) for w, v in zip(weights, vectors, strict=True)) + 0.25 for x in ROWS.astype(float)]
    assert (result.dtype, result.shape) == (np.float32, (2, 1))
    np.testing.assert_allclose(result[:, 0], want, rtol=1e-6)


@np.errstate(invalid="ignore")
def test_rows_of_infinite_numbers_are_far_from_every_vector():
    """Whatever their signs, RBF of them is 0, as in onnxruntime; NaN stays."""
    rows = np.array([[np.inf, 0.5], [-np.inf, np.inf], [0.5, np.nan], [0.5, 0.25]], np.float32)
    result = run_ml(
        "SVMRegressor",
        rows,
        coefficients=(2.0,),
        rho=(0.25,),
        support_vectors=(0.5, 0.25),
        n_supports=1,
        kernel_type="RBF",
        kernel_params=PARAMS,
    )
    np.testing.assert_array_equal(result[:, 0], np.array([0.25, 0.25, np.nan, 2.25], np.float32))


def test_one_class_regressor_gives_signs():
    """Without vectors the coefficients are a row; above 0 is 1, else -1."""
    assert run_ml("SVMRegressor", ROWS, coefficients=(1.0, 0.0), rho=(0.0,), one_class=1).tolist() == [[1], [-1]]


CLASSES = {
    "coefficients": (1.0, 1.0, -1.0, 1.0, -0.5, -1.0),
    "support_vectors": (1.0, 0.0, 0.0, 1.0, -1.0, -1.0),
    "vectors_per_class": (1, 1, 1),
    "rho": (0.0, 0.1, -0.1),
    "classlabels_ints": (4, 5, 6),
}


def test_svm_classifier_lets_pairs_vote():
    """Without probabilities the scores are the decisions of the pairs."""
    labels, scores = run_ml("SVMClassifier", ROWS, outputs=2, **CLASSES)
    first = ROWS @ np.float32([[1, 0, -1], [0, 1, -1]])
    want = [
        first[:, 0] * 1 + first[:, 1] * 1,
        first[:, 0] * 1 + first[:, 2] * -1 + 0.1,
        first[:, 1] * -0.5 + first[:, 2] * -1 - 0.1,
    ]
    np.testing.assert_allclose(scores, np.stack(want, axis=1), rtol=1e-6)
    assert labels.tolist() == [4, 6]


def test_svm_probabilities_add_up():
    """Each class has one, whatever the number of rows."""
    _, scores = run_ml("SVMClassifier", ROWS, outputs=2, prob_a=(-1.0, -2.0, -0.5), prob_b=(0.0, 0.1, -0.1), **CLASSES)
    assert scores.shape == (2, 3)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
    alone = run_ml("SVMClassifier", ROWS[:1], outputs=2, prob_a=(-1.0, -2.0, -0.5), prob_b=(0.0, 0.1, -0.1), **CLASSES)[1]
    np.testing.assert_array_equal(alone[0], scores[0])
    empty = run_ml("SVMClassifier", ROWS[:0], outputs=2, prob_a=(-1.0, -2.0, -0.5), prob_b=(0.0, 0.1, -0.1), **CLASSES)
    assert [part.shape for part in empty] == [(0,), (0, 3)]


def test_svm_of_two_classes_has_two_columns():
    """The decision s of the pair makes -s and s."""
    attributes = {"coefficients": (1.0, -1.0), "support_vectors": (1.0, 0.0, 0.0, 1.0), "vectors_per_class": (1, 1), "rho": (0.0,)}
    labels, scores = run_ml("SVMClassifier", ROWS, outputs=2, classlabels_strings=("a", "b"), **attributes)
    assert labels.tolist() == ["b", "b"]
    assert scores.tolist() == [[1, -1], [1.5, -1.5]]


def test_svm_without_vectors_is_linear():
    """The coefficients are one row for each class, rho is added to all."""
    labels, scores = run_ml(
        "SVMClassifier", ROWS, outputs=2, coefficients=(1.0, 0.0, 0.0, -1.0), rho=(0.5,), classlabels_ints=(4, 5)
    )
    assert scores.tolist() == [[1.5, -1.5], [-0.5, 0]]
    assert labels.tolist() == [5, 5]


@pytest.mark.parametrize(
    "change",
    [
        {"rho": (0.0,)},
        {"vectors_per_class": (1, 2)},
        {"coefficients": (1.0,)},
        {"kernel_type": "COSINE"},
        {"support_vectors": (1.0,) * 5},
    ],
)
def test_svm_rejects_parts_that_do_not_fit(change):
    """Too few rho, coefficients or classes, an unknown kernel, vectors of no length."""
    with pytest.raises(InvalidArgument):
        run_ml("SVMClassifier", ROWS, **(CLASSES | change))


def test_linear_classifier_reads_no_coefficients_behind_its_classes():
    """Converters wrote rows for more features than the data has; as in onnxruntime, the first ones count, in order."""
    weights = {"intercepts": (0.5, 0.0), "classlabels_ints": (3, 4), "outputs": 2}
    found = run_ml("LinearClassifier", ROWS, coefficients=(1.0, 0.0, 0.0, 1.0, 7.0, 8.0), **weights)
    for ours, expected in zip(found, run_ml("LinearClassifier", ROWS, coefficients=(1.0, 0.0, 0.0, 1.0), **weights), strict=True):
        np.testing.assert_array_equal(ours, expected)
