"""Let the graphs of beam searches read keys and values of former steps from the rows that beams go on from."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Model, Node, TensorType, Value
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.generation_bodies import ROWS, is_generation_loop
from sardonyx.optimize.contract import Context, Pass

__all__ = ["PICK_PAST_ROWS"]

_LOOPS = ("BeamSearch", "WhisperBeamSearch")
_BUFFERS = frozenset(["past_sequence_length", "past_seq_len", "cache_indirection"])
"""Inputs of graphs whose pasts are buffers that they fill by themselves."""


class _PickPastRows:
    """Move the rows of pasts where a step begins, not between steps.

        BeamSearch, WhisperBeamSearch {decoder = (…, past_0: float[2, rows, …], …) … past_0 …}
        ->      (…, past_0, …, r: int64[rows]) … Gather(past_0, r, axis=1) …

        … {decoder = (…, past_key_self_0: float[rows, …], …) … past_key_self_0 …}
        ->      (…, past_key_self_0, …, r: int64[rows]) … Gather(past_key_self_0, r) …

    Left alone: the other loops, which never move rows; graphs whose pasts are buffers, or of different numbers of rows.

    Cost: O(nodes).
    """

    name = "pick_past_rows"
    not_saved = "onnxruntime's loops move the rows themselves"

    def run(self, model: Model, context: Context) -> bool:
        """Add an input; whether any was."""
        changed = False
        for node in [node for node in all_nodes(model) if is_generation_loop(node) and node.op_type in _LOOPS]:
            body = node.subgraph("decoder")
            changed |= body is not None and _pick(body)
        return changed


PICK_PAST_ROWS: Pass = _PickPastRows()


def _pick(body: Graph) -> bool:
    """Read pasts by rows that an input names; whether they were read as they are."""
    names = [value.name for value in body.inputs]
    axes = {value: axis for value in body.inputs if (axis := _axis_of_rows(value)) is not None}
    counts = {value.shape[axis] for value, axis in axes.items() if value.shape is not None}
    first = next(iter(body), None)
    if ROWS in names or not _BUFFERS.isdisjoint(names) or len(counts) != 1 or first is None:
        return False
    rows = Value(ROWS, TensorType(DataType.INT64, tuple(counts)))
    body.inputs.append(rows)
    for past, axis in axes.items():
        node = Node("Gather", (), 1, {"axis": axis}, version=13)
        node.output.type = past.type
        past.replace_all_uses_with(node.output)
        node.set_inputs([past, rows])
        body.insert_before(first, node)
    return True


def _axis_of_rows(value: Value) -> int | None:
    """Return which axis of a past of self-attention has the rows; None of other inputs."""
    rank = len(value.shape or ())
    if not value.name.startswith("past_"):
        return None
    if rank == 5:  # (2, rows, heads, keys, size): keys and values together
        return 1
    return 0 if rank == 4 and "_self_" in value.name else None
