"""Chains of nodes found by their operators."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.tools.graph_matching import GraphMatching

MODEL = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
main (float[n, 4] x, float[4] s) => (float[n, 4] y) <float[4] w = {1, 2, 3, 4}> {
    a = Add(x, w)
    m = Mul(s, a)
    e = Exp(m)
    t = Exp(a)
    y = Sub(e, t)
}""")
GRAPH = GraphMatching(MODEL)
ADD, MUL, EXP, OTHER, SUB = MODEL.graph.node
MAKERS = GRAPH.output_name_to_node()


def test_a_parent_by_operator() -> None:
    """At an input, or at the first that fits, whose index goes into the list."""
    assert GRAPH.match_parent(MUL, "Add", 1) == ADD
    assert GRAPH.match_parent(MUL, "Add", 0) is None
    assert GRAPH.match_parent(MUL, "Add", 7) is None
    indices: list[int | None] = []
    assert GRAPH.match_parent(MUL, "Add", None, MAKERS, return_indice=indices) == ADD
    assert GRAPH.match_parent(MUL, "Conv", None, MAKERS, return_indice=indices) is None
    assert indices == [1, None]
    assert GRAPH.match_parent(MUL, "Add", exclude=[ADD]) is None
    assert GRAPH.match_first_parent(SUB, "Exp", MAKERS, [EXP]) == (OTHER, 1)


def test_a_chain_of_parents() -> None:
    """The nearest first; only the first parent that fits is followed."""
    assert GRAPH.match_parent_path(SUB, ["Exp", "Mul", "Add"], [0, 0, 1]) == [EXP, MUL, ADD]
    assert GRAPH.match_parent_path(SUB, ["Exp", "Mul", "Add"], [1, 0, 1]) is None
    indices: list[int | None] = []
    assert GRAPH.match_parent_path(SUB, ["Exp", "Mul", "Add"], [None, 0, None], MAKERS, indices) == [EXP, MUL, ADD]
    assert indices == [0, 1]
    assert GRAPH.match_parent_path(SUB, ["Exp", "Add"]) is None
    assert GRAPH.match_parent_path(SUB, []) == []


def test_one_of_several_chains() -> None:
    """The first, or all, with the indices of inputs that were left open."""
    paths: Any = [(["Conv"], [0]), (["Exp", "Add"], [1, None]), (["Exp"], None)]
    assert GRAPH.match_parent_paths(SUB, paths, MAKERS) == (1, [OTHER, ADD], [0])
    assert GRAPH.match_parent_paths(ADD, paths, MAKERS) == (-1, None, None)
    assert GRAPH.match_parent_paths_all(SUB, paths, MAKERS) == ([1, 2], [[OTHER, ADD], [EXP]], [[0], [0]])


def test_a_chain_of_children() -> None:
    """By outputs and inputs where edges are given; the first child that fits is followed."""
    assert GRAPH.match_child_path(ADD, ["Mul", "Exp", "Sub"]) == [MUL, EXP, SUB]
    assert GRAPH.match_child_path(ADD, ["Exp", "Sub"], [(0, 0), (0, 1)]) == [OTHER, SUB]
    assert GRAPH.match_child_path(ADD, ["Exp", "Sub"], [(0, 0), (0, 0)]) is None
    assert GRAPH.match_child_path(ADD, ["Exp"], [(0, 5)]) is None
    assert GRAPH.match_child_path(ADD, ["Mul"], exclude=[MUL]) is None


def test_nodes_that_only_one_another_read_may_go() -> None:
    """Not where something else reads what they make, unless that is made otherwise."""
    readers = GRAPH.input_name_to_nodes()
    assert GRAPH.is_safe_to_fuse_nodes([MUL, EXP], ["e"], readers, MAKERS)
    assert not GRAPH.is_safe_to_fuse_nodes([ADD, MUL], ["m"], readers, MAKERS)


def test_where_a_node_goes_in() -> None:
    """Before the first that reads its values, else at the end."""
    assert GRAPH.get_topological_insert_id(MODEL.graph, ["a"]) == 1
    assert GRAPH.get_topological_insert_id(MODEL.graph, ["y"]) == 5


CALLS = {
    "no node": (lambda: GRAPH.match_parent(None, "Add"), "got None"),
    "a negative input": (lambda: GRAPH.match_parent(MUL, "Add", -1), "got -1"),
    "too few indices": (lambda: GRAPH.match_parent_path(SUB, ["Exp", "Mul"], [0]), "1 indices.*2 operators"),
    "a path of another kind": (lambda: GRAPH.match_parent_paths(SUB, ["Exp"], MAKERS), "got str at 0"),
    "too few edges": (lambda: GRAPH.match_child_path(ADD, ["Mul", "Exp"], [(0, 0)]), "1 edges for 2"),
    "an edge of another kind": (lambda: GRAPH.match_child_path(ADD, ["Mul"], [[0, 0]]), r"got \[0, 0\]"),  # type: ignore[list-item]  # the error under test
}


@pytest.mark.parametrize("call", list(CALLS))
def test_errors(call: str) -> None:
    """What cannot be meant is an error that says what was given."""
    run, message = CALLS[call]
    with pytest.raises(InvalidArgument, match=message):
        run()
