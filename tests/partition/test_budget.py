"""Partitioning by capacity."""

from __future__ import annotations

import dataclasses

from support.models import model
from support.providers import FusingProvider, NhwcProvider

from sardonyx.ir import Graph
from sardonyx.ops.infer import infer_graph
from sardonyx.partition.assign import Terms, assign
from sardonyx.partition.budget import Accountant, Budget
from sardonyx.partition.node_memory import NodeMemory
from sardonyx.provider import Claims, GraphView, Provider

KIB = 1024
TEXT = """graph(x: float[256]) -> (y: float[256]) {
    w: float[256] = ... 1
    a = Mul(x, w) @first
    b = Mul(a, w) @second
    c = Neg(b) @third
    y = Neg(c) @last
}"""
"""Each result, and the weight, takes one KiB."""
REST = FusingProvider({"Mul", "Neg", "Conv", "Relu"}, "Rest", fuse=False)


def _graph(text: str) -> Graph:
    held = model(text)
    infer_graph(held)
    return held.graph


def _names(held: Graph, provider: Provider, accountant: Accountant) -> list[str]:
    found = assign(held, [provider, REST], Terms(accountant=accountant))
    return [node.name for node in held if found.units[node].provider is provider]


def test_the_first_node_that_does_not_fit_ends_it() -> None:
    """Later ones that would fit are not taken; what was measured counts, else what shapes say, half as much again."""
    table = {"first": NodeMemory(0, KIB, KIB), "second": NodeMemory(0, KIB, KIB), "third": NodeMemory(0, 0, 9 * KIB)}
    provider = FusingProvider({"Mul", "Neg"}, "P", fuse=False)
    for limit, count in ((1, 0), (2, 1), (3, 2), (11, 2), (12, 3)):
        expected = ["first", "second", "third"][:count]
        assert _names(_graph(TEXT), provider, Accountant({"P": Budget(limit * KIB, table)}, {})) == expected
    assert _names(_graph(TEXT), provider, Accountant({"P": Budget(int(4.5 * KIB))}, {})) == ["first", "second"]
    assert len(_names(_graph(TEXT), provider, Accountant({"Rest": Budget(0)}, {}))) == 4


def test_why_a_node_does_not_fit_is_told() -> None:
    """With what it needs and what is taken."""
    held, provider = _graph(TEXT), FusingProvider({"Mul", "Neg"}, "P", fuse=False)
    found = assign(held, [provider, REST], Terms(accountant=Accountant({"P": Budget(4 * KIB)}, {})))
    *_, last = held
    assert found.declined[last] == {"P": "its memory is full: 'second' needs 2 KiB, and 3 KiB of 4 KiB are taken"}


def test_a_fused_claim_fits_as_a_whole_or_not() -> None:
    """Its nodes are counted together."""
    provider = FusingProvider({"Mul", "Neg"}, "P")
    assert _names(_graph(TEXT), provider, Accountant({"P": Budget(7 * KIB)}, {})) == []
    assert len(_names(_graph(TEXT), provider, Accountant({"P": Budget(8 * KIB)}, {}))) == 4


def test_graphs_of_one_model_share_the_memory() -> None:
    """A graph that is assigned again counts once."""
    accountant = Accountant({"P": Budget(9 * KIB)}, {})
    provider = FusingProvider({"Mul", "Neg"}, "P", fuse=False)
    first, second = _graph(TEXT), _graph(TEXT)
    assert len(_names(first, provider, accountant)) == 4
    assert len(_names(first, provider, accountant)) == 4
    assert _names(second, provider, accountant) == []


def test_symbols_have_the_sizes_that_are_given() -> None:
    """Without them a shape counts as nothing."""
    text = "graph(x: float[n, 256]) -> (y: float[n, 256]) {\na = Neg(x) @first\ny = Neg(a) @last\n}"
    provider = FusingProvider({"Neg"}, "P", fuse=False)
    assert _names(_graph(text), provider, Accountant({"P": Budget(3 * KIB)}, {"n": 2})) == ["first"]
    assert _names(_graph(text), provider, Accountant({"P": Budget(3 * KIB)}, {})) == ["first", "last"]


def test_what_does_not_fit_is_not_converted() -> None:
    """Of two convolutions the second stays in NCHW, for the provider after."""
    text = """graph(x: float[1, 4, 8, 8]) -> (y: float[1, 4, 8, 8]) {
        w: float[4, 4, 3, 3] = ... 1
        a = Conv(x, w) {pads = [1, 1, 1, 1]} @first
        y = Conv(a, w) {pads = [1, 1, 1, 1]} @last
    }"""
    held, provider = _graph(text), NhwcProvider()
    found = assign(held, [provider, REST], Terms(accountant=Accountant({provider.name: Budget(3 * KIB)}, {})))
    assert {node.name: (found.units[node].provider.name, node.domain) for node in held if node.op_type == "Conv"} == {
        "first": ("NhwcProvider", "sardonyx.nhwc"),
        "last": ("Rest", ""),
    }


class _OwnsBodies(FusingProvider):
    """Runs If with its bodies."""

    def capabilities(self, view: GraphView) -> Claims:
        found = super().capabilities(view)
        return Claims([dataclasses.replace(item, owns_bodies=True) for item in found.capabilities], found.declined)


def test_bodies_that_a_provider_runs_itself_count() -> None:
    """Each of the two makes one KiB, as the node does."""
    text = """graph(x: float[256], c: bool[]) -> (y: float[256]) {
        y = If(c) {then_branch = graph() -> (t) {\nt = Neg(x)\n}, else_branch = graph() -> (e) {\ne = Exp(x)\n}} @choice
    }"""
    for provider, fits in ((_OwnsBodies({"If"}, "P", fuse=False), 5), (FusingProvider({"If"}, "P", fuse=False), 2)):
        rest = FusingProvider({"If"}, "Rest", fuse=False)
        for limit, count in ((fits - 1, 0), (fits, 1)):
            held = _graph(text)
            found = assign(held, [provider, rest], Terms(accountant=Accountant({"P": Budget(limit * KIB)}, {})))
            assert sum(unit.provider is provider for unit in found.units.values()) == count
