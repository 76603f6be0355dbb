"""Take labels that are texts out of tree ensembles of ai.onnx.ml.

    TreeEnsembleClassifier(x, strings)      ->      places, scores = TreeEnsembleClassifier(x, integers = 0, 1 …)
                                                    labels = Gather(strings, places)

so that kernels know integer labels only. The one label of an ensemble of a single class stands for both places that may then be
chosen.

Left alone:
    integer labels
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Attribute, Value
from sardonyx.optimize.helpers.ml_scores import ML, Maker, labelled, ml
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_TREE_LABELS"]

_LABELS = ("classlabels_strings", "classlabels_int64s")


def _pattern(op: PatternBuilder, x: Term) -> tuple[Term, ...]:
    return op.outputs(op.TreeEnsembleClassifier(x, _domain=ML), 2)


def _check(match: Match) -> Array | str:
    """Return the labels of the places that may be chosen, or why the node is left alone."""
    strings = match.root.texts("classlabels_strings", ())
    if not strings:
        return "its labels are no texts"
    labels = np.empty(max(len(strings), 2), object)
    labels[:] = strings if len(strings) > 1 else strings * 2
    return labels


def _replace(op: Builder, match: Match, labels: Array) -> tuple[Value, Value]:
    node = match.root
    count = len(node.texts("classlabels_strings", ()))
    attributes = {name: attribute for name, attribute in node.attributes.items() if name not in _LABELS}
    attributes["classlabels_int64s"] = Attribute.of(tuple(range(count)))
    places, scores = op.outputs(node.op_type, 2, match["x"], _domain=ML, _version=node.version, _attributes=attributes)
    return labelled(Maker(op), places, labels), scores


EXPAND_TREE_LABELS = Rule(
    "expand_tree_labels",
    _pattern,
    _replace,
    _check,
    takes_apart=ml("TreeEnsembleClassifier"),
    summary="Take labels that are texts out of TreeEnsembleClassifier of ai.onnx.ml.",
)
