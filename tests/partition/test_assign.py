"""Assignment of nodes to providers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from support.models import graph
from support.providers import FusingProvider, NhwcProvider

from sardonyx import errors
from sardonyx.errors import EPFail
from sardonyx.ir import Graph, Node
from sardonyx.partition.assign import Terms, assign, dissolve
from sardonyx.provider import HOST, Body, Capability, Claims, GraphView, Layout, Partition, Program

CHAIN = """graph(x: float[2, 3]) -> (y: float[2, 3]) {
    a = Relu(x) @first
    b = Neg(a) @second
    y = Exp(b) @third
}"""
CONVS = """graph(x: float[1, 3, 8, 8]) -> (y: float[1, 4, 8, 8]) {
    w: float[4, 3, 1, 1] = ... 1
    a: float[1, 4, 8, 8] = Conv(x, w) @conv
    y = Relu(a) @relu
}"""


def _who(held: Graph, assignment_units: dict[Node, object]) -> dict[str, str]:
    return {node.name: assignment_units[node].provider.name for node in held}  # type: ignore[attr-defined]  # Unit, kept loose


def test_the_first_provider_that_claims_a_node_gets_it() -> None:
    """Priority is the order of the list."""
    held = graph(CHAIN)
    first = FusingProvider({"Neg"}, "A", fuse=False)
    second = FusingProvider({"Relu", "Neg", "Exp"}, "B", fuse=False)
    units = assign(held, [first, second]).units
    assert _who(held, dict(units)) == {"first": "B", "second": "A", "third": "B"}


def test_what_a_provider_declines_has_its_reason() -> None:
    """The reason that a provider gives is kept for the report."""
    held = graph(CHAIN)
    result = assign(held, [FusingProvider({"Neg"}, "A", fuse=False), FusingProvider({"Relu", "Exp"}, "B", fuse=False)])
    assert [result.declined.get(node) for node in held] == [
        {"A": "Relu is not among its operators"},
        None,
        {"A": "Exp is not among its operators"},
    ]


def test_nodes_that_nobody_claims_are_orphans() -> None:
    """Assignment names what it could not place."""
    result = assign(graph(CHAIN), [FusingProvider({"Relu", "Exp"}, fuse=False)])
    assert [node.name for node in result.orphans] == ["second"]


def test_a_fused_claim_is_one_unit() -> None:
    """All nodes of a fused claim share a unit."""
    held = graph(CHAIN)
    units = assign(held, [FusingProvider({"Relu", "Neg", "Exp"})]).units
    assert len({id(unit) for unit in units.values()}) == 1


def test_a_fused_claim_that_overlaps_an_earlier_one_is_refused_whole() -> None:
    """All or nothing: the nodes left go on to the next provider."""

    class Overlapping(FusingProvider):
        def capabilities(self, view: GraphView) -> Claims:
            first, second, third = view.nodes
            return Claims([Capability((first, second), True, "one"), Capability((second, third), True, "two")])

    held = graph(CHAIN)
    result = assign(held, [Overlapping(()), FusingProvider({"Exp"}, "B", fuse=False)])
    third = next(node for node in held if node.name == "third")
    assert result.units[third].provider.name == "B"
    assert result.declined[third]["FusingProvider"] == "two overlaps an earlier claim at Neg node 'second'"


def test_dissolving_a_unit_offers_its_nodes_to_later_providers() -> None:
    """A unit that cannot run as one is taken apart."""
    held = graph(CHAIN)
    providers = [FusingProvider({"Relu", "Exp"}, "A"), FusingProvider({"Relu", "Neg", "Exp"}, "B", fuse=False)]
    result = assign(held, providers)
    first = next(iter(held))
    apart = dissolve(held, result.units[first], providers, result)
    assert result.units[first].provider.name == "A"
    assert apart.units[first].provider.name == "B"
    assert "cannot run as one" in apart.declined[first]["A"]


def test_a_provider_that_prefers_nhwc_is_asked_again_after_the_layout_step() -> None:
    """The second query shows the converted node and the transposes around it."""
    provider = NhwcProvider()
    held = graph(CONVS)
    assign(held, [provider])
    assert provider.queries == [
        (False, ["Conv", "Relu"]),
        (True, ["Transpose", "sardonyx.nhwc.Conv", "Relu", "Transpose"]),
    ]


def test_a_claim_that_keeps_the_layout_is_not_converted() -> None:
    """Though its provider prefers NHWC, it is asked once."""

    class AsItIs(NhwcProvider):
        def capabilities(self, view: GraphView) -> Claims:
            claims = super().capabilities(view)
            return Claims([dataclasses.replace(claim, keeps_layout=True) for claim in claims.capabilities])

    provider = AsItIs()
    held = graph(CONVS)
    assign(held, [provider])
    assert provider.queries == [(False, ["Conv", "Relu"])]
    assert {node.domain for node in held} == {""}


def test_a_converted_node_that_is_not_claimed_again_is_an_error_that_names_it() -> None:
    """Nobody else could run a node of the NHWC domain."""
    with pytest.raises(EPFail, match="NhwcProvider prefers NHWC and claimed Conv node 'conv'"):
        assign(graph(CONVS), [NhwcProvider(forgetful=True)])


def test_a_provider_that_raises_is_named() -> None:
    """Whatever a plug-in raises becomes an EPFail with its name."""

    class Broken:
        name, preferred_layout, memory = "Broken", Layout.NCHW, HOST

        def capabilities(self, view: GraphView) -> Claims:
            raise RuntimeError("out of order")

        def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
            raise AssertionError

    with pytest.raises(EPFail, match="Broken raised when asked for its capabilities: RuntimeError: out of order"):
        assign(graph(CHAIN), [Broken()])


def test_a_claim_of_a_node_that_was_not_offered_is_an_error() -> None:
    """A provider may claim only nodes of the view."""

    class Greedy(FusingProvider):
        def capabilities(self, view: GraphView) -> Claims:
            return Claims([Capability(tuple(view.graph))])

    with pytest.raises(EPFail, match="Greedy|FusingProvider claims .* which it was not offered"):
        assign(graph(CHAIN), [FusingProvider({"Neg"}, "A", fuse=False), Greedy(())])


def test_a_placed_node_is_offered_to_its_provider_only() -> None:
    """The others learn where it is placed."""
    held = graph(CHAIN)
    first = next(iter(held))
    both = [FusingProvider({"Relu", "Neg", "Exp"}, name, fuse=False) for name in "AB"]
    result = assign(held, both, Terms({first: "B"}))
    assert _who(held, dict(result.units)) == {"first": "B", "second": "A", "third": "A"}
    assert result.declined[first] == {"A": "placed on B"}


def test_a_placed_node_that_its_provider_declines_is_an_error_or_falls_through() -> None:
    """A loose one goes to the first of the others that claims it."""
    held = graph(CHAIN)
    first = next(iter(held))
    providers = [FusingProvider({"Relu", "Neg", "Exp"}, "A", fuse=False), FusingProvider({"Neg"}, "B", fuse=False)]
    with pytest.raises(errors.NotImplemented, match=r'"first" .* is placed on B, which does not run it \(Relu is not'):
        assign(held, providers, Terms({first: "B"}))
    result = assign(held, providers, Terms({first: "B"}, [first]))
    assert _who(held, dict(result.units))["first"] == "A"
    assert result.declined[first] == {"B": "Relu is not among its operators"}


BRANCHES = """graph(x: float[2], c: bool[]) -> (y) {
    y = If(c) {then_branch = graph() -> (v) { v = Neg(x) }, else_branch = graph() -> (v) { v = Abs(x) }} }"""


class _Owning(FusingProvider):
    """Runs the bodies of its nodes itself."""

    def capabilities(self, view: GraphView) -> Claims:
        found = super().capabilities(view)
        return Claims([dataclasses.replace(claim, owns_bodies=True) for claim in found.capabilities], found.declined)


@pytest.mark.parametrize(("operators", "owner"), [({"Exp"}, "B"), ({"Abs"}, "C")])
def test_a_body_in_which_an_earlier_provider_has_parts_is_not_anothers_own(operators: set[str], owner: str) -> None:
    """Its node goes to one that has the bodies planned."""
    held = graph(BRANCHES)
    providers = [FusingProvider(operators, "A"), _Owning({"If"}, "B", fuse=False), FusingProvider({"If"}, "C")]
    assignment = assign(held, providers)
    (node,) = held
    assert assignment.units[node].provider.name == owner
    assert (assignment.declined[node].get("B") == "its body has parts for other providers") == (owner == "C")


@pytest.mark.parametrize(("placed", "owner"), [("B", "B"), ("A", "C")])
def test_a_body_with_nodes_that_are_placed_elsewhere_is_not_a_providers_own(placed: str, owner: str) -> None:
    """Even where that provider is asked later, or does not claim them."""
    held = graph(BRANCHES)
    providers = [_Owning({"If"}, "B", fuse=False), FusingProvider({"If"}, "C")]
    terms = Terms(placed_in=lambda body: {node: placed for node in body if node.op_type == "Abs"})
    (node,) = held
    assert assign(held, providers, terms).units[node].provider.name == owner
