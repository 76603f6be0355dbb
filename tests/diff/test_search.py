"""The search for the first nodes that differ."""

from __future__ import annotations

import pytest
from support.models import model
from support.planted import PlantedProvider, chain, rows

from sardonyx.diff.configuration import parse_configuration
from sardonyx.diff.engines import engine_for
from sardonyx.diff.search import Search, Sides
from sardonyx.diff.slices import Slices
from sardonyx.diff.tolerance import Tolerance
from sardonyx.ir import Model
from sardonyx.ops.infer import infer_graph
from sardonyx.provider import Capability, Claims, GraphView

PLAIN = engine_for(parse_configuration("level=none,provider=Reference"))


def found_in(held: Model, *names: str, fused: bool = False, window: int = 16) -> tuple[list[str], bool]:
    """The nodes found where those of `names` are wrong, and whether the outputs agree."""
    infer_graph(held)
    slices = Slices(held)
    wrong = engine_for(parse_configuration("provider=Planted,level=none"), [PlantedProvider(*names, fused=fused)])
    search = Search(slices, Sides(PLAIN, wrong, PLAIN, Tolerance()), window)
    start = slices.start(rows())
    known = search.compare(slices.whole(start))
    found = search.find(start, known)
    return [] if found is None else [node.name for node in found.part.nodes], not known.differs


@pytest.mark.parametrize("name", ["MatMul0", "Add17", "Tanh40", "Tanh99"])
@pytest.mark.parametrize("gain", [0.05, 1.0, 3.0])
def test_one_wrong_node_of_300_is_found(name: str, gain: float) -> None:
    """Where later nodes damp the error away, where they pass it on, and where they amplify it."""
    assert found_in(chain(100, gain), name)[0] == [name]


def test_an_error_that_the_outputs_do_not_show_is_found() -> None:
    """Layers of a small gain leave nothing of it."""
    names, agrees = found_in(chain(100, 0.05), "Add40")
    assert (names, agrees) == (["Add40"], True)


@pytest.mark.parametrize("names", [("MatMul50", "Add50", "Tanh50"), ("Tanh49", "MatMul50"), ("Add1", "Tanh1")])
def test_an_error_inside_a_fused_group_is_found_with_the_group(names: tuple[str, ...]) -> None:
    """None of its nodes is wrong by itself; the middle of a bisection may lie in the group."""
    assert found_in(chain(100, 3.0), *names, fused=True)[0] == list(names)


def test_nothing_is_found_where_nothing_differs() -> None:
    """All short parts are tried."""
    assert found_in(chain(20), "none") == ([], True)


def test_the_first_of_several_wrong_nodes_is_found() -> None:
    """In topological order."""
    assert found_in(chain(30), "Add20", "Tanh7", "MatMul25")[0] == ["Tanh7"]


def test_nodes_beside_the_group_are_left_out() -> None:
    """Also such that stand between its nodes."""
    text = """graph(x: float[n, 8]) -> (y: float[n, 8], z: float[n, 8]) {
    a = Neg(x) @one
    c = Abs(x) @beside
    d = Exp(c) @beside2
    b = Tanh(a) @two
    y = Sigmoid(b) @after
    z = Neg(d) @end
    }"""
    assert found_in(model(text), "one", "two", fused=True)[0] == ["one", "two"]


class _ByPlace(PlantedProvider):
    """Runs the node wrongly that stands at a place of whatever graph it is asked about."""

    def capabilities(self, view: GraphView) -> Claims:
        return Claims([Capability((view.nodes[40],))] if len(view.nodes) > 40 else [])


def test_an_error_that_depends_on_nodes_before_it_has_a_suspect() -> None:
    """No part without them shows it; the node that makes the first wrong value is named."""
    held = chain(20)
    infer_graph(held)
    slices = Slices(held)
    wrong = engine_for(parse_configuration("provider=Planted,level=none"), [_ByPlace()])
    search = Search(slices, Sides(PLAIN, wrong, PLAIN, Tolerance()), 16)
    start = slices.start(rows())
    found = search.find(start, search.compare(slices.whole(start)))
    assert found is not None
    assert [node.name for node in found.part.nodes][-1] == "Add13"
    assert found.suspect is not None
    assert found.suspect.name == "Add13"


def test_fused_nodes_have_no_suspect() -> None:
    """None is wrong once their values are given out."""
    held = chain(10)
    infer_graph(held)
    slices = Slices(held)
    wrong = engine_for(parse_configuration("level=none,provider=Planted"), [_OnlyFused("Add5", "Tanh5")])
    search = Search(slices, Sides(PLAIN, wrong, PLAIN, Tolerance()), 16)
    start = slices.start(rows())
    found = search.find(start, search.compare(slices.whole(start)))
    assert found is not None
    assert [node.name for node in found.part.nodes] == ["Add5", "Tanh5"]
    assert found.suspect is None


class _OnlyFused(PlantedProvider):
    """Fuses two nodes where nobody else reads what is between them."""

    def capabilities(self, view: GraphView) -> Claims:
        mine = tuple(node for node in view.nodes if node.name in self._names)
        fits = len(mine) == 2 and mine[0].outputs[0].use_count == 1
        return Claims([Capability(mine, fused=True, name="planted")] if fits else [])
