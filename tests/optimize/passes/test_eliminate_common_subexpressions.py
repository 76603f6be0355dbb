"""Equal things are computed once."""

import numpy as np
import pytest
from support.optimizing import apply_pass, model_of, operators

from sardonyx.ir import ArrayAttribute, Attribute, AttributeKind
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.eliminate_common_subexpressions import ELIMINATE_COMMON_SUBEXPRESSIONS


def merge(text, **options):
    return apply_pass(ELIMINATE_COMMON_SUBEXPRESSIONS, text, **options)


def test_equal_nodes_merge():
    """Nodes with equal operator, inputs and attributes become one, and so do those that read them."""
    model, changed = merge("graph(x: float[2]) -> (y) { a = Neg(x) b = Neg(x) c = Exp(a) d = Exp(b) y = Add(c, d) }")
    assert changed
    assert operators(model) == ["Neg", "Exp", "Add"]


@pytest.mark.parametrize(
    "lines",
    [
        "a = Neg(x) b = Abs(x) y = Add(a, b)",
        "a = Sub(x, z) b = Sub(z, x) y = Add(a, b)",
        "a = LeakyRelu(x) {alpha = 0.1} b = LeakyRelu(x) {alpha = 0.2} y = Add(a, b)",
        "a = LeakyRelu(x) {alpha = 0.0} b = LeakyRelu(x) {alpha = -0.0} y = Add(a, b)",
        "a = Neg(x) b = Neg:6(x) y = Add(a, b)",
        "a = RandomNormalLike(x) b = RandomNormalLike(x) y = Add(a, b)",
        "a = custom.Draw(x) b = custom.Draw(x) y = Add(a, b)",
        "a = RandomUniformLike(x) b = RandomUniformLike(x) y = Add(a, b)",
        "a = RandomNormal() {shape = [2]} b = RandomNormal() {shape = [2]} y = Add(a, b)",
        "a = RandomUniform() {shape = [2]} b = RandomUniform() {shape = [2]} y = Add(a, b)",
        "a = Bernoulli(x) b = Bernoulli(x) y = Add(a, b)",
        "u: int64[2] = [1, 2] v = Reshape(x, u) a = Multinomial(v) b = Multinomial(v) y = Add(a, b)",
        "a = Gelu:1(x) b = com.microsoft.Gelu:1(x) y = Add(a, b)",
        "t: bool[] = true p: float[] = 0.5 a = Dropout(x, p, t) b = Dropout(x, p, t) y = Add(a, b)",
    ],
)
def test_different_and_random_nodes_stay(lines):
    """Nodes that differ in anything, draw random numbers or are of an unknown domain stay."""
    _, changed = merge(f"graph(x: float[2], z: float[2]) -> (y) {{ {lines} }}", compare=False)
    assert not changed


def test_small_constants_merge_by_content():
    """Constants with equal type, shape and content become one; others, and large ones, stay."""
    text = """graph(x: float[2]) -> (y) {
        a: float[1] = [1.0] b: float[1] = [1.0] c: float[] = 1.0 n: float[1] = [-0.0] m: float[1] = [0.0]
        l1: float[2000] = ... l2: float[2000] = ...
        p = Add(x, a) q = Add(p, b) r = Add(q, c) s = Add(r, n) t = Add(s, m) u = ReduceSum(l1) v = ReduceSum(l2)
        w = Add(t, u) y = Add(w, v)
    }"""
    model, changed = merge(text)
    assert changed
    assert list(model.graph.initializers) == ["a", "c", "n", "m", "l1", "l2"]


def test_tensor_attributes_are_compared_by_content():
    """Constant nodes with equal tensors merge."""
    text = """graph(x: float[2]) -> (y) {
        a = Constant() {value: float[2] = [1, 2]} b = Constant() {value: float[2] = [1, 2]}
        c = Constant() {value: float[2] = [1, 3]}
        d = Add(a, b) e = Add(d, c) y = Add(e, x) }"""
    model, _ = merge(text)
    assert operators(model).count("Constant") == 2


def test_output_of_the_graph_gives_its_name_to_its_twin():
    """A duplicate that is a graph output hands its name to the first, unless that is an output too."""
    model, changed = merge("graph(x: float[2]) -> (y, z) { a = Neg(x) y = Neg(x) z = Exp(a) }")
    assert changed
    assert operators(model) == ["Neg", "Exp"]
    _, changed = merge("graph(x: float[2]) -> (y, z) { y = Neg(x) z = Neg(x) }")
    assert not changed


def test_subgraph_uses_what_the_graph_around_it_has():
    """A node of a subgraph gives way to an equal one outside that comes before; branches do not share with each other."""
    text = """graph(x: float[2], c: bool[]) -> (y) {
        a = Neg(x)
        r = If(c) {then_branch = graph() -> (d) { b = Neg(x) e = Exp(x) d = Add(b, e) },
                   else_branch = graph() -> (d) { e = Exp(x) d = Mul(e, e) }}
        y = Add(r, a)
    }"""
    model, changed = merge(text)
    assert changed
    _, choose, _ = model.graph
    assert [[node.op_type for node in branch] for branch in choose.subgraphs] == [["Exp", "Add"], ["Exp", "Mul"]]


def test_overridable_constants_stay():
    """Initializers that a feed may replace are not merged."""
    text = "graph(x: float[1], d: float[1]) -> (y) { d: float[1] = [1] c: float[1] = [1] a = Add(x, d) y = Add(a, c) }"
    _, changed = merge(text)
    assert not changed


def test_equal_symbolic_values_merge():
    """Integers that are equal as expressions of the dimensions are computed once, however they are computed."""
    text = """graph(x: float[batch, 3], z: float[batch, 3]) -> (y) {
        i: int64[1] = [0] m: int64[1] = [3]
        s = Shape(x) g = Gather(s, i) p = Concat(g, m) {axis = 0}
        n = Neg(z) t = Shape(n) r = Reshape(x, p) q = Reshape(n, t) y = Add(r, q)
    }"""
    model, changed = merge(text)
    assert changed
    assert operators(model).count("Shape") == 1


def test_different_symbolic_values_stay():
    """Dimensions of different names are different sizes."""
    text = "graph(x: float[a, 3], z: float[b, 3]) -> (y) { s = Shape(x) t = Shape(z) y = Concat(s, t) {axis = 0} }"
    _, changed = merge(text)
    assert not changed


def test_long_lists_are_compared_by_identity():
    """What two nodes have been given apart is not walked; one and the same list is equal to itself."""
    body = "graph(x: float[2]) -> (y) { a = Neg(x) b = Neg(x) y = Add(a, b) }"
    numbers = Attribute(AttributeKind.INTS, tuple(range(5000)))
    array = ArrayAttribute(AttributeKind.INTS, np.arange(5))
    cases = ((numbers, numbers, 2), (numbers, Attribute(AttributeKind.INTS, tuple(range(5000))), 3), (array, array, 2))
    for first, second, left in cases:
        held = model_of(body)
        for node, attribute in zip([*held.graph][:2], (first, second), strict=True):
            node.attributes["numbers"] = attribute
        ELIMINATE_COMMON_SUBEXPRESSIONS.run(held, Context())
        assert len(held.graph) == left
