"""What a rewrite replaced and by what, as two models."""

from support.optimizing import body, model_of

from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.match import find_matches
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.pattern import compile_pattern
from sardonyx.optimize.region import cut_out
from sardonyx.optimize.rule import Builder


def region(text, pattern, replace):
    """Cut out the region of the last node that matches."""
    model = model_of(text)
    INFER_SHAPES.run(model, Context())
    root, match = [(node, match) for node in model.graph for match in find_matches(compile_pattern(pattern), node, frozenset())][-1]
    builder = Builder(root, model.opset_imports, lambda name: name)
    values = replace(builder, match)
    found = cut_out(match, values if isinstance(values, tuple) else (values,), builder.nodes, model)
    verify(found.before)
    verify(found.after)
    return found


def test_both_have_the_same_inputs_and_outputs():
    """The matched nodes and the new ones become graphs over the same values; constants come along."""
    text = "graph(x: float[2]) -> (z) { w: float[2] = [1, 2] e = Exp(x) a = Neg(e) y = Mul(a, w) z = Relu(y) }"
    found = region(text, lambda op, x, w: op.Mul(op.Neg(x), op.constant(w)), lambda op, match: op.Mul(match["x"], match["w"]))
    assert [value.name for value in found.inputs] == ["e"]
    assert found.operators == {"Neg", "Mul"}
    assert body(found.before) == (
        "graph before(e: float[2]) -> (y: float[2]) {\n    w: float[2] = [1.0, 2.0]\n    a = Neg(e)\n    y = Mul(a, w)\n}\n"
    )
    assert body(found.after) == "graph after(e: float[2]) -> (y: float[2]) {\n    w: float[2] = [1.0, 2.0]\n    y = Mul(e, w)\n}\n"


def test_nodes_between_what_is_read_and_the_pattern_belong_to_it():
    """A rule that reads above its pattern is compared on what it reads; the way down is computed in `before`."""

    def subtract(op, match):
        negated, z = match["v"].producer.inputs
        return op.Sub(z, negated.producer.inputs[0])

    text = "graph(x: float[2], z: float[2]) -> (y) { a = Neg(x) b = Add(a, z) y = Relu(b) }"
    found = region(text, lambda op, v: op.Relu(v), subtract)
    assert [node.op_type for node in found.before.graph] == ["Neg", "Add", "Relu"]
    assert [node.op_type for node in found.after.graph] == ["Sub"]
    assert {value.name for value in found.before.graph.inputs} == {"x", "z"}


def test_values_of_the_pattern_that_another_is_made_of():
    """Where one value of the pattern is made of another, it is computed of it."""
    text = "graph(x: float[2]) -> (y) { a = Neg(x) b = Exp(a) y = Sub(x, b) }"
    found = region(text, lambda op, x, b: op.Sub(x, b), lambda op, match: op.Add(match["x"], op.Neg(op.Exp(op.Neg(match["x"])))))
    assert [node.op_type for node in found.before.graph] == ["Neg", "Exp", "Sub"]
    assert {value.name for value in found.before.graph.inputs} == {"x"}


def test_shape_arithmetic_is_computed():
    """A shape that a Reshape reads is computed in both, from the value whose shape it is."""
    found = region(
        """graph(x: float[n, 4], t: float[4, n]) -> (y) {
        s = Shape(x) k: int64[2] = [1, 0] g = Gather(s, k) r = Reshape(t, g) y = Neg(r) }""",
        lambda op, t, g: op.Neg(op.Reshape(t, g)),
        lambda op, match: op.Reshape(op.Neg(match["t"]), match["g"]),
    )
    assert [node.op_type for node in found.before.graph] == ["Shape", "Gather", "Reshape", "Neg"]
    assert {value.name for value in found.after.graph.inputs} == {"x", "t"}


def test_a_value_that_stays_is_given_out_by_name():
    """Where a value of the graph takes the place of a match, `after` gives it out under the name that was replaced."""
    found = region(
        "graph(x: float[2]) -> (y) { a = Neg(x) y = Neg(a) }", lambda op, x: op.Neg(op.Neg(x)), lambda op, match: match["x"]
    )
    assert body(found.after) == "graph after(x: float[2]) -> (y: float[2]) {\n    y = Identity:13(x)\n}\n"


def test_several_outputs_and_captures():
    """All outputs are given out; what a subgraph captures is an input."""
    found = region(
        """graph(x: float[2], c: bool[]) -> (y, z) {
        e = Exp(x)
        a = If(c) {then_branch = graph() -> (t) { t = Neg(e) }, else_branch = graph() -> (e) {}}
        y, z = Split(a) {num_outputs = 2} }""",
        lambda op, c: op.outputs(op.Split(op.If(c)), 2),
        lambda op, match: op.outputs("Split", 2, match.nodes[1].output, num_outputs=2),
    )
    assert {value.name for value in found.before.graph.inputs} >= {"e", "c"}
    assert [value.name for value in found.before.graph.outputs] == ["y", "z"]


def test_a_row_of_counted_places_is_computed():
    """Numbers that are sliced off a row by a size, as positions are, come from the size in both."""
    text = """graph(x: int64[n, s], t: float[9, 2]) -> (z) { row: int64[1, 9] = [[0, 1, 2, 3, 4, 5, 6, 7, 8]]
        zero: int64[1] = [0] one: int64[1] = [1] s = Shape(x) {start = 1, end = 2} p = Slice(row, zero, s, one)
        g = Gather(t, p) z = Neg(g) }"""
    pattern, replace = lambda op, g, p: op.Neg(op.Gather(g, p)), lambda op, match: op.Neg(op.Gather(match["g"], match["p"]))
    found = region(text, pattern, replace)
    assert [value.name for value in found.inputs] == ["t", "x"]
