"""Manual placement: what the notation means, where pins end up, and what mistakes are told."""

from __future__ import annotations

import pytest
from support.models import model

from sardonyx.errors import InvalidArgument
from sardonyx.ir import Model
from sardonyx.optimize.edit import PROVIDER_KEY
from sardonyx.partition.pins import Pins, parse_pins
from sardonyx.partition.placement import ANNOTATION_KEY, find_provider, pin, placed_nodes

PROVIDERS = ["AExecutionProvider", "BExecutionProvider", "Own"]
TEXT = """graph(x: float[2], c: bool[]) -> (y: float[2]) {
    a = Relu(x) @first
    b = Neg(a)
    d = Relu(b) @third
    y = If(c) {then_branch = graph() -> (t) {
        t = Abs(d) @inner
    }, else_branch = graph() -> (e) {
        e = Identity(d) @other
    }}
}"""


def _placed(held: Model, pins: Pins) -> dict[str, str]:
    pin(held, pins, PROVIDERS)
    return {node.name or node.outputs[0].name: name for node, name in placed_nodes(held.graph, pins, PROVIDERS).items()}


def test_each_kind_finds_its_nodes() -> None:
    """A node without a name goes by the name of what it makes."""
    assert _placed(model(TEXT), parse_pins(["Relu=A"])) == {"first": "AExecutionProvider", "third": "AExecutionProvider"}
    assert _placed(model(TEXT), parse_pins(["node:first=Own"])) == {"first": "Own"}
    assert _placed(model(TEXT), parse_pins(["node:b=B"])) == {"b": "BExecutionProvider"}
    assert _placed(model(TEXT), parse_pins(["2=AExecutionProvider"])) == {"third": "AExecutionProvider"}


def test_nodes_inside_bodies_are_found_by_name() -> None:
    """At every depth."""
    held = model(TEXT)
    pin(held, parse_pins(["node:inner=A"]), PROVIDERS)
    *_, branch = held.graph
    assert [node.metadata for body in branch.subgraphs for node in body] == [{PROVIDER_KEY: "AExecutionProvider"}, None]


def test_the_nearest_wins() -> None:
    """Name before index before annotation before operator."""
    held = model(TEXT)
    for node in held.graph:
        node.metadata = {ANNOTATION_KEY: "encoder"}
    pins = parse_pins(["Relu=A", "Neg=A", "annotation:enc=Own", "1=B", "0=B", "node:first=A"])
    placed = _placed(held, pins)
    assert placed == {"first": "AExecutionProvider", "b": "BExecutionProvider", "third": "Own", "y": "Own"}


def test_of_two_annotations_the_longer_fits_better() -> None:
    """The text of an annotation is a beginning, or with "=" all of it."""
    held = model(TEXT)
    for node, text in zip(held.graph, ("encoder.layer1", "encoder", "decoder", "enc"), strict=True):
        node.metadata = {ANNOTATION_KEY: text}
    assert _placed(held, parse_pins(["annotation:encoder=A", "annotation:encoder.layer=B", "annotation:=enc=Own"])) == {
        "first": "BExecutionProvider",
        "b": "AExecutionProvider",
        "y": "Own",
    }


def test_of_two_layers_the_first_beginning_wins() -> None:
    """An exact one counts where no beginning fits; all are weaker than annotations."""
    held = model(TEXT)
    for node, text in zip(held.graph, ("encoder.1", "encoder", "head", "tail"), strict=True):
        node.metadata = {ANNOTATION_KEY: text}
    pins = Pins(layers={"=encoder": "Own", "enc": "A", "encoder.1": "B", "=head": "B", "tail": "B"}, annotations={"tail": "Own"})
    assert _placed(held, pins) == {
        "first": "AExecutionProvider",
        "b": "AExecutionProvider",
        "third": "BExecutionProvider",
        "y": "Own",
    }


def test_an_annotation_that_no_node_has_is_told() -> None:
    """With what is near; one file may serve many models."""
    held = model(TEXT)
    for node in held.graph:
        node.metadata = {ANNOTATION_KEY: "encoder"}
    with pytest.warns(UserWarning, match="annotation 'encodr', which no node has .*did you mean 'encoder'"):
        assert _placed(held, parse_pins(["annotation:encodr=A"])) == {}


def test_a_model_can_name_providers_itself() -> None:
    """One that the session does not have is dropped: the model runs where a device is missing."""
    held = model(TEXT)
    first, second, third, _ = held.graph
    first.metadata, second.metadata = {PROVIDER_KEY: "A"}, {PROVIDER_KEY: "Own"}
    third.metadata = {PROVIDER_KEY: "Missing", "other": "stays"}
    assert _placed(held, Pins()) == {"first": "AExecutionProvider", "b": "Own"}
    assert third.metadata == {"other": "stays"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Relu=AExecutionProvder", r"placement of Relu names provider 'AExecutionProvder'.*did you mean 'AExecutionProvider'"),
        ("Rellu=A", "operator 'Rellu', which neither the model nor the standard has; did you mean 'Relu'"),
        ("first=A", "operator 'first'.*a node's name is written node:NAME"),
        ("node:firs=A", "node 'firs', which the model does not have; did you mean 'first'"),
        ("9=A", "names node 9; the main graph has 4 nodes"),
    ],
)
def test_a_mistake_is_told_with_what_is_near(text: str, message: str) -> None:
    """Providers, operators, names and indices."""
    with pytest.raises(InvalidArgument, match=message):
        pin(model(TEXT), parse_pins([text]), PROVIDERS)


def test_an_operator_that_the_model_lacks_places_nothing() -> None:
    """One file may serve many models."""
    assert _placed(model(TEXT), parse_pins(["Conv=A", "com.microsoft.Gelu=B"])) == {}


def test_a_provider_is_found_by_its_short_name() -> None:
    """The full name wins."""
    assert find_provider("A", PROVIDERS, "x") == "AExecutionProvider"
    assert find_provider("A", ["A", "AExecutionProvider"], "x") == "A"
