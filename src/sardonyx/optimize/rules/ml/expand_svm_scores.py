"""Take all but the sums and votes out of support vector machines of ai.onnx.ml.

    SVMClassifier(x, post_transform, strings)      ->      places, s = SVMClassifier(Cast(x))
                                                           labels = Gather(strings, places), scores = post_transform(s)
    SVMRegressor(x, post_transform)                ->      post_transform(SVMRegressor(Cast(x)))

so that kernels know float32 rows, integer labels and plain scores only. Of a regressor's one score only PROBIT makes another.

Left alone:
    classifiers without support vectors, or with numbers of them that do not fit their labels
    other ranks than 1 and 2, and types that are no numbers
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Attribute, Value
from sardonyx.optimize.helpers.ml_scores import (
    ML,
    NUMBERS,
    POST_TRANSFORMS,
    Maker,
    class_labels,
    labelled,
    ml,
    post_transformed,
    two_columns,
)
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_SVM_CLASSIFIER", "EXPAND_SVM_REGRESSOR"]

_OWN = ("post_transform", "classlabels_strings", "classlabels_ints")


@dataclasses.dataclass(frozen=True, slots=True)
class _Machine:
    """What a node has besides its sums."""

    post_transform: str
    """The transform of its scores."""
    attributes: dict[str, Attribute]
    """The attributes without that, and without labels."""


def _machine(match: Match) -> _Machine | str:
    x, node = match["x"], match.root
    name = node.text("post_transform", "NONE")
    if x.dtype not in NUMBERS or x.shape is None or len(x.shape) not in (1, 2):
        return f"data of type {x.dtype} and shape {x.shape}"
    if name not in POST_TRANSFORMS:
        return "an unknown post transform"
    is_plain = x.dtype is DataType.FLOAT and len(x.shape) == 2 and name == "NONE"
    if is_plain and not node.texts("classlabels_strings", ()):
        return "nothing to take out"
    return _Machine(name, {key: value for key, value in node.attributes.items() if key not in _OWN})


def _regressor_pattern(op: PatternBuilder, x: Term) -> Term:
    return op.SVMRegressor(x, _domain=ML)


def _check_regressor(match: Match) -> _Machine | str:
    found = _machine(match)
    if not isinstance(found, str) and match.root.flag("one_class") and found.post_transform != "NONE":
        return dataclasses.replace(found, post_transform="NONE")
    return found


def _replace_regressor(op: Builder, match: Match, machine: _Machine) -> Value:
    make = Maker(op)
    scores = op.SVMRegressor(make.float_rows(match["x"]), _domain=ML, _attributes=machine.attributes)
    return post_transformed(make, scores, "PROBIT") if machine.post_transform == "PROBIT" else scores


def _classifier_pattern(op: PatternBuilder, x: Term) -> tuple[Term, ...]:
    return op.outputs(op.SVMClassifier(x, _domain=ML), 2)


def _check_classifier(match: Match) -> _Machine | str:
    labels, counts = class_labels(match.root), match.root.integers("vectors_per_class", ())
    if labels is None or len(labels) < 2 or len(counts) != len(labels) or sum(counts) <= 0:
        return f"vectors_per_class={counts}, which does not fit the labels"
    return _machine(match)


def _replace_classifier(op: Builder, match: Match, machine: _Machine) -> tuple[Value, Value]:
    make, node, labels = Maker(op), match.root, class_labels(match.root)
    assert labels is not None
    places, scores = op.outputs(
        "SVMClassifier",
        2,
        make.float_rows(match["x"]),
        _domain=ML,
        _attributes=machine.attributes,
        classlabels_ints=tuple(range(len(labels))) if labels.dtype != np.int64 else tuple(labels.tolist()),
    )
    chosen = labelled(make, places, labels) if labels.dtype != np.int64 else places
    if len(labels) == 2 and not node.numbers("prob_a", ()):
        return chosen, two_columns(make, scores, machine.post_transform != "NONE", machine.post_transform)
    return chosen, post_transformed(make, scores, machine.post_transform)


EXPAND_SVM_REGRESSOR = Rule(
    "expand_svm_regressor",
    _regressor_pattern,
    _replace_regressor,
    _check_regressor,
    takes_apart=ml("SVMRegressor"),
    summary="Take the post transform, and types other than float, out of SVMRegressor of ai.onnx.ml.",
)
EXPAND_SVM_CLASSIFIER = Rule(
    "expand_svm_classifier",
    _classifier_pattern,
    _replace_classifier,
    _check_classifier,
    takes_apart=ml("SVMClassifier"),
    summary="Take the post transform, labels of text, and types other than float, out of SVMClassifier of ai.onnx.ml.",
)
