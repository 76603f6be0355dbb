"""Values of a model by the names that its file gives them."""

from __future__ import annotations

import pytest
from support.models import model

from sardonyx.errors import InvalidArgument
from sardonyx.ir.text import parse_model
from sardonyx.session.named_values import find_values, made_values

TEXT = "graph(x: float[n]) -> (y: float[n]) {\nk: float[1] = [2]\nhidden = Neg(x)\ny = Mul(hidden, k)\n}"
BRANCHES = """graph(x: float[n], c: bool) -> (y: float[n]) {
y = If(c) {then_branch = graph() -> (t: float[n]) {
inside = Neg(x)
t = Exp(inside)
}, else_branch = graph() -> (e: float[n]) {
e = Abs(x)
}} @choice
}"""


@pytest.mark.parametrize("name", ["x", "k", "hidden", "y"])
def test_inputs_initializers_and_what_nodes_make_have_names(name: str) -> None:
    """Each is found by its own."""
    assert find_values(model(TEXT), [name])[0].name == name


def test_a_misspelt_name_is_refused_with_near_ones() -> None:
    """And with the outputs."""
    with pytest.raises(InvalidArgument, match=r"no output 'hiden'.*the outputs are \['y'\]; did you mean 'hidden'\?"):
        find_values(model(TEXT), ["x", "hiden"])


def test_a_value_inside_a_body_is_refused_with_its_node() -> None:
    """Since its body may run often, or not at all."""
    with pytest.raises(InvalidArgument, match=r"'inside' is a value inside node \"choice\" \(If"):
        find_values(model(BRANCHES), ["inside"])


def test_values_of_nodes_come_in_their_order() -> None:
    """Those of the main graph."""
    assert [value.name for value in made_values(model(TEXT))] == ["hidden", "y"]


def test_the_result_of_a_call_keeps_its_name_beside_values_inside() -> None:
    """What inlines the call does not make another value of it."""
    held = parse_model(
        "opset 21\ngraph(x: float[2]) -> (y: float[2]) { z = f.G(x) @call\ny = Neg(z) }\nfunction f.G(a) -> (b) { s = Abs(a) b = Neg(s) }"
    )
    assert [value.name for value in find_values(held, ["z", "call/s"])] == ["z", "call/s"]
    assert {value.producer.op_type for value in find_values(held, ["z", "call/s"]) if value.producer} == {"Neg", "Abs"}


def test_the_name_of_a_node_is_refused_with_what_it_makes() -> None:
    """Nodes and values have names of their own."""
    with pytest.raises(InvalidArgument, match="'choice' is a node; name what it makes: 'y'"):
        find_values(model(BRANCHES), ["choice"])
