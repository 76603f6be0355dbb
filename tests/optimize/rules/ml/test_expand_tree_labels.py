"""Labels of tree ensembles that are texts."""

from __future__ import annotations

import numpy as np
import pytest
from support.forests import features, forest_model, named_trees
from support.ml_models import REFERENCE
from support.optimizing import apply_rule, declines, operators

import sardonyx
from sardonyx.formats.onnx import to_bytes
from sardonyx.optimize.rules.ml.expand_tree_labels import EXPAND_TREE_LABELS

TEXT = """graph(x: float[n,2]) -> (l: {label}[n], y: float[n,2]) {{
    l, y = ai.onnx.ml.TreeEnsembleClassifier(x) {{{labels}, nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2],
        nodes_featureids = [0, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values = [0.5, 0.0, 0.0],
        nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], class_treeids = [0, 0], class_nodeids = [1, 2],
        class_ids = [0, 1], class_weights = [1.0, 1.0]}}
}}"""


def test_labels_are_gathered_from_places() -> None:
    """The ensemble itself has integers as labels then."""
    text = TEXT.format(label="string", labels='classlabels_strings = ["no", "yes"]')
    model, fired = apply_rule(EXPAND_TREE_LABELS, text, opset="21, ai.onnx.ml 3")
    assert (fired, operators(model)) == (1, ["TreeEnsembleClassifier", "Gather"])
    assert next(iter(model.graph)).integers("classlabels_int64s") == (0, 1)


def test_integer_labels_stay() -> None:
    """They need nothing."""
    text = TEXT.format(label="int64", labels="classlabels_int64s = [0, 1]")
    assert declines(EXPAND_TREE_LABELS, text, opset="21, ai.onnx.ml 3") == "its labels are no texts"


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_sessions_compile_all_but_the_texts(classes: int) -> None:
    """And find the labels that the operator finds, the one of a single class too."""
    attributes = named_trees("class", 6, 5, targets=classes)
    attributes = {name: value for name, value in attributes.items() if name != "classlabels_int64s"}
    attributes["classlabels_strings"] = tuple(f"label {number}" for number in range(classes))
    model, x = to_bytes(forest_model("TreeEnsembleClassifier", attributes)), features(40, 5)
    session, options = sardonyx.InferenceSession(model), sardonyx.SessionOptions()
    assert "CPUExecutionProvider" in {place.provider for place in session.explain() if "TreeEnsemble" in place.op_type}
    options.graph_optimization_level = sardonyx.GraphOptimizationLevel.ORT_DISABLE_ALL
    expected = sardonyx.InferenceSession(model, options, providers=REFERENCE).run(None, {"x": x})
    found = session.run(None, {"x": x})
    assert found[0].tolist() == expected[0].tolist()
    np.testing.assert_array_equal(found[1], expected[1])
