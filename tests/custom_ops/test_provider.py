"""The provider of a session's custom operators."""

from __future__ import annotations

import pytest

from sardonyx.custom_ops.catalog import Catalog
from sardonyx.custom_ops.definition import Kernel, OperatorDefinition, Parameter, Site
from sardonyx.custom_ops.provider import CustomOperatorsProvider
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument, RuntimeException
from sardonyx.ir import Node, TensorType, Value
from sardonyx.ir.graph import Graph
from sardonyx.provider import Capability, GraphView, Partition


def _node(domain: str) -> Node:
    return Node("Op", [Value("x", TensorType(DataType.FLOAT))], [Value("y")], {"axis": 1}, domain=domain, version=1, name="n")


def _provider(error: Exception) -> CustomOperatorsProvider:
    def create(site: Site) -> Kernel:
        assert (site.name, site.attributes["axis"].value, site.config, site.input_names) == ("n", 1, {"a": "1"}, ("x",))
        raise error

    made = OperatorDefinition("mine", "Op", (Parameter(DataType.FLOAT),), (Parameter(DataType.FLOAT),), create)
    return CustomOperatorsProvider(Catalog([made]), {"a": "1"})


def test_only_nodes_of_custom_operators_are_claimed() -> None:
    """The others are left to the session's providers."""
    mine, other = _node("mine"), _node("other")
    claims = _provider(ValueError()).capabilities(GraphView(Graph(), (mine, other)))
    assert [item.nodes for item in claims.capabilities] == [(mine,)]
    assert claims.declined == {other: "no custom operator"}


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (InvalidArgument("no"), InvalidArgument, "no"),
        (ZeroDivisionError("by zero"), RuntimeException, "ZeroDivisionError: by zero"),
    ],
)
def test_errors_of_a_definition_name_the_node(error: Exception, kind: type[Exception], text: str) -> None:
    """Those that are not ours become RuntimeException."""
    node = _node("mine")
    part = Partition("part", Graph(), (node,), (Capability((node,)),), (), (), tuple(node.outputs))
    with pytest.raises(kind, match=f'node "n" .*{text}'):
        _provider(error).compile(part, lambda body: body)  # type: ignore[arg-type, return-value]
