"""Facts about scores, their transforms and labels."""

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.scores import (
    as_rows,
    label_array,
    logistic,
    post_transformed,
    probit,
    regressed,
    two_columns,
)

SCORES = np.float32([[0.0, 1.0, -2.0]])


def test_logistic_does_not_overflow():
    """Far out it is 0 and 1, at 0 a half; NaN stays NaN."""
    result = logistic(np.float32([-1e4, 0, 1e4, np.nan]))
    assert result.dtype == np.float32
    assert result[:3].tolist() == [0, 0.5, 1]
    assert np.isnan(result[3])


def test_probit_is_the_normal_quantile():
    """Within the stated error; 0 and 1 are infinite, outside is NaN."""
    result = probit(np.float32([0.5, 0.975, 0.025, 0, 1, 2]))
    np.testing.assert_allclose(result[:3], [0, 1.959964, -1.959964], rtol=2e-3, atol=1e-6)
    assert result[3:5].tolist() == [-np.inf, np.inf]
    assert np.isnan(result[5])


def test_softmax_adds_up_to_one():
    """Large scores do not overflow."""
    result = post_transformed(np.float32([[1000, 1000], [0, -1000]]), "SOFTMAX")
    assert result.tolist() == [[0.5, 0.5], [1, 0]]


def test_softmax_zero_leaves_zeros_out():
    """A score of 0 stays 0; the others share the rest."""
    result = post_transformed(SCORES, "SOFTMAX_ZERO")[0]
    assert result[0] == 0
    np.testing.assert_allclose(result[1:], np.exp([1, -2]) / np.exp([1, -2]).sum(), rtol=1e-6)


def test_unknown_transforms_are_rejected():
    """The message lists those that there are."""
    with pytest.raises(InvalidArgument, match="SOFTMAX_ZERO"):
        post_transformed(SCORES, "SIGMOID")
    with pytest.raises(InvalidArgument, match="SOFTMAX_ZERO"):
        regressed(SCORES[:, :1], "SIGMOID")


def test_one_target_is_transformed_by_probit_only():
    """Two targets are transformed by all."""
    assert regressed(SCORES[:, :1], "LOGISTIC").tolist() == [[0]]
    assert regressed(SCORES[:, :2], "LOGISTIC")[0, 0] == 0.5
    assert regressed(np.float32([[0.5]]), "PROBIT").tolist() == [[0]]


@pytest.mark.parametrize(
    ("is_probability", "transform", "want"),
    [(True, "NONE", [0.75, 0.25]), (False, "NONE", [-0.25, 0.25]), (True, "SOFTMAX", [0.75, 0.25]), (False, "LOGISTIC", None)],
)
def test_one_score_makes_two_columns(is_probability, transform, want):
    """1 - s or -s stands beside s; LOGISTIC makes both of the logistic function."""
    result = two_columns(np.float32([0.25]), is_probability, transform)
    np.testing.assert_allclose(result[0], want or logistic(np.float32([-0.25, 0.25])), rtol=1e-6)


def test_rows_and_labels():
    """A vector is one row; labels are strings or integers, and there is at least one."""
    assert as_rows(np.zeros(3)).shape == (1, 3)
    assert label_array(("a", "b"), ()).dtype == object
    assert label_array((), (3,)).dtype == np.int64
    with pytest.raises(InvalidArgument, match="no class labels"):
        label_array((), ())
    with pytest.raises(InvalidArgument, match=r"expected \(N, F\)"):
        as_rows(np.zeros((1, 1, 1)))
