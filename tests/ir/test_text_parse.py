"""The parser of the text form accepts what it should and names the place of what it should not."""

import numpy as np
import pytest

from sardonyx.errors import InvalidGraph
from sardonyx.ir.text_parse import parse_graph, parse_model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph(x) -> (y) {\n  y = Relu(x\n}", "line 3, column 1: expected ',' or ')' after an input, found '}'"),
        ("graph(x) -> (y) {\n  y = Relu(z)\n}", 'line 2, column 12: the value "z" is never defined'),
        ("graph(x) -> (y) {}", 'line 1, column 14: the value "y" is never defined'),
        ("graph(x) -> (y) { y = Relu(x) y = Relu(x) }", 'line 1, column 31: the value "y" is defined twice in one graph'),
        ("graph(x, x) -> () {}", 'line 1, column 10: the value "x" is defined twice in one graph'),
        ("graph(x) -> (y) { y = Relu(x) {a = 1, a = 2} }", 'line 1, column 39: the attribute "a" is given twice'),
        ("graph(x) -> (y) { y = Relu(x) {a = []} }", "column 36: an empty list needs a kind before it"),
        ('graph(x) -> (y) { y = Relu(x) {a = [1, "b"]} }', "column 36: the list mixes strings and numbers"),
        ("graph(x: flot[2]) -> () {}", "column 10: expected an element type (float, uint8"),
        ("graph(x: float[2) -> () {}", "column 17: expected ',' or ']' after a dimension, found ')'"),
        ("graph() -> () { w: float[n] = [1] }", "column 31: a constant needs a tensor type whose dimensions are numbers"),
        ("graph() -> () { w: float[2, 2] = [1, 2, 3] }", "column 34: expected 4 elements for float[2, 2], found 3"),
        ('graph() -> () { w: int8[] = "a" }', "column 29: expected elements of type int8"),
        ("graph() -> () { w: float[1] }", "column 29: expected '=' or ',' after the name of a value, found '}'"),
        ("graph() -> () { w = 3 }", "expected an operator such as Add(x, y), or a typed constant"),
        ("graph() -> () { $ }", "column 17: found '$', which begins no name, number, string or mark"),
        ("graph() -> () {", "column 16: expected the name of a value, or '}', found the end of the text"),
        ("graph() -> () {} more", "column 18: expected the end of the text, found 'more'"),
        ('graph() -> () { y = A() @"\\q" }', "bad escape"),
    ],
)
def test_error_names_place_found_and_expected(text, message):
    """A mistake raises InvalidGraph with line, column, what stands there and what should."""
    with pytest.raises(InvalidGraph) as caught:
        parse_graph(text)
    assert message in str(caught.value)


def test_model_needs_an_opset():
    """A model text without an opset line is refused."""
    with pytest.raises(InvalidGraph, match="line 1, column 1: expected a line such as 'opset 21'"):
        parse_model("graph() -> () {}")


def test_function_defined_twice_is_refused():
    """Two functions of one domain, name and overload are an error at the second."""
    with pytest.raises(InvalidGraph, match=r'line 4, column 1: the function "a.F" is defined twice'):
        parse_model("opset 21\ngraph() -> () {}\nfunction a.F() -> () {}\nfunction a.F() -> () {}")


def test_cycle_can_be_written():
    """A value may be read before the line that makes it, so that tests can write invalid graphs."""
    graph = parse_graph("graph() -> (b) { a = Relu(b)\n b = Relu(a) }")
    first, second = graph
    assert first.inputs == second.outputs
    assert second.inputs == first.outputs


def test_forward_reference_from_a_subgraph_reaches_the_outer_value():
    """A subgraph may name a value of the outer graph that a later line makes."""
    graph = parse_graph("graph(c) -> (y) { y = If(c) {then_branch = graph() -> (z) {}, e = graph() -> (z) {}} z = Relu(c) }")
    choose, relu = graph
    assert choose.subgraphs[0].outputs == relu.outputs


def test_versions_default_to_the_imports():
    """Nodes take the version from the imports given, else ai.onnx 23 and 1 for other domains."""
    text = "graph(x) -> (y) { h = Relu(x) y = com.microsoft.Gelu(h) }"
    assert [node.version for node in parse_graph(text)] == [23, 1]
    assert [node.version for node in parse_graph(text, opset_imports={"": 9, "com.microsoft": 2})] == [9, 2]
    assert [node.version for node in parse_graph("opset 11\n" + text)] == [11, 1]


def test_comments_and_line_breaks_are_free():
    """Comments and blanks separate tokens and mean nothing."""
    graph = parse_graph("graph(x)#in\n->\n(y) { # body\n y=Relu(\n x)# {}\n}")
    assert len(graph) == 1


def test_placeholders_make_zeros_or_seeded_numbers():
    """`...` gives zeros; with a seed the same random numbers each time."""
    graph = parse_graph("graph() -> () { z: int64[2, 2] = ... \n a: float[4] = ... 3 b: float[4] = ... 3 n: string[1] = ... }")
    arrays = {name: value.constant.numpy() for name, value in graph.initializers.items()}
    assert arrays["z"].tolist() == [[0, 0], [0, 0]]
    assert arrays["n"].tolist() == [""]
    assert np.array_equal(arrays["a"], arrays["b"])
    assert arrays["a"].std() > 0


def test_float_attributes_are_rounded_to_float32():
    """A float attribute holds what a file would hold, a float32."""
    (node,) = parse_graph("graph() -> (y) { y = A() {a = 0.1, b = [0.1, 1], c: float = 1} }")
    assert node.get("a") == float(np.float32(0.1))
    assert node.get("b") == (float(np.float32(0.1)), 1.0)
    assert (node.attributes["c"].kind.name, node.get("c")) == ("FLOAT", 1.0)


def test_endless_nesting_is_refused():
    """Brackets nested too deeply to read raise InvalidGraph, not RecursionError."""
    with pytest.raises(InvalidGraph, match="brackets that are nested less deeply"):
        parse_graph("graph() -> () { w: int64[1] = " + "[" * 100_000)
    with pytest.raises(InvalidGraph, match="brackets that are nested less deeply"):
        parse_model("opset 21 graph(x: " + "seq(" * 100_000)
