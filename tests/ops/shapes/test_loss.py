"""Facts about losses."""

from __future__ import annotations

from support.infer_op import A, floats, infer_op, infer_shape, ints


def test_reduction_makes_a_scalar() -> None:
    """Without reduction there is one loss for each target."""
    assert infer_shape("NegativeLogLikelihoodLoss", floats(A, 5), floats(A)) == ()
    assert infer_shape("NegativeLogLikelihoodLoss", floats(A, 5), floats(A), reduction="none") == (A,)


def test_cross_entropy_gives_logarithms_too() -> None:
    """The second output is as the scores."""
    facts = infer_op("SoftmaxCrossEntropyLoss", floats(3, 5), ints(1, 2, 3), outputs=2)
    assert [fact.shape for fact in facts] == [(), (3, 5)]
