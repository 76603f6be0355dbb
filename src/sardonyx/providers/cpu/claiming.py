"""Which nodes the CPU provider runs: asked when it claims them, and again of the nodes of a saved partition."""

from __future__ import annotations

from sardonyx.ir import Node
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.lowering import find_operator

__all__ = ["problem_of"]


def problem_of(node: Node, *, layout_follows: bool = False) -> str | None:
    """Return why `node` cannot be lowered, or None where it can.

    Args:
        node: a node whose types are known.
        layout_follows: whether it will be converted to NHWC before it is lowered.
    """
    operator = find_operator(node.domain, node.op_type)
    if operator is None and layout_follows and node.domain == "":
        operator = find_operator(NHWC_DOMAIN, node.op_type)
        if operator is not None and any(value.use_count for value in node.outputs[1:]):
            return f"{node.op_type} with more than one output is not converted to NHWC"
    if operator is None:
        return f"no compiled kernel for {node.domain or 'ai.onnx'}.{node.op_type}"
    for value in (*node.inputs, *node.outputs):
        if value is not None and (value.dtype is None or value.shape is None):
            return f"the type or rank of {value.name or 'an inner value'} is not known"
    return operator.check(node)
