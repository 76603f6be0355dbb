"""Pushing transposes: what moves, what stays, and that nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.models import graph, model
from support.providers import NhwcProvider
from support.random_transposes import random_model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import print_graph
from sardonyx.ir.verify import verify
from sardonyx.optimize.transposes.push import push_transposes

HEAD = "graph(x: float[2, 3, 4, 5]) -> (y: float{shape}) {{\n    t: float[2, 4, 5, 3] = Transpose(x) {{perm = [0, 2, 3, 1]}}\n"


def _pushed(body: str, shape: str = "[2, 3, 4, 5]") -> list[str]:
    """The operators after pushing; t is x in NHWC."""
    held = graph(HEAD.format(shape=shape) + body + "\n}")
    push_transposes(held, set(held))
    return [node.op_type for node in held]


@pytest.mark.parametrize(
    "step",
    [
        "Relu(t)",
        "Clip(t, low)",
        "Add(t, k)",
        "Mul(k, t)",
        "Add(t, t)",
        "Pad(t, pads)",
        "Softmax(t) {axis = 3}",
        "ReduceMean(t, axes) {keepdims = 1}",
        "Slice(t, one, two, axis)",
        "Concat(t, t) {axis = -1}",
        "PRelu(t, slope)",
        'Resize(t, _, scales) {mode = "nearest"}',
    ],
)
def test_two_transposes_around_an_operator_vanish(step: str) -> None:
    """Transpose, operator, transpose back: the operator alone is left, and computes the same."""
    constants = """
    low: float[] = 0.0
    k: float[3] = [1, 2, 3]
    slope: float[1, 1, 3] = [0.1, 0.2, 0.3]
    pads: int64[8] = [0, 1, 0, 2, 0, 0, 3, 0]
    axes: int64[2] = [1, 2]
    one: int64[1] = [1]
    two: int64[1] = [2]
    axis: int64[1] = [-1]
    scales: float[4] = [1, 2, 3, 1]
    """
    text = f"{HEAD.format(shape='')}{constants}\n    a = {step}\n    y = Transpose(a) {{perm = [0, 3, 1, 2]}}\n}}"
    held = model(text)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    expected = ort.InferenceSession(to_bytes(held), options).run(None, {"x": x})[0]
    from sardonyx.ops.infer import infer_graph

    infer_graph(held)
    push_transposes(held.graph, set(held.graph))
    verify(held)
    assert [node.op_type for node in held.graph] == [step.split("(")[0]]
    assert held.graph.outputs[0].name == "y"
    np.testing.assert_allclose(ort.InferenceSession(to_bytes(held), options).run(None, {"x": x})[0], expected, rtol=1e-6)


def test_split_gets_a_transpose_behind_each_part() -> None:
    """Each of them may meet its inverse."""
    held = graph("""graph(x: float[2, 3, 4, 6]) -> (a: float[2, 3, 4, 2], b: float[2, 3, 4, 4]) {
        t: float[2, 4, 6, 3] = Transpose(x) {perm = [0, 2, 3, 1]}
        s: int64[2] = [2, 4]
        p: float[2, 4, 2, 3], q: float[2, 4, 4, 3] = Split(t, s) {axis = 2}
        a: float[2, 3, 4, 2] = Transpose(p) {perm = [0, 3, 1, 2]}
        b: float[2, 3, 4, 4] = Transpose(q) {perm = [0, 3, 1, 2]}
    }""")
    push_transposes(held, set(held))
    (split,) = held
    assert (split.op_type, split.get("axis")) == ("Split", 3)
    assert [value.name for value in held.outputs] == ["a", "b"]


def test_an_input_without_a_transpose_gets_one_where_more_go_than_come() -> None:
    """Two of three inputs come from transposes: the third gets one, and one goes behind."""
    text = HEAD.replace("x: float[2, 3, 4, 5]", "x: float[2, 3, 4, 5], z: float[2, 4, 5, 3]")
    body = "    r: float[2, 4, 5, 3] = Relu(t)\n    y: float[2, 4, 5, 3] = Sum(t, r, z)\n}"
    held = graph(text.format(shape="[2, 4, 5, 3]") + body)
    push_transposes(held, set(held))
    assert [node.op_type for node in held] == ["Transpose", "Relu", "Sum", "Transpose"]


def test_a_transpose_stays_where_it_would_only_change_places() -> None:
    """One goes and one comes: a residual network after a single transpose would get one in every layer."""
    text = HEAD.replace("x: float[2, 3, 4, 5]", "x: float[2, 3, 4, 5], z: float[2, 4, 5, 3]")
    held = graph(text.format(shape="[2, 4, 5, 3]") + "    y: float[2, 4, 5, 3] = Add(t, z)\n}")
    push_transposes(held, set(held))
    assert [node.op_type for node in held] == ["Transpose", "Add"]


def test_a_transpose_that_is_there_already_costs_nothing() -> None:
    """A residual that starts in NCHW has its input transposed once, for the convolution and for the sum."""
    held = graph("""graph(x: float[2, 3, 4, 5]) -> (y: float[2, 3, 4, 5]) {
        t: float[2, 4, 5, 3] = Transpose(x) {perm = [0, 2, 3, 1]}
        a: float[2, 4, 5, 3] = Mystery(t)
        b: float[2, 3, 4, 5] = Transpose(a) {perm = [0, 3, 1, 2]}
        s: float[2, 3, 4, 5] = Add(x, b)
        u: float[2, 4, 5, 3] = Transpose(s) {perm = [0, 2, 3, 1]}
        c: float[2, 4, 5, 3] = Mystery(u)
        d: float[2, 3, 4, 5] = Transpose(c) {perm = [0, 3, 1, 2]}
        y: float[2, 3, 4, 5] = Add(s, d)
    }""")
    push_transposes(held, set(held))
    assert [node.op_type for node in held] == ["Transpose", "Mystery", "Add", "Mystery", "Add", "Transpose"]


def test_as_much_may_come_as_goes_where_its_inverse_waits() -> None:
    """The one that waits below is gone then, as between the layouts there always is one."""
    text = HEAD.replace("x: float[2, 3, 4, 5]", "x: float[2, 3, 4, 5], z: float[2, 4, 5, 2]").format(shape="")
    body = """a: float[2, 4, 5, 5] = Concat(t, z) {axis = 3}
        b: float[2, 4, 5, 5] = Relu(a)
        y = Transpose(b) {perm = [0, 3, 1, 2]} }"""
    for between_layouts, left in ((True, ["Transpose", "Concat", "Relu"]), (False, ["Transpose", "Concat", "Relu", "Transpose"])):
        held = graph(text + body)
        push_transposes(held, set(held), between_layouts=between_layouts)
        assert [node.op_type for node in held] == left


def test_a_split_of_which_one_part_alone_meets_a_transpose_stays() -> None:
    """Three would come where one goes."""
    held = graph("""graph(x: float[2, 3, 4, 6]) -> (a: float[2, 3, 2, 4], b: float[2, 2, 3, 4], c: float[2, 2, 3, 4]) {
        t: float[6, 2, 3, 4] = Transpose(x) {perm = [3, 0, 1, 2]}
        p: float[2, 2, 3, 4], q: float[2, 2, 3, 4], r: float[2, 2, 3, 4] = Split(t) {axis = 0, num_outputs = 3}
        a: float[2, 3, 2, 4] = Transpose(p) {perm = [0, 2, 1, 3]}
        b: float[2, 2, 3, 4] = Mystery(q)
        c: float[2, 2, 3, 4] = Mystery(r)
    }""")
    push_transposes(held, set(held))
    assert [node.op_type for node in held] == ["Transpose", "Split", "Transpose", "Mystery", "Mystery"]


@pytest.mark.parametrize(
    "step",
    [
        "y: float[6, 20] = Reshape(t, shape)",
        "y: float[2, 4, 5, 3] = Mystery(t)",
        "y: float[2, 4, 5, 3] = Pad(t, pads)",
        "y: float[2, 4, 5, 3] = ReduceMean(t, axes)",
        "y: float[2, 4, 5, 3] = Add(t, v)",
    ],
)
def test_operators_that_it_cannot_push_through_stay(step: str) -> None:
    """No handler, computed pads or axes, or a vector that is no constant."""
    more = ", shape: int64[2], pads: int64[8], axes: int64[1], v: float[3]"
    text = HEAD.replace("x: float[2, 3, 4, 5]", f"x: float[2, 3, 4, 5]{more}")
    held = graph(text.format(shape="") + f"    {step}\n}}")
    before = print_graph(held)
    push_transposes(held, set(held))
    assert print_graph(held) == before


def test_nodes_that_are_not_offered_stay() -> None:
    """Another provider's nodes keep their layout."""
    held = graph(HEAD.format(shape="[2, 4, 5, 3]") + "    y: float[2, 4, 5, 3] = Relu(t)\n}")
    before = print_graph(held)
    push_transposes(held, ())
    assert print_graph(held) == before


def test_a_reduction_that_drops_dimensions_keeps_their_order() -> None:
    """(N, C) is the same in both layouts, so nothing comes behind; of (N, W, C) a smaller transpose is left."""
    assert _pushed("    ax: int64[2] = [1, 2]\n    y: float[2, 3] = ReduceMean(t, ax) {keepdims = 0}", "[2, 3]") == ["ReduceMean"]
    assert _pushed("    ax: int64[1] = [1]\n    y: float[2, 5, 3] = ReduceMean(t, ax) {keepdims = 0}", "[2, 5, 3]") == [
        "ReduceMean",
        "Transpose",
    ]


def test_two_transposes_are_merged_into_one() -> None:
    """The permutation of both."""
    assert _pushed("    y: float[4, 5, 3, 2] = Transpose(t) {perm = [1, 2, 3, 0]}", "[4, 5, 3, 2]") == ["Transpose"]


def test_the_same_transpose_of_a_value_is_made_once() -> None:
    """Each convolution of one image asks for its own when it is converted."""
    body = """    u: float[2, 4, 5, 3] = Transpose(x) {perm = [0, 2, 3, 1]}
        a: float[2, 4, 5, 3] = Mystery(t)
        b: float[2, 4, 5, 3] = Mystery(u)
        y: float[2, 4, 5, 3] = Add(a, b)"""
    assert _pushed(body, "[2, 4, 5, 3]") == ["Transpose", "Mystery", "Mystery", "Add"]


def test_two_equal_transposes_that_are_outputs_stay() -> None:
    """Each output keeps its name."""
    held = graph("""graph(x: float[2, 3, 4, 5]) -> (t: float[2, 4, 5, 3], u: float[2, 4, 5, 3]) {
        t = Transpose(x) {perm = [0, 2, 3, 1]}
        u = Transpose(x) {perm = [0, 2, 3, 1]}
    }""")
    push_transposes(held, set(held))
    assert [value.name for value in held.outputs] == ["t", "u"]
    assert [node.op_type for node in held] == ["Transpose", "Transpose"]


def test_a_residual_network_has_transposes_at_its_borders_only() -> None:
    """Convolutions, residuals, gates and concatenations in NHWC: one transpose in, none out of a pooled result, same numbers."""
    text = """graph(x: float[n, 3, 8, 6]) -> (y: float[n, 8, 1, 1]) {
        w: float[4, 3, 3, 3] = ... 1
        v: float[4, 4, 3, 3] = ... 2
        g: float[4, 4, 1, 1] = ... 3
        k: float[4, 1, 1] = [1, 2, 3, 4]
        a = Conv(x, w) {pads = [1, 1, 1, 1]}
        r = Relu(a)
        b = Conv(r, v) {pads = [1, 1, 1, 1]}
        s = Add(b, r)
        m = GlobalAveragePool(s)
        c = Conv(m, g)
        h = Sigmoid(c)
        e = Mul(s, h)
        f = Mul(e, k)
        z = Concat(f, s) {axis = 1}
        y = GlobalAveragePool(z)
    }"""
    provider = NhwcProvider("Add", "Mul", "Sigmoid", "Concat")
    held = ort.InferenceSession(to_bytes(model(text)), providers=[provider])
    inner = [node.op_type for node in provider.compiled[0].nodes]
    assert inner.count("Transpose") == 2
    assert (inner[0], inner[-1]) == ("Transpose", "Transpose")
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 6)).astype(np.float32)
    expected = ort.InferenceSession(to_bytes(model(text))).run(None, {"x": x})[0]
    np.testing.assert_allclose(held.run(None, {"x": x})[0], expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(150))
def test_random_graphs_compute_the_same_bits(seed: int) -> None:
    """Whatever the operators, axes, ranks and permutations: outputs keep their names, types and bits."""
    held = random_model(seed)
    feed = random_feeds(held)
    whole = {name: np.round(array * 3) for name, array in feed.items()}
    expected = evaluate_model(random_model(seed), whole)
    push_transposes(held.graph, set(held.graph))
    verify(held)
    found = evaluate_model(held, whole)
    assert [value.name for value in held.graph.outputs] == [value.name for value in random_model(seed).graph.outputs]
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())
