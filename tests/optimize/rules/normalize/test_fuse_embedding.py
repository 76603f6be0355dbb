"""Embeddings in one node."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.normalize.fuse_embedding import FUSE_EMBEDDING

OPSET = "17, com.microsoft 1"
FIRST = """r: int64[1, 9] = [[0, 1, 2, 3, 4, 5, 6, 7, 8]] z: int64[1] = [0] x: int64[1] = [1] v: int64[1] = [2] h = Shape(i)
    e = Slice(h, x, v) o = Slice(r, z, e, x, x)"""


def text(
    total="Add(Add(W, T), P)",
    places="o: int64[1, 3] = [[2, 0, 1]]",
    normal="LayerNormalization(s, g, b) {epsilon = 0.01}",
    kind="float",
    result="y",
    ids="int64[n, q]",
    segments="int64[n, q]",
):
    inner = total.count("Add") > 1
    sums = total.replace("Add(", "", 1)[:-1]
    lines = f"f = {sums[: sums.index(')') + 1]} s = Add(f{sums[sums.index(')') + 1 :]})" if inner else f"s = {total}"
    return f"""graph(i: {ids}, k: {segments}) -> ({result}) {{ w: {kind}[9, 4] = ... 1 p: {kind}[9, 4] = ... 2
        t: {kind}[9, 4] = ... 3 g: {kind}[4] = ... 4 b: {kind}[4] = ... 5 {places} W = Gather(w, i) T = Gather(t, k)
        P = Gather(p, o) {lines} y = {normal} }}"""


@pytest.mark.parametrize("total", ["Add(Add(W, T), P)", "Add(Add(W, P), T)", "Add(Add(T, P), W)", "Add(W, P)", "Add(P, W)"])
@pytest.mark.parametrize(("places", "count"), [("o: int64[1, 3] = [[2, 0, 1]]", 9), (FIRST, 7)])
def test_fires_with_the_same_numbers(total, places, count):
    """In any order, with segments and without; places that count are left out, whatever made them."""
    model, fired = apply_rule(
        FUSE_EMBEDDING,
        text(
            total,
            places,
            ids="int64[n, 3]" if count == 9 else "int64[n, q]",
            segments="int64[n, 3]" if count == 9 else "int64[n, q]",
        ),
        opset=OPSET,
        symbols={"q": 5, "n": 2},
    )
    assert fired == 1
    node = next(node for node in model.graph if node.op_type == "EmbedLayerNormalization")
    assert len(node.inputs) == count
    assert "Gather" not in operators(model)[operators(model).index("Cast") :]


def test_places_of_each_id():
    """They may differ by batch; ids of int32 need no Cast."""
    given = text(places="", ids="int32[n, q]", segments="int32[n, q]").replace("P = Gather(p, o)", "P = Gather(p, k)")
    model, fired = apply_rule(FUSE_EMBEDDING, given, opset=OPSET)
    assert fired == 1
    assert operators(model) == ["EmbedLayerNormalization"]


def test_a_range_counts():
    """As exporters write positions of a length that is not known."""
    places = """zero: int64[] = 0 one: int64[] = 1 ax: int64[1] = [0] h = Shape(i) l = Gather(h, one) u = Range(zero, l, one)
        o = Unsqueeze(u, ax)"""
    model, fired = apply_rule(FUSE_EMBEDDING, text(places=places), opset=OPSET, symbols={"q": 5, "n": 2})
    assert fired == 1
    assert len(next(node for node in model.graph if node.op_type == "EmbedLayerNormalization").inputs) == 7


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "double"}, "expected float"),
        ({"result": "y, W"}, "no match"),
        ({"normal": "LayerNormalization(s, g, b) {axis = 1}"}, "the last"),
        ({"segments": "int64[1, q]"}, "ids have shapes"),
        ({"places": "o: int64[1, 1] = [[2]]"}, "the places have shape"),
        ({"normal": "LayerNormalization(s, g)"}, "no match"),
        ({"total": "Add(W, T)", "segments": "int64[1, 1]"}, "the places have shape"),
        ({"places": "o: int64[2] = [0, 1]"}, "ids have shapes"),
    ],
)
def test_declines(given, reason):
    """Other types, readers, axes, segments for all batches, places that do not fit, no shift."""
    assert reason in declines(FUSE_EMBEDDING, text(**given), opset=OPSET)
