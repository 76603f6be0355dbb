"""From the votes of trees to labels and scores: the rules of TreeEnsembleClassifier, as ONNX Runtime applies them.

classes   votes for        rule
1         that one         its score; the label is 1 for a positive score, else 0, whatever the label is called
2         one of the two   the "binary case": one column stands for both, see `_binary`
2         both             each class has its score, the greater one wins
3 ..      any              each class has its score, the greatest one of those with a vote (or a base value) wins
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.scores import post_transformed, probit, two_columns

__all__ = ["classified"]


def classified(
    totals: Array, any_vote: Array, base: Array, vote_targets: Array, vote_weights: Array, post_transform: str
) -> tuple[Array, Array]:
    """Return the number of each row's label and the transformed scores (N, C).

    `totals` (N, C) are the sums of votes, `any_vote` says where there are any; `vote_*` are all votes of the ensemble.
    """
    classes = totals.shape[1]
    if base.size > classes:
        raise InvalidArgument(f"base_values have {base.size} entries; expected none, or one for each of {classes} classes")
    if classes == 2 and vote_targets.size and vote_targets.min() == vote_targets.max():
        return _binary(totals, any_vote, base, vote_weights, post_transform)
    totals, any_vote = totals.copy(), any_vote.copy()
    totals[:, : base.size] += base
    any_vote[:, : base.size] = True
    if classes == 1:
        scores = probit(totals) if post_transform == "PROBIT" else totals
        return (totals[:, 0] > 0).astype(np.int64), scores
    return np.where(any_vote, totals, -np.inf).argmax(axis=1), post_transformed(totals, post_transform)


def _binary(totals: Array, any_vote: Array, base: Array, weights: Array, post_transform: str) -> tuple[Array, Array]:
    """Score two classes, votes for one of them only.

    The deciding score is the one with votes. It means the second label above 0.5, or above 0 if some weight is negative.
    Rows with votes for the second class, or with two base values, keep two columns; in the others one score makes both.
    """
    first, second = totals[:, 0], totals[:, 1]
    has_first, has_second = any_vote[:, 0], any_vote[:, 1]
    if base.size == 2:
        second = np.where(has_second, base[1] + first, 0)
        first = np.where(has_first, np.where(has_second, -second, first + base[0]), 0)
    elif base.size == 1:
        first = first + base[0]
    is_probability = bool((weights >= 0).all())
    deciding = np.where(has_second, second, np.where(has_first, first, 0))
    choice = (deciding > (0.5 if is_probability else 0)).astype(np.int64)
    both = np.stack([np.where(has_first, first, 0), second], axis=1)
    if base.size == 2:
        return choice, post_transformed(both, post_transform)
    spread = two_columns(first, is_probability, post_transform)
    return choice, np.where(has_second[:, None], post_transformed(both, post_transform), spread)
