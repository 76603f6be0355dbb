"""Attention in older files."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import model_of, operators

from sardonyx.formats.onnx import load, to_bytes
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.older_attention import can_write_attention
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.write_older import WRITE_OLDER

SYMBOLS = {"n": 2, "s": 4, "t": 5, "p": 3, "p + t": 8, "p + s": 7, "s + p": 7}
HEADS = "q_num_heads = 2, kv_num_heads = 2"


def text(call, attributes="", results="y", kind="float", before="", behind=""):
    return f"""graph(q: {kind}[n, s, 6], k: {kind}[n, t, 6], v: {kind}[n, t, 8], qh: {kind}[n, 4, s, 3], kh: {kind}[n, 2, t, 3],
        vh: {kind}[n, 2, t, 5], qf: {kind}[n, 2, s, 3], wh: {kind}[n, 2, t, 3], a: {kind}[n, 1, s, t], row: {kind}[n, 1, 1, t],
        plain: {kind}[s, t], ap: {kind}[n, 1, s, p + t], rowp: {kind}[1, 1, 1, p + t], seen: bool[n, 1, s, t],
        pk: {kind}[n, 2, p, 3], pv: {kind}[n, 2, p, 3], pw: {kind}[n, 2, p, 5]) -> ({results}) {{
        inf: {kind}[] = -inf nan: {kind}[] = nan last: int64[1] = [-1] split: int64[4] = [0, 0, 2, 3] join: int64[3] = [0, 0, 6]
        {before}
        y, yk, yv = Attention({call}) {{{attributes}}} {behind} }}"""


def given(*arguments, **options):
    model = model_of(text(*arguments, **options), "23")
    INFER_SHAPES.run(model, Context())
    return model


def written(body, opset, feeds=None):
    """The operators written, after the numbers were compared."""
    model = body
    sample = random_feeds(model, symbols=SYMBOLS) | (feeds or {})
    before = evaluate_model(model, sample)
    model.opset_imports[""] = opset
    for node in model.graph:
        node.version = node.version if node.op_type == "Attention" else min(node.version, opset)
    assert WRITE_OLDER.run(model, Context())
    again = load(to_bytes(model))
    verify(again)
    with np.errstate(invalid="ignore"):
        after = evaluate_model(again, sample)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)
    return operators(again)


@pytest.mark.parametrize(
    ("call", "attributes", "wanted"),
    [
        ("q, k, v", HEADS, []),
        ("q, k, v", HEADS + ", scale = 0.3", []),
        ("q, k, v, a", HEADS, []),
        ("qf, kh, wh", "", ["Reshape"]),
        ("qf, kh, vh", "", ["Reshape"]),
        ("q, k, v, row", HEADS, ["Expand"]),
        ("q, k, v, plain", HEADS, ["Unsqueeze"]),
        ("qh, kh, wh", "", ["Expand", "Reshape"]),
        ("qh, kh, vh, a", "", ["Expand", "Reshape"]),
    ],
)
@pytest.mark.parametrize("opset", [11, 14])
def test_the_same_numbers(call, attributes, wanted, opset):
    """Heads packed and apart, for groups, and masks that are spread."""
    made = written(given(call, attributes), opset)
    assert made.count("MultiHeadAttention") == 1
    assert set(wanted) <= set(made)


@pytest.mark.parametrize(
    ("call", "few"),
    [
        ("qf, kh, wh, ap, pk, pv", True),
        ("qf, kh, wh, rowp, pk, pv", True),
        ("qh, kh, wh, ap, pk, pv", False),
        ("qf, kh, vh, _, pk, pw", False),
    ],
)
def test_former_keys(call, few):
    """They go along, or before the new ones where heads are repeated or differ in size; all keys are outputs either way."""
    made = written(given(call, results="y, yk, yv"), 14)
    assert ("MultiHeadAttention" in made, made.count("Concat") < 2) == (True, few)


def test_keys_without_former_ones_as_outputs():
    """They are those given."""
    assert "MultiHeadAttention" in written(given("q, k, v", HEADS, results="y, yk, yv"), 14)


def test_what_splits_heads_is_left_out():
    """Transposes around are read through."""
    before = """qr = Reshape(q, split) qt = Transpose(qr) {perm = [0, 2, 1, 3]} kr = Reshape(k, split)
        kt = Transpose(kr) {perm = [0, 2, 1, 3]}"""
    behind = "yt = Transpose(y) {perm = [0, 2, 1, 3]} z = Reshape(yt, join)"
    assert written(given("qt, kt, kt", before=before, behind=behind, results="z"), 14) == ["MultiHeadAttention"]


def test_one_mask_is_spread_once():
    """For all that read it."""
    behind = f"o = Attention(y, k, k, row) {{{HEADS}}}"
    assert written(given("q, k, k, row", HEADS, behind=behind, results="o"), 14).count("Expand") == 1


@pytest.mark.parametrize("mask", ["a", "seen"])
def test_queries_that_see_no_key(mask):
    """They get zeros, as Attention has it."""
    hides = np.arange(4)[:, None] == 1
    feeds = {"a": np.where(hides, -np.inf, np.ones((2, 1, 4, 5))).astype(np.float32), "seen": np.broadcast_to(~hides, (2, 1, 4, 5))}
    made = written(given(f"q, k, v, {mask}", HEADS), 14, feeds)
    assert made.count("IsNaN") == 1


def test_queries_that_are_nan_for_lack_of_keys():
    """What makes them so is left out: com.microsoft does."""
    before = "r = ReduceMax(a, last) e = Equal(r, inf) m = Where(e, nan, a)"
    hides = np.arange(4)[:, None] == 1
    feeds = {"a": np.where(hides, -np.inf, np.ones((2, 1, 4, 5))).astype(np.float32)}
    with np.errstate(invalid="ignore"):
        assert written(given("q, k, v, m", HEADS, before=before), 14, feeds) == ["MultiHeadAttention"]


@pytest.mark.parametrize(
    ("call", "attributes", "options", "opset", "can"),
    [
        ("q, k, v", HEADS, {}, 14, True),
        ("q, k, v", HEADS, {"kind": "float16"}, 14, True),
        ("q, k, v", HEADS, {"kind": "double"}, 14, False),
        ("q, k, v", HEADS, {}, 8, False),
        ("q, k, v", HEADS + ", softcap = 2.0", {}, 14, False),
        ("q, k, v", HEADS + ", is_causal = 1", {}, 14, False),
        ("q, k, v", "q_num_heads = 2", {}, 14, False),
        ("qf, kh, wh, _, pk", "", {}, 14, False),
        ("q, k, v, _, _, _, n", HEADS, {"before": "n = Shape(q)"}, 14, False),
    ],
)
def test_which_can_be_written(call, attributes, options, opset, can):
    """Those that mean the same."""
    (node,) = [node for node in given(call, attributes, **options).graph if node.op_type == "Attention"]
    assert can_write_attention(node, opset) is can
