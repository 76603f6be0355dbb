"""Tables of claims."""

from __future__ import annotations

import pytest
from support.models import graph
from support.providers import FusingProvider

from sardonyx.errors import EPFail
from sardonyx.partition.claims import ask, claimed_nodes, claims_of
from sardonyx.provider import Capability, Claims, GraphView

TEXT = "graph(x: float[2]) -> (y: float[2]) {\na = Relu(x)\nb = Exp(a)\ny = Neg(b)\n}"
A = FusingProvider({"Relu", "Exp"}, "A", fuse=False)
B = FusingProvider({"Exp", "Neg"}, "B", fuse=False)


def test_every_provider_is_asked_about_every_node() -> None:
    """As if it were the only one, so that claims overlap."""
    held = graph(TEXT)
    relu, exp, neg = held
    table = claims_of(held, [A, B])
    assert table.nodes == {"A": {relu, exp}, "B": {exp, neg}}
    assert [table.providers_of(node) for node in held] == [("A",), ("A", "B"), ("B",)]
    assert table.claimed() == {relu, exp, neg}


def test_some_nodes_can_be_asked_about() -> None:
    """Then the others are not in the table."""
    held = graph(TEXT)
    exp = list(held)[1]
    assert claims_of(held, [A, B], [exp]).nodes == {"A": {exp}, "B": {exp}}


def test_without_providers_nothing_is_claimed() -> None:
    """Such a table is empty."""
    assert claims_of(graph(TEXT), []).claimed() == set()


def test_nodes_of_claims_keep_their_order() -> None:
    """Claim after claim."""
    first, second, third = graph(TEXT)
    assert list(claimed_nodes(Claims([Capability((third,)), Capability((first, second))]))) == [third, first, second]


class _Changes(FusingProvider):
    def capabilities(self, view: GraphView) -> Claims:
        view.nodes[0].domain = "changed"
        return Claims()


class _Single(FusingProvider):
    def capabilities(self, view: GraphView) -> Claims:
        return Claims([Capability(view.nodes[0])])  # type: ignore[arg-type]


class _Raises(FusingProvider):
    def capabilities(self, view: GraphView) -> Claims:
        raise KeyError("no table")


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (_Single((), "Odd"), r"Odd claims Capability\(nodes=<Relu.*; nodes and reads are tuples: Capability\(\(node,\)\)"),
        (_Changes((), "Odd"), "Odd changed the graph when it was asked"),
        (_Raises((), "Odd"), "Odd raised when asked for its capabilities: KeyError"),
    ],
)
def test_a_provider_that_breaks_the_contract_is_named(provider: FusingProvider, message: str) -> None:
    """So that a session can go on without it."""
    held = graph(TEXT)
    with pytest.raises(EPFail, match=message) as caught:
        ask(provider, held, tuple(held))
    assert caught.value.provider == "Odd"
