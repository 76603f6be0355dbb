"""Masks of attention, as the operator takes them."""

import math

import pytest
from support.optimizing import model_of

from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.attention_mask import mask_inputs, mask_reason, may_hide_all
from sardonyx.optimize.helpers.attention_scores import read_scores
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rule import Builder


def scores_of(lines):
    text = f"""graph(q: float[b, 3, s, 8], k: float[b, 3, 8, t], m: float[b, 1, s, t], n: float[b, 1, s, u], c: bool[s, t])
        -> (y) {{ low: float[] = -3.4028234e38 ninf: float[] = -inf small: float[] = -5.0 two: float[] = 2.0 zero: float[] = 0.0
        p = MatMul(q, k) {lines} y = Softmax(x) }}"""
    model = model_of(text)
    INFER_SHAPES.run(model, Context())
    found = read_scores(next(value for node in model.graph for value in node.outputs if value.name == "x"), frozenset())
    assert found is not None
    return model, found


SHAPE = (*scores_of("x = Mul(p, two)")[1].query.shape[:3], scores_of("x = Mul(p, two)")[1].keys.shape[3])


@pytest.mark.parametrize("lines", ["x = Add(p, m)", "x = Add(p, n)", "x = Where(c, p, ninf)", "a = Add(p, m) x = Max(a, low)"])
def test_masks_that_fit(lines):
    """One that goes along all keys, or of a length that only a run shows."""
    assert mask_reason(scores_of(lines)[1], SHAPE, is_split=True) is None


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("x = Where(c, p, small)", "scores are replaced by -5.0"),
        ("x = Max(p, two)", "scores are replaced by 2.0"),
        ("x = Add(p, two)", "the mask is ()"),
    ],
)
def test_masks_that_do_not(lines, reason):
    """A fill that does not hide a score, and what is no mask."""
    assert reason in str(mask_reason(scores_of(lines)[1], SHAPE, is_split=True))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("x = Where(c, p, low)", False),
        ("x = Where(c, p, ninf)", True),
        ("x = Add(p, m)", True),
        ("a = Add(p, m) x = Max(a, low)", False),
        ("a = Where(c, zero, low) x = Add(p, a)", False),
        ("a = Where(c, zero, low) d = Add(p, a) x = Add(d, a)", True),
        ("r = MatMul(q, k) a = Add(r, zero) d = Mul(p, two) x = Add(d, a)", False),
        ("r = MatMul(q, k) a = Add(r, m) d = Mul(p, two) x = Add(d, a)", True),
    ],
)
def test_rows_that_may_be_hidden(lines, expected):
    """What may hold -inf: infinite fills, fed masks, sums beyond the finite numbers; not what is raised to a number after."""
    assert may_hide_all(scores_of(lines)[1], frozenset()) is expected


@pytest.mark.parametrize(
    ("lines", "hides_all", "made"),
    [
        ("x = Add(p, m)", False, []),
        ("x = Add(p, m)", True, ["ReduceMax", "Equal", "Where"]),
        ("x = Where(c, p, ninf)", False, []),
        ("x = Where(c, ninf, p)", False, ["Not"]),
        ("x = Where(c, p, low)", False, ["Where"]),
        ("a = Add(p, m) d = Mul(a, two) x = Where(c, low, d)", False, ["Mul", "Where"]),
        ("a = Where(c, p, low) x = Add(a, m)", False, ["Where", "Add"]),
        ("a = Add(p, m) x = Max(a, low)", False, ["Max"]),
        ("x = Max(p, low)", False, []),
    ],
)
def test_inputs(lines, hides_all, made):
    """What is built for each."""
    model, scores = scores_of(lines)
    op = Builder(next(node for node in model.graph if node.op_type == "Softmax"), {"": 21}, lambda name: name + "/new")
    values = mask_inputs(op, scores, hides_all=hides_all)
    assert [node.op_type for node in op.nodes] == made
    assert len(values) == (0 if lines == "x = Max(p, low)" else 1)
    assert not math.isnan(scores.scale)
