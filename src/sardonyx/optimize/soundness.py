"""Whether a rule or pass left a model that can be run: its structure, its types, and each node by its operator's schema."""

from __future__ import annotations

from sardonyx.errors import InvalidGraph, SardonyxError, located
from sardonyx.ir import Model
from sardonyx.ir.verify import verify
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.schema import place_of
from sardonyx.ops.schemas import check_node, check_types, find_schema, known_domains, unknown_operator

__all__ = ["check_sound", "is_sound"]


def check_sound(model: Model) -> None:
    """Raise InvalidGraph, or another SardonyxError, for the first fault found; infers shapes on the way. O(nodes)."""
    verify(model)
    infer_graph(model)
    for node in all_nodes(model):
        if node.overload or (node.domain, node.op_type, node.overload) in model.functions:
            continue
        schema = find_schema(node.domain, node.op_type, node.version)
        if schema is None and node.domain not in known_domains():
            continue
        try:
            if schema is None:
                raise InvalidGraph(unknown_operator(node.domain, node.op_type, node.version))
            check_node(node, schema)
            check_types(node, schema)
        except SardonyxError as error:
            raise located(error, place_of(node)) from error


def is_sound(model: Model) -> bool:
    """Return whether `check_sound` finds nothing."""
    try:
        check_sound(model)
    except SardonyxError:
        return False
    return True
