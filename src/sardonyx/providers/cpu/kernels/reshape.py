"""Operators that only give a new shape to the same elements: views, no bytes move."""

from __future__ import annotations

from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering, lowers


def _check(node: Node) -> str | None:
    source, result = node.inputs[0], node.outputs[0]
    if source is None or source.shape is None or result.shape is None:
        return "its shape is not known"
    if source.constant is not None:
        return "its input is a constant, which folding takes care of"
    if product(source.shape) != product(result.shape):
        return f"that {source.shape} and {result.shape} have as many elements depends on sizes"
    return None


@lowers("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze", check=_check)
def view(low: Lowering, group: Group) -> None:
    """Let the result lie where the input is."""
    low.view(group.anchor.outputs[0], low.of(group.anchor.inputs[0]))
