"""What texts call the parts of patterns and graphs."""

from __future__ import annotations

import pytest
from support.optimizing import model_of

from sardonyx.ir import Model, Node
from sardonyx.optimize.match_text import expected_text, found_text, label_of, node_text, place_text, value_text
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.report import NodeLabel
from sardonyx.optimize.terms import AnyValue, Found, Operation, Output, Term

OP = PatternBuilder()
NOTHING = Found({}, {}, {})


@pytest.fixture
def model() -> Model:
    """Nodes of several kinds."""
    return model_of(
        """graph(x: float[n, 4]) -> (y, z) { k: float[] = 1.5 w: float[8] = ... 1
            s = Softmax(x) {axis = 0} @soft y = Clip(s, k, k) z = com.microsoft.Gelu(x) }"""
    )


def node_of(model: Model, op_type: str) -> Node:
    return next(node for node in model.graph if node.op_type == op_type)


def test_nodes_go_by_operator_and_name(model: Model) -> None:
    """That of the first output where they have none, and the domain where it is not ai.onnx."""
    assert node_text(node_of(model, "Softmax")) == "Softmax soft"
    assert node_text(node_of(model, "Gelu")) == "com.microsoft.Gelu z"
    assert label_of(node_of(model, "Clip")) == NodeLabel("Clip", "y")


def test_inputs_go_by_the_name_of_the_schema(model: Model) -> None:
    """The one that the value is, or the position of one that is left out."""
    clip = node_of(model, "Clip")
    assert place_text(clip, clip.inputs[1], 0) == "input min of Clip y"
    assert place_text(clip, None, 2) == "input max of Clip y"
    assert place_text(clip, None, 5) == "input 5 of Clip y"


def test_values_go_by_where_they_come_from(model: Model) -> None:
    """An input, a constant with its elements if they are few, or a node."""
    x, k, w = model.graph.inputs[0], model.graph.initializers["k"], model.graph.initializers["w"]
    assert value_text(x) == "x, an input of the graph, float[n, 4]"
    assert value_text(k) == "k, a constant (1.5), float[]"
    assert value_text(w) == "w, a constant, float[8]"
    assert value_text(k, frozenset([k])) == "k, an input with a default, which a feed may override, float[]"
    assert value_text(None) == "no value"
    s = node_of(model, "Softmax").output
    assert value_text(s).startswith("s, made by Softmax soft")
    s.name = ""
    assert value_text(s).startswith("an output of Softmax soft")


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (OP.constant("w"), "a constant (w of the pattern)"),
        (OP.optional_constant("w"), "a constant, or none"),
        (OP.optional("w"), "a value, or none"),
        (AnyValue("w"), "a value (w of the pattern)"),
        (OP.number(0.5), "a constant of one element, 0.5"),
        (OP.Relu(AnyValue("x")), "Relu"),
        (OP.BiasGelu(AnyValue("x"), _domain="com.microsoft"), "com.microsoft.BiasGelu"),
        (OP.outputs(OP.Split(AnyValue("x")), 2)[1], "output 1 of Split"),
        (OP.any_of(OP.Relu(AnyValue("x")), 2.0), "Relu, or a constant of one element, 2"),
        (OP.rest("xs"), "any values (xs of the pattern)"),
    ],
)
def test_terms_go_by_what_they_match(term: Term, text: str, model: Model) -> None:
    """In the words of the notation of patterns."""
    assert expected_text(term, model.graph.inputs[0], NOTHING) == text


def test_a_value_that_is_bound_must_be_the_same(model: Model) -> None:
    """The text names the one that is bound."""
    x, k = model.graph.inputs[0], model.graph.initializers["k"]
    assert expected_text(AnyValue("v"), x, Found({"v": k}, {}, {})) == "the same value as for v elsewhere in the pattern, k"


def test_a_node_that_is_bound_must_be_the_same(model: Model) -> None:
    """The text names it."""
    term = OP.Softmax(AnyValue("x"))
    assert isinstance(term, Output)
    found = Found({}, {term.operation: node_of(model, "Softmax")}, {})
    assert expected_text(term, model.graph.inputs[0], found) == "output 0 of Softmax soft, which matched before"


def test_attributes_are_named_where_they_differ(model: Model) -> None:
    """What is expected, and what the node has."""
    s = node_of(model, "Softmax").output
    demanded = OP.Softmax(AnyValue("x"), axis=-1)
    assert expected_text(demanded, s, NOTHING) == "Softmax with axis = -1"
    assert found_text(s, demanded, frozenset()).endswith(", with axis = 0")
    assert expected_text(OP.Softmax(AnyValue("x"), axis=lambda axis: axis > 0), s, NOTHING) == "Softmax with another axis"


def test_inputs_are_counted_where_there_are_too_many(model: Model) -> None:
    """What is expected, and what the node has."""
    y = node_of(model, "Clip").output
    term = OP.Clip(AnyValue("x"))
    assert expected_text(term, y, NOTHING) == "Clip with at most 1 inputs"
    assert found_text(y, term, frozenset()).endswith(", with 3 inputs")


def test_an_operation_that_failed_inside_has_other_inputs(model: Model) -> None:
    """Where its own operator and attributes are as wanted."""
    term = OP.Clip(OP.Relu(AnyValue("x")), OP.rest("limits"))
    assert isinstance(term, Output)
    assert isinstance(term.operation, Operation)
    assert expected_text(term, node_of(model, "Clip").output, NOTHING) == "Clip with other inputs"
