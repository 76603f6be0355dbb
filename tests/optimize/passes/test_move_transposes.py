"""Transposes move to where they cancel."""

from __future__ import annotations

from collections import Counter

import numpy as np
from support.models import model

from sardonyx import InferenceSession
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Model
from sardonyx.optimize.contract import Context, Level
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.move_transposes import MOVE_TRANSPOSES
from sardonyx.optimize.pipeline import optimize

CANCELS = """graph(x: float[2, 3, 4]) -> (y: float[2, 3, 4]) {
    a = Transpose(x) {perm = [1, 2, 0]}
    b = Relu(a)
    y = Transpose(b) {perm = [2, 0, 1]}
}"""
STAYS = """graph(x: float[2, 3, 4]) -> (y: float[4, 3, 2]) {
    a = Transpose(x)
    y = Relu(a)
}"""


def _inferred(text: str) -> Model:
    held = model(text)
    INFER_SHAPES.run(held, Context())
    return held


def test_transposes_on_both_sides_of_an_operator_cancel() -> None:
    """The operator is computed on what the first one read; then there is nothing left to move."""
    held = _inferred(CANCELS)
    assert MOVE_TRANSPOSES.run(held, Context())
    assert [node.op_type for node in held.graph] == ["Relu"]
    assert not MOVE_TRANSPOSES.run(held, Context())


def test_a_transpose_that_would_only_change_places_stays() -> None:
    """Nothing is won, and the pass says that it changed nothing."""
    held = _inferred(STAYS)
    assert not MOVE_TRANSPOSES.run(held, Context())
    assert [node.op_type for node in held.graph] == ["Transpose", "Relu"]


def test_what_a_feed_may_override_is_no_constant() -> None:
    """An initializer that is an input too keeps its place and shape."""
    text = """graph(x: float[2, 3], w: float[3, 2]) -> (y: float[2, 3]) {
        w: float[3, 2] = ... 1
        a = Transpose(x)
        b = Add(a, w)
        y = Transpose(b)
    }"""
    held = _inferred(text)
    assert not MOVE_TRANSPOSES.run(held, Context())


def test_it_runs_at_the_level_of_layouts() -> None:
    """And not below."""
    counts = {}
    for level in (Level.EXTENDED, Level.LAYOUT):
        held = model(CANCELS)
        optimize(held, level, evaluate=None)
        counts[level] = Counter(node.op_type for node in held.graph)
    assert (counts[Level.EXTENDED]["Transpose"], counts[Level.LAYOUT]["Transpose"]) == (2, 0)


def test_results_stay_the_same() -> None:
    """To the bit."""
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    (found,) = InferenceSession(to_bytes(model(CANCELS))).run(None, {"x": x})
    np.testing.assert_array_equal(found, np.maximum(x, 0))
