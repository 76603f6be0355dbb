"""Nodes that give back their input go."""

import pytest
from support.optimizing import apply_pass, operators

from sardonyx.optimize.passes.eliminate_identities import ELIMINATE_IDENTITIES


def clean(text, **options):
    return apply_pass(ELIMINATE_IDENTITIES, text, **options)


def between(lines, inputs="x: float[2, 3]"):
    """A graph in which `lines` make b from a, neither of them an input or output."""
    return f"graph({inputs}) -> (y) {{ a = Abs(x) {lines} y = Exp(b) }}"


@pytest.mark.parametrize(
    "lines",
    [
        "b = Identity(a)",
        "b = Dropout(a)",
        "b, m = Dropout(a)",
        "f: bool[] = false r: float[] = 0.5 b = Dropout(a, r, f)",
        "b = Dropout:6(a) {is_test = 1}",
        "b = Dropout:7(a)",
        "b = Concat(a) {axis = 1}",
        "b = Sum(a)",
        "b = Max(a)",
        "b = Min(a)",
        "b = Mean(a)",
        "b = Split(a) {axis = 1, num_outputs = 1}",
        "b = Cast(a) {to = 1}",
        "b = CastLike(a, x)",
        "b = Transpose(a) {perm = [0, 1]}",
        "s: int64[2] = [2, -1] b = Reshape(a, s)",
        "s: int64[1] = [3] b = Expand(a, s)",
        "b = Flatten(a)",
        "b = Squeeze(a)",
        "n: int64[0] = [] b = Unsqueeze(a, n)",
        "r: int64[2] = [1, 1] b = Tile(a, r)",
        "s: int64[1] = [0] e: int64[1] = [9999] b = Slice(a, s, e)",
        "p: int64[4] = [0, 0, 0, 0] b = Pad(a, p)",
        "b = Pad:2(a) {pads = [0, 0, 0, 0]}",
        "z: float[] = 0.0 b = Add(a, z)",
        "z: float[3] = [0, 0, 0] b = Add(z, a)",
        "z: float[1] = [0] b = Sub(a, z)",
        "o: float[2, 3] = [1, 1, 1, 1, 1, 1] b = Mul(o, a)",
        "o: float[] = 1.0 b = Div(a, o)",
        "o: int64[] = 1 b = Pow(a, o)",
    ],
)
def test_fires_with_the_same_numbers(lines):
    """Each case goes, and the numbers stay."""
    model, changed = clean(between(lines))
    assert changed
    assert operators(model) == ["Abs", "Exp"]


@pytest.mark.parametrize(
    "lines",
    [
        "b = Dropout(a, r, t)",
        "k, m = Dropout(a) n = Cast(m) {to = 1} b = Add(k, n)",
        "b = Dropout:6(a)",
        "b = Concat(a, a) {axis = 1}",
        "b = Cast(a) {to = 11}",
        "b = Transpose(a)",
        "s: int64[2] = [3, 2] b = Reshape(a, s)",
        "s: int64[3] = [4, 1, 1] b = Expand(a, s)",
        "r: int64[2] = [1, 2] b = Tile(a, r)",
        "s: int64[1] = [-1] e: int64[1] = [-9] n: int64[1] = [0] m: int64[1] = [-1] b = Slice(a, s, e, n, m)",
        "p: int64[4] = [0, 0, 0, 1] b = Pad(a, p)",
        "z: float[3] = [0, 0, 1] b = Add(a, z)",
        "z: float[1, 1, 1] = [0] b = Add(a, z)",
        "z: float[] = 0.0 b = Sub(z, a)",
        "o: float[] = 1.0 b = Div(o, a)",
        "o: float[2] = [1, 1] b = Mul(c, o)",
        "o: float[] = 1.0 b = Pow(o, a)",
    ],
)
def test_declines(lines):
    """Each similar case that does change something stays."""
    inputs = "x: float[2, 3], r: float[], t: bool[], c: float[1]"
    _, changed = clean(between(lines, inputs), compare=False)
    assert not changed


def test_cases_by_shape_need_the_shape():
    """With unknown or different symbolic dimensions a Reshape stays, with equal ones it goes."""
    _, changed = clean(between("s: int64[2] = [2, -1] b = Reshape(a, s)", "x: float[n, m]"), compare=False)
    assert not changed
    _, changed = clean(between("s: int64[2] = [-1, 3] b = Reshape(a, s)", "x: float[n, 3]"))
    assert changed


@pytest.mark.parametrize("op_type", ["Relu", "Abs", "Ceil", "Floor", "Round", "Sign", "Neg"])
def test_twice_is_once_or_nothing(op_type):
    """Idempotent operators merge, involutions cancel."""
    model, changed = clean(f"graph(x: float[5]) -> (y) {{ e = Exp(x) a = {op_type}(e) b = {op_type}(a) y = Sin(b) }}")
    assert changed
    assert operators(model).count(op_type) == (0 if op_type == "Neg" else 1)


def test_concat_of_one_that_is_not_empty():
    """Inputs that are known to be empty along the axis add nothing."""
    lines = "e: int64[1] = [3] f: int64[1] = [9] n: int64[1] = [1] c = Slice(a, e, f, n) b = Concat(c, a, c) {axis = -1}"
    model, changed = clean(between(lines))
    assert changed
    assert model.graph.outputs[0].producer.inputs[0].producer.op_type == "Abs"


def test_slices_of_all():
    """A Slice of an unknown axis goes where it ends beyond any, and stays where it may leave something out."""
    lines = "s: int64[1] = [0] e: int64[1] = [{}] b = Slice(a, s, e)"
    _, changed = clean(between(lines.format(1000000000), "x: float[n, 3]"))
    assert changed
    _, changed = clean(between(lines.format(999999999), "x: float[n, 3]"))
    assert not changed


def test_not_not_and_logic_with_constants():
    """Double negation, and with true and or with false go."""
    text = """graph(x: bool[3]) -> (y) { t: bool[] = true f: bool[] = false
        a = Not(x) b = Not(a) c = And(b, t) d = Or(f, c) y = Xor(d, x) }"""
    model, _ = clean(text)
    assert "And" not in operators(model)
    assert "Or" not in operators(model)


def test_identity_between_input_and_output_stays():
    """An Identity that gives an input, a constant or another output out under a name of its own stays."""
    text = "graph(x: float[2]) -> (y, z, u, v) { c: float[1] = [1] y = Identity(x) z = Identity(c) u = Neg(x) v = Identity(u) }"
    _, changed = clean(text)
    assert not changed


def test_identity_before_an_output_hands_over_the_name():
    """An Identity that ends in an output goes; what it copied takes the output's name."""
    model, changed = clean("graph(x: float[2]) -> (y) { a = Neg(x) y = Identity(a) }")
    assert changed
    assert operators(model) == ["Neg"]


def test_identity_of_a_captured_value_stays_at_the_output_of_a_branch():
    """A branch that gives out a value from outside under a name of its own keeps its Identity; inner ones go."""
    text = """graph(x: float[2], c: bool[]) -> (y) {
        y = If(c) {then_branch = graph() -> (a) { a = Identity(x) }, else_branch = graph() -> (b) { i = Identity(x) b = Neg(i) }}
    }"""
    model, changed = clean(text)
    assert changed
    assert [[node.op_type for node in branch] for branch in next(iter(model.graph)).subgraphs] == [["Identity"], ["Neg"]]


def test_identity_of_a_sequence_goes():
    """Identity of anything, not only tensors, goes."""
    text = "graph(x: float[2]) -> (y) { s = SequenceConstruct(x, x) i = Identity(s) k: int64[] = 0 y = SequenceAt(i, k) }"
    model, _ = clean(text)
    assert operators(model) == ["SequenceConstruct", "SequenceAt"]
