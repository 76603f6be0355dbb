"""Built-in operators for which a session has operators of the user's, as `sardonyx.op("", "Relu")` makes them."""

from __future__ import annotations

from collections.abc import Iterator

from sardonyx.ir import Model, Node
from sardonyx.ir.replaced import replaced_domain
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.infer import fact_of, infer_graph
from sardonyx.ops.session_operators import SessionOperator, find_session_operator
from sardonyx.trace import event

__all__ = ["replace_operators"]


def replace_operators(model: Model) -> None:
    """Give nodes whose operator the session being built replaces the domain of what replaces it; O(nodes).

    A node keeps its built-in operator where the other does not take the types of its inputs.
    """
    found = list(_candidates(model))
    if not found:
        return
    facts = infer_graph(model)
    for node, operator in found:
        inputs = [None if value is None else facts.get(value) or fact_of(value) for value in node.inputs]
        reason = operator.declines(node, inputs)
        if reason:
            event("operator.kept", node=node.place, reason=reason)
        else:
            node.domain = replaced_domain(node.domain)


def _candidates(model: Model) -> Iterator[tuple[Node, SessionOperator]]:
    for node in all_nodes(model):
        if (node.domain, node.op_type, node.overload) in model.functions:
            continue
        operator = find_session_operator(replaced_domain(node.domain), node.op_type, node.version)
        if operator is not None:
            yield node, operator
