"""The neutral definition: operators that are no library's run too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.custom_ops.catalog import Catalog
from sardonyx.custom_ops.definition import NEWEST, Arity, OperatorDefinition, Parameter, Site
from sardonyx.dtypes import Array, DataType


class _Add:
    def __init__(self, site: Site) -> None:
        self._number = site.attributes["number"].value

    def compute(self, inputs: Sequence[Array | None]) -> list[Array | None]:
        return [np.asarray(item) + self._number for item in inputs if item is not None]


def test_defaults_are_those_of_a_plain_operator() -> None:
    """Required inputs, all versions, types from the declaration."""
    made = OperatorDefinition("mine", "Add", (Parameter(DataType.FLOAT),), (Parameter(DataType.FLOAT),), _Add)
    assert (made.since, made.until, made.infer, made.owner) == (1, NEWEST, None, "")
    assert made.inputs[0].arity is Arity.REQUIRED


def test_an_operator_written_in_python_runs() -> None:
    """By the same provider as those of libraries."""
    from sardonyx.custom_ops.provider import CustomOperatorsProvider
    from sardonyx.ir import Node, TensorType, Value
    from sardonyx.ir.graph import Graph
    from sardonyx.provider import GraphView, Partition

    made = OperatorDefinition("mine", "Add", (Parameter(DataType.FLOAT),), (Parameter(DataType.FLOAT),), _Add)
    provider = CustomOperatorsProvider(Catalog([made]), {})
    x = Value("x", TensorType(DataType.FLOAT))
    node = Node("Add", [x], [Value("y")], {"number": 2}, domain="mine", version=1)
    graph = Graph()
    (claim,) = provider.capabilities(GraphView(graph, (node,))).capabilities
    partition = Partition("part", graph, claim.nodes, (claim,), (x,), (), tuple(node.outputs))
    program = provider.compile(partition, lambda body: body)  # type: ignore[arg-type, return-value]
    (result,) = program.run(program.bind(()), [np.ones(2, np.float32)], (), None)
    assert result.tolist() == [3, 3]
