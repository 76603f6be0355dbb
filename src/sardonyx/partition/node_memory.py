"""What nodes take of a memory: weights, and what they make. Kept in a CSV file of onnxruntime's form.

#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations
/encoder/MatMul,4096,65536,8192,0
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import Fail, InvalidArgument, NoSuchFile
from sardonyx.ir import Node, Tensor
from sardonyx.partition.profile import value_bytes

__all__ = ["NodeMemory", "load_node_memory", "name_of", "node_memory", "save_node_memory", "weights_of"]

_COLUMNS = ("#name", "input_sizes", "initializers_sizes", "total_dynamic_sizes", "total_temp_allocations")


@dataclasses.dataclass(frozen=True, slots=True)
class NodeMemory:
    """Bytes that one node needs; the fields are in the order of the file's columns."""

    input_bytes: int
    """What it reads, but for weights."""
    weight_bytes: int
    """Its weights."""
    output_bytes: int
    """What it makes."""
    scratch_bytes: int = 0
    """What it needs while it runs."""

    @property
    def taken_bytes(self) -> int:
        """What it takes besides its inputs, which others make."""
        return self.weight_bytes + self.output_bytes + self.scratch_bytes

    def most(self, other: NodeMemory) -> NodeMemory:
        """Return the larger of the two in each field."""
        return NodeMemory(*map(max, dataclasses.astuple(self), dataclasses.astuple(other)))


def name_of(node: Node) -> str:
    """Return the name of a node, or of the first of its outputs that has one."""
    return node.name or next((value.name for value in node.outputs if value.name), "")


def weights_of(node: Node) -> dict[Tensor, int]:
    """Return the constants that a node reads, with their bytes."""
    values = [value for value in node.inputs if value is not None]
    return {value.constant: round(value_bytes(value, {})) for value in values if value.constant is not None}


def node_memory(node: Node, sizes: Mapping[str, int]) -> NodeMemory:
    """Return what `node` needs where symbols have these sizes; values whose size is not known then count as nothing."""
    reads = [value for value in node.inputs if value is not None and value.constant is None]
    read_bytes, made_bytes = (round(sum(value_bytes(value, sizes) for value in values)) for values in (reads, node.outputs))
    return NodeMemory(read_bytes, sum(weights_of(node).values()), made_bytes)


def save_node_memory(table: Mapping[str, NodeMemory], path: str | os.PathLike[str]) -> None:
    """Write `table`, from the names of nodes; raises Fail where the file cannot be written."""
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(_COLUMNS)
            writer.writerows((name, *dataclasses.astuple(need)) for name, need in table.items())
    except OSError as error:
        raise Fail(f"what nodes need of memory cannot be written to {str(path)!r}: {error.strerror or error}") from error


def load_node_memory(path: str | os.PathLike[str]) -> dict[str, NodeMemory]:
    """Read what `save_node_memory` wrote.

    Raises:
        NoSuchFile: there is no such file.
        InvalidArgument: it is something else.
    """
    place = Path(path)
    if not place.is_file():
        raise NoSuchFile(
            f"there is no file {str(place)!r} of what nodes need of memory; a run writes it where the config entry "
            "session.collect_node_memory_stats_to_file names it"
        )
    found: dict[str, NodeMemory] = {}
    for number, row in enumerate(csv.reader(place.read_text(encoding="utf-8", errors="replace").splitlines()), 1):
        if not row or row[0].startswith("#"):
            continue
        name, *counts = row
        if len(row) != len(_COLUMNS) or not all(count.strip().isdecimal() for count in counts):
            raise InvalidArgument(f"{place.name}, line {number}: expected {','.join(_COLUMNS)}, got {','.join(row)!r:.200}")
        need = NodeMemory(*map(int, counts))
        found[name] = need.most(found.get(name, need))
    return found
