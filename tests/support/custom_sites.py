"""Nodes for custom operators, without a session."""

from __future__ import annotations

from typing import Any

from sardonyx.custom_ops.definition import Site
from sardonyx.ir import Attribute, Node, TensorType, Value

__all__ = ["site_of"]


def site_of(*inputs: TensorType | None, constants: dict[int, Any] | None = None, outputs: int = 1, **attributes: Any) -> Site:
    """The site of a node `mine.Op` named "n" with inputs x0, x1 … and outputs y0, y1 and so on."""
    values = [Value(f"x{index}", kind) for index, kind in enumerate(inputs)]
    made = {name: value if isinstance(value, Attribute) else Attribute.of(value) for name, value in attributes.items()}
    node = Node("Op", values, [Value(f"y{index}") for index in range(outputs)], made, domain="mine", version=3, name="n")
    return Site(
        name="n",
        domain="mine",
        op_type="Op",
        version=3,
        attributes=made,
        input_names=tuple(value.name for value in values),
        output_names=tuple(value.name for value in node.outputs),
        input_types=inputs,
        output_types=(None,) * outputs,
        constants=constants or {},
        config={},
    )
