"""What the notation of patterns means."""

import pytest
from support.optimizing import model_of

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.edit import overridable_values
from sardonyx.optimize.match import find_matches
from sardonyx.optimize.pattern import compile_pattern


def matches(function, text, opset="21"):
    """The matches of a pattern with its root at the last node of a graph."""
    model = model_of(text, opset)
    *_, root = model.graph
    return list(find_matches(compile_pattern(function), root, overridable_values(model)))


def graph(lines, inputs="x: float[2], z: float[2]"):
    return f"graph({inputs}) -> (y) {{ {lines} }}"


def test_parameter_is_the_same_value_everywhere():
    """A parameter that occurs twice matches one value only."""
    assert matches(lambda op, x: op.Sub(x, x), graph("y = Sub(x, x)"))
    assert not matches(lambda op, x: op.Sub(x, x), graph("y = Sub(x, z)"))


def test_commutative_operators_match_both_ways():
    """Add matches in either order, and a deeper choice is undone where the rest does not fit."""
    (match,) = matches(lambda op, x, b: op.Add(op.Neg(x), b), graph("a = Neg(x) y = Add(z, a)"))
    assert (match["x"].name, match["b"].name) == ("x", "z")
    nested = graph("a = Mul(x, z) b = Add(z, a) y = Add(b, x)")
    assert matches(lambda op, x, z: op.Add(x, op.Add(z, op.Mul(z, x))), nested)
    assert not matches(lambda op, x, b: op.Add(op.Neg(x), b, _ordered=True), graph("a = Neg(x) y = Add(z, a)"))


def test_other_operators_match_as_written():
    """Sub matches in one order only."""
    assert not matches(lambda op, x, b: op.Sub(op.Neg(x), b), graph("a = Neg(x) y = Sub(z, a)"))


def test_inputs_must_be_all_there():
    """An operator with more or fewer inputs than the pattern is no match; trailing blanks do not count."""
    pair = lambda op, x, low: op.Clip(x, low)  # noqa: E731  a pattern
    assert matches(pair, graph("y = Clip(x, z, _)"))
    assert not matches(pair, graph("y = Clip(x, z, z)"))
    assert not matches(pair, graph("y = Clip(x)"))


def test_optional_and_missing_inputs():
    """op.optional matches a value or none, None matches none only."""
    optional = lambda op, x: op.Clip(x, op.optional("low"), None)  # noqa: E731  a pattern
    (match,) = matches(optional, graph("y = Clip(x)"))
    assert match.get("low") is None
    (match,) = matches(optional, graph("y = Clip(x, z)"))
    assert match["low"].name == "z"
    assert not matches(optional, graph("y = Clip(x, _, z)"))


def test_rest_takes_all_further_inputs():
    """op.rest binds the remaining inputs as a tuple."""
    (match,) = matches(lambda op, x: op.Concat(x, op.rest("more"), axis=0), graph("y = Concat(x, z, x) {axis = 0}"))
    assert [value.name for value in match.rest("more")] == ["z", "x"]


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        ("c: float[] = 0.5", True),
        ("c: float[1] = [0.500001]", True),
        ("c: float[] = 0.51", False),
        ("c: float[2] = [0.5, 0.5]", False),
        ("c: float16[] = 0.5", True),
        ("c: int64[] = 0", False),
        ('c: string[] = "a"', False),
    ],
)
def test_number_matches_a_constant_of_one_element(line, fits):
    """A number matches a constant of one element within its tolerance, after rounding to the constant's type."""
    assert bool(matches(lambda op, x: op.Mul(x, 0.5), graph(f"{line} y = Mul(c, x)"))) == fits


def test_number_is_rounded_to_the_type_of_the_constant():
    """A number that float16 cannot hold matches the nearest float16."""
    assert matches(lambda op, x: op.Mul(x, 1.41421356), graph("c: float16[] = 1.4142 y = Mul(x, c)"))


def test_constants_are_initializers_and_constant_nodes():
    """op.constant matches initializers and Constant nodes, not inputs, not even ones with a default."""
    pattern = lambda op, x, c: op.Add(x, op.constant(c))  # noqa: E731  a pattern
    (match,) = matches(pattern, graph("c: float[] = 2.0 y = Add(x, c)"))
    assert match.constant("c").tolist() == 2.0
    assert matches(pattern, graph("c = Constant() {value: float[] = 1.0} y = Add(x, c)"))
    assert not matches(pattern, graph("y = Add(x, z)"))
    assert not matches(pattern, graph("z: float[2] = [1, 2] y = Add(x, z)"))


def test_attributes_are_compared_with_defaults():
    """A constraint holds for the attribute, or for the schema's default where the node has none."""
    pattern = lambda op, x: op.Softmax(x, axis=-1)  # noqa: E731  a pattern
    assert matches(pattern, graph("y = Softmax(x)"))
    assert matches(pattern, graph("y = Softmax(x) {axis = -1}"))
    assert not matches(pattern, graph("y = Softmax(x) {axis = 0}"))
    assert not matches(pattern, graph("y = Softmax:11(x)"))


def test_attributes_may_be_lists_floats_predicates_and_captures():
    """Constraints may be lists, floats (compared as float32) and predicates; captures give the value."""
    assert matches(lambda op, x: op.Transpose(x, perm=[1, 0]), graph("y = Transpose(x) {perm = [1, 0]}"))
    assert matches(lambda op, x: op.LeakyRelu(x, alpha=0.1), graph("y = LeakyRelu(x) {alpha = 0.1}"))
    assert not matches(lambda op, x: op.Transpose(x, perm=lambda p: p[0] == 0), graph("y = Transpose(x) {perm = [1, 0]}"))
    (match,) = matches(lambda op, x: op.Transpose(x, perm=op.attribute("p")), graph("y = Transpose(x) {perm = [1, 0]}"))
    assert match.attribute("p") == (1, 0)


def test_alternatives_are_tried_in_order():
    """op.any_of matches the first alternative that leads to a match."""
    pattern = lambda op, x: op.any_of(op.Exp(op.any_of(op.Neg(x), x)), op.Log(x))  # noqa: E731  a pattern
    assert [match["x"].name for match in matches(pattern, graph("a = Neg(x) y = Exp(a)"))] == ["x", "a"]
    assert matches(pattern, graph("y = Log(x)"))
    assert not matches(pattern, graph("y = Sin(x)"))


def test_nodes_are_captured_by_name():
    """_as names a matched node."""
    (match,) = matches(lambda op, x: op.Exp(op.Neg(x, _as="inner")), graph("a = Neg(x) @n y = Exp(a)"))
    assert match.node("inner").name == "n"
    assert match.root.op_type == "Exp"


def test_several_outputs_are_told_apart():
    """An output of a node with several matches by its place."""

    def pattern(op, x):
        first, second = op.outputs(op.Split(x), 2)
        return op.Sub(second, first)

    assert matches(pattern, graph("a, b = Split(x) y = Sub(b, a)"))
    assert not matches(pattern, graph("a, b = Split(x) y = Sub(a, b)"))


def test_domain_must_agree():
    """A call without _domain means ai.onnx."""
    assert not matches(lambda op, x: op.Gelu(x), graph("y = com.microsoft.Gelu(x)"))
    assert matches(lambda op, x: op.Gelu(x, _domain="com.microsoft"), graph("y = com.microsoft.Gelu(x)"))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda op, x: x, "must be a call"),
        (lambda op, x: op.Add(x, "text"), "an input must be a call, a parameter, a number or None, found 'text'"),
        (lambda op, x: op.Add(x, x, _nme="a"), "Add takes no _nme; known are _as, _domain"),
    ],
)
def test_mistakes_in_patterns_are_named(function, message):
    """A pattern that means nothing raises InvalidArgument when it is compiled."""
    with pytest.raises(InvalidArgument, match=message):
        compile_pattern(function)
