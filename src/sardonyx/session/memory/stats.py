"""Recording what the nodes of a session need of memory, for `session.memory_limits` of later ones.

Sizes follow from the shapes that are fed; one that only the run itself shows counts as nothing. Of several runs the largest counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import OnnxValue
from sardonyx.forks import new_lock
from sardonyx.ir import Model, Node, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.partition.node_memory import NodeMemory, name_of, save_node_memory, weights_of
from sardonyx.partition.profile import value_bytes
from sardonyx.session.feeds import symbol_sizes
from sardonyx.session.memory.limits import beside

__all__ = ["MemoryRecorder", "recorder_for"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """A node as it was before it was compiled."""

    name: str
    reads: tuple[Value, ...]
    weight_bytes: int
    makes: tuple[Value, ...]

    @classmethod
    def of(cls, node: Node) -> _Row:
        reads = tuple(value for value in node.inputs if value is not None and value.constant is None)
        return cls(name_of(node), reads, sum(weights_of(node).values()), tuple(node.outputs))


def _bytes(values: Sequence[Value], sizes: Mapping[str, int]) -> int:
    return round(sum(value_bytes(value, sizes) for value in values))


class MemoryRecorder:
    """Writes a file of what the nodes of one model need; any number of threads may `record` at a time."""

    def __init__(self, model: Model, path: Path) -> None:
        """Begin with nothing recorded.

        Args:
            model: prepared, before it is compiled.
            path: the file that each run which needs more than those before writes anew.
        """
        self._path = path
        self._inputs = tuple(model.graph.inputs)
        self._rows = [_Row.of(node) for graph in nested_graphs(model.graph) for node in graph]
        self._table: dict[str, NodeMemory] = {}
        self._lock = new_lock()

    def record(self, given: Sequence[OnnxValue]) -> None:
        """Note a run on `given`, the values of the inputs in order; raises Fail where the file cannot be written."""
        sizes = symbol_sizes(self._inputs, given)
        with self._lock:
            table = dict(self._table)
            for row in self._rows:
                need = NodeMemory(_bytes(row.reads, sizes), row.weight_bytes, _bytes(row.makes, sizes))
                table[row.name] = need.most(table.get(row.name, need))
            if table != self._table:
                self._table = table
                save_node_memory(table, self._path)


def recorder_for(model: Model, name: str) -> MemoryRecorder | None:
    """Return the recorder that writes the file `name` beside a prepared model; None where the name is empty."""
    return MemoryRecorder(model, beside(model, name)) if name else None
