"""Symbols in the graphs of generation loops, whose declarations are often wrong.

    input_ids: int32[batch, length], past_self_key_0: float[batch, 2, length, 4]        `length` is 1, then 0, 1, 2 …

Exporters write one name for lengths that differ from step to step. ONNX Runtime compares none of them, so a model with such a
name runs there. The inputs of a body are of four lengths (new tokens, mask, past, encoder) and of a number of rows; a name that is
used for several of these becomes a name for each.
"""

from __future__ import annotations

from sardonyx.ir import Dim, Graph, Model, Shape, TensorType, Value, symbol
from sardonyx.ir.shape import symbols_in
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.generation_bodies import is_generation_loop

__all__ = ["separate_lengths"]

_RANK_OF_JOINT_PAST = 5
"""A past of keys and values together, (2, rows, heads, keys, size), has its rows second."""


def separate_lengths(model: Model) -> None:
    """Rename symbols of com.microsoft's generation loops that their bodies' inputs use for several lengths; O(nodes)."""
    for node in all_nodes(model):
        if is_generation_loop(node):
            for attribute in node.attributes.values():
                if isinstance(attribute.value, Graph):
                    _separate(attribute.value)


def _separate(body: Graph) -> None:
    owners: dict[str, str] = {}
    renamed = [_rename(value, owners) for value in body.inputs]
    if not any(renamed):
        return
    for value in body.outputs:
        if isinstance(value.type, TensorType):
            value.type = TensorType(value.type.dtype)


def _rename(value: Value, owners: dict[str, str]) -> bool:
    """Rename an input's symbols that belong to other lengths; return whether there was one."""
    if not isinstance(value.type, TensorType) or value.type.shape is None:
        return False
    shape: Shape = tuple(
        _own(dim, _length_of(value.name, axis, len(value.type.shape)), owners) for axis, dim in enumerate(value.type.shape)
    )
    is_changed = shape != value.type.shape
    if is_changed:
        value.type = TensorType(value.type.dtype, shape)
    return is_changed


def _own(dim: Dim, length: str, owners: dict[str, str]) -> Dim:
    names = symbols_in(dim)
    if all(owners.setdefault(name, length) == length for name in names):
        return dim
    return symbol(f"{'_'.join(sorted(names))}/{length}")


def _length_of(name: str, axis: int, rank: int) -> str:
    """Return which of the lengths an axis of an input is, by the names that ONNX Runtime gives inputs."""
    if axis == (1 if rank == _RANK_OF_JOINT_PAST else 0):
        return "rows"
    if name in ("input_ids", "position_ids", "decoder_input_ids"):
        return "tokens"
    if name == "attention_mask":
        return "mask"
    return "encoder" if "encoder" in name or "cross" in name else "past"
