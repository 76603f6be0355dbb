"""Models and functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from sardonyx.ir import Function, Graph, Model, Node, Value


@pytest.mark.parametrize(
    ("path", "graph", "label"),
    [(Path("/far/away/net.onnx"), "main", "net.onnx"), (None, "main", "main"), (None, "", "model")],
)
def test_messages_call_a_model_by_its_file(path: Path | None, graph: str, label: str) -> None:
    """The label is the file's name, else the graph's, else a plain word."""
    assert Model(Graph(graph), {"": 21}, path=path).label == label


def test_a_new_model_has_no_functions_and_no_metadata() -> None:
    """Two models share no dictionary."""
    first, second = Model(Graph(), {}), Model(Graph(), {})
    first.metadata["k"] = "v"
    first.functions["d", "F", ""] = Function("d", "F", Graph(), {})
    assert not second.metadata
    assert not second.functions


def test_a_function_is_known_by_domain_name_and_overload() -> None:
    """`id` is what a calling node must match."""
    assert Function("d", "F", Graph(), {"": 21}, overload="o").id == ("d", "F", "o")
    assert Function("d", "F", Graph(), {"": 21}).attributes == {}


def test_a_dismantled_model_has_no_nodes() -> None:
    """Those of its functions go too; what messages call it stays."""
    graph, body = Graph("main"), Graph("body")
    for held in (graph, body):
        held.append(Node("Relu", [Value("x")], 1, version=14))
    model = Model(graph, {"": 21})
    model.functions["d", "f", ""] = Function("d", "f", body, {"": 21})
    model.dismantle()
    assert (len(graph), len(body), model.label) == (0, 0, "main")
