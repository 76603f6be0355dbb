"""Write linear models of ai.onnx.ml as a product, a post transform and the choice of a label.

    LinearRegressor(x)      ->      post_transform(Gemm(x, coefficients, intercepts))
    LinearClassifier(x)     ->      s = Gemm(x, coefficients, intercepts)
                                    labels = Gather(class labels, ArgMax(s)), scores = post_transform(s)

A classifier of two labels with one row of coefficients gets a product with (-row, row): before the transform its scores are
(-s, s), and the second label is chosen where s > 0.

Left alone:
    numbers of coefficients, intercepts or labels that do not fit, which are the reference provider's to refuse
    other ranks than 1 and 2
    a number of features that is not known, where it would say how many rows of coefficients there are
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Value
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

__all__ = ["EXPAND_LINEAR_CLASSIFIER", "EXPAND_LINEAR_REGRESSOR"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Product:
    """The numbers of a linear model."""

    weights: Array
    """The coefficients, (rows, features)."""
    offsets: Array | None
    """The intercepts, (rows,)."""


def _product(match: Match, rows: int, *, exact: bool) -> _Product | str:
    """Return the numbers of a model of so many rows, or why they do not fit; 0 where the features say how many rows there are."""
    node, x = match.root, match["x"]
    if node.text("post_transform", "NONE") not in POST_TRANSFORMS:
        return "an unknown post transform"
    if x.dtype not in NUMBERS or x.shape is None or len(x.shape) not in (1, 2):
        return f"data of type {x.dtype} and shape {x.shape}"
    weights = np.array(node.numbers("coefficients", ()), np.float32)
    offsets = np.array(node.numbers("intercepts", ()), np.float32)
    known = x.shape[-1] if isinstance(x.shape[-1], int) else None
    if rows == 0 and known:
        rows = weights.size // known
    features = known if known is not None else weights.size // max(rows, 1)
    if rows < 1 or features < 1 or offsets.size not in (0, rows):
        return f"{weights.size} coefficients and {offsets.size} intercepts for {rows} rows of {features} features"
    if weights.size < rows * features or (weights.size != rows * features and (exact or known is None)):
        return f"{weights.size} coefficients for {rows} rows of {features} features"
    return _Product(weights[: rows * features].reshape(rows, features), offsets if offsets.size else None)


def _multiplied(make: Maker, x: Value, product: _Product) -> Value:
    rows = make.float_rows(x)
    weights = np.ascontiguousarray(product.weights.T)
    return make("Gemm", rows, weights, *([] if product.offsets is None else [product.offsets]))


def _regressor_pattern(op: PatternBuilder, x: Term) -> Term:
    return op.LinearRegressor(x, _domain=ML)


def _check_regressor(match: Match) -> _Product | str:
    targets = match.root.integer("targets", 1)
    return _product(match, targets, exact=True) if targets > 0 else f"targets={targets}"


def _replace_regressor(op: Builder, match: Match, product: _Product) -> Value:
    make, name = Maker(op), match.root.text("post_transform", "NONE")
    scores = _multiplied(make, match["x"], product)
    return post_transformed(make, scores, name) if len(product.weights) > 1 or name == "PROBIT" else scores


def _classifier_pattern(op: PatternBuilder, x: Term) -> tuple[Term, ...]:
    return op.outputs(op.LinearClassifier(x, _domain=ML), 2)


def _check_classifier(match: Match) -> _Product | str:
    labels = class_labels(match.root)
    if labels is None:
        return "no class labels"
    product = _product(match, len(match.root.numbers("intercepts", ())), exact=False)
    if isinstance(product, str):
        return product
    rows = len(product.weights)
    fits = rows == len(labels) or (rows == 1 and len(labels) == 2)
    return product if fits else f"{rows} rows of coefficients for {len(labels)} labels"


def _replace_classifier(op: Builder, match: Match, product: _Product) -> tuple[Value, Value]:
    make, name, labels = Maker(op), match.root.text("post_transform", "NONE"), class_labels(match.root)
    assert labels is not None
    is_binary = len(product.weights) == 1 and len(labels) == 2
    if is_binary:
        weights, offsets = product.weights, product.offsets
        product = _Product(np.vstack([-weights, weights]), None if offsets is None else np.concatenate([-offsets, offsets]))
    scores = _multiplied(make, match["x"], product)
    chosen = labelled(make, make("ArgMax", scores, axis=1, keepdims=0), labels)
    if is_binary:
        return chosen, two_columns(make, scores, True, name)
    return chosen, post_transformed(make, scores, name)


EXPAND_LINEAR_REGRESSOR = Rule(
    "expand_linear_regressor",
    _regressor_pattern,
    _replace_regressor,
    _check_regressor,
    takes_apart=ml("LinearRegressor"),
    summary="Write LinearRegressor of ai.onnx.ml as a product and its post transform.",
)
EXPAND_LINEAR_CLASSIFIER = Rule(
    "expand_linear_classifier",
    _classifier_pattern,
    _replace_classifier,
    _check_classifier,
    takes_apart=ml("LinearClassifier"),
    summary="Write LinearClassifier of ai.onnx.ml as a product, its post transform and the choice of a label.",
)
