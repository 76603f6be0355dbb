"""Facts about the losses."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

X = np.array([[[1.0, 2], [2, 2], [3, 2]], [[0, 1], [2, 2], [1, 2]]])
TARGET = np.array([[2, 1], [0, 2]])
WEIGHT = np.array([0.2, 0.3, 0.1])
NLL = "NegativeLogLikelihoodLoss"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_loss_of_each_sample(dtype):
    """The first example of ONNX NegativeLogLikelihoodLoss-22."""
    y = run_op(NLL, X.astype(dtype), TARGET, reduction="none")
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.float64), [[-3, -2], [0, -2]])


def test_weighted_sum_and_mean():
    """The second and third examples; the mean is by the weights applied."""
    np.testing.assert_allclose(run_op(NLL, X, TARGET, WEIGHT, reduction="sum"), -1.1)
    np.testing.assert_allclose(run_op(NLL, X, TARGET, WEIGHT), -1.1 / 0.7)


def test_ignored_targets_cost_nothing():
    """Samples of ignore_index have no loss and no weight, and may lie outside the classes."""
    target = np.array([[2, -7], [0, 2]], np.int32)
    np.testing.assert_array_equal(run_op(NLL, X, target, reduction="none", ignore_index=-7), [[-3, 0], [0, -2]])
    np.testing.assert_allclose(run_op(NLL, X, target, ignore_index=-7), -5 / 3)


@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3), (2, 4, 3, 2)])
def test_cross_entropy_is_the_likelihood_of_log_softmax(shape):
    """The loss and the log-probabilities, for any number of dimensions."""
    scores = np.random.default_rng(0).normal(size=shape)
    labels = np.random.default_rng(1).integers(0, 4, size=(shape[0], *shape[2:]))
    loss, log_probability = run_op("SoftmaxCrossEntropyLoss", scores, labels, outputs=2)
    np.testing.assert_allclose(log_probability, scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))
    np.testing.assert_allclose(loss, run_op(NLL, log_probability, labels))
    assert loss.shape == ()


def test_targets_out_of_range_are_refused():
    """A class that is not there is named with the range."""
    with pytest.raises(InvalidArgument, match=r"from 0 to 3; expected \[0, 2\]"):
        run_op(NLL, X, np.array([[3, 1], [0, 2]]))


@pytest.mark.parametrize("name", [NLL, "SoftmaxCrossEntropyLoss"])
def test_shapes_that_do_not_belong_together_are_refused(name):
    """Target, weight and reduction are checked."""
    with pytest.raises(InvalidArgument, match="the target"):
        run_op(name, X, TARGET[0])
    with pytest.raises(InvalidArgument, match="weight has shape"):
        run_op(name, X, TARGET, WEIGHT[:2])
    with pytest.raises(InvalidArgument, match="reduction='max'"):
        run_op(name, X, TARGET, reduction="max")
