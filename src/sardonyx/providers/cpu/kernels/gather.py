"""Gather: rows by index, with every index checked before it is used."""

from __future__ import annotations

from sardonyx.codegen.gather import GatherParams, write_gather
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS

TASK_ELEMENTS = 1 << 14
"""Elements of one task."""


def _check(node: Node) -> str | None:
    data, indices = node.inputs[0], node.inputs[1]
    if data is None or indices is None or not data.shape:
        return "the data is a scalar"
    if element_type(data.dtype) is None:
        return f"elements of type {data.dtype}"
    return None if indices.dtype in (DataType.INT32, DataType.INT64) else f"indices of type {indices.dtype}"


@lowers("Gather", check=_check)
def gather(low: Lowering, group: Group) -> None:
    """Copy row after row."""
    node = group.anchor
    data, indices = low.of(node.inputs[0]), low.of(node.inputs[1])
    axis = node.get("axis", 0) % len(data.shape)
    result = low.result(node.output)
    outer, inner, count = product(data.shape[:axis]), product(data.shape[axis + 1 :]), product(indices.shape)
    element, index = element_type(data.dtype), element_type(indices.dtype)
    if element is None or index is None:
        raise TypeError("the check lets only types that kernels compute with through")
    symbol = low.kernel(
        f"gather_{data.dtype}_{indices.dtype}_{low.target.isa}", lambda module, name: write_gather(module, name, element, index)
    )

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        row = sizes(inner)
        params = GatherParams(sizes(data.shape[axis]), sizes(count), row, sizes(outer), max(1, TASK_ELEMENTS // max(row, 1)))
        return params.words(), params.tasks()

    low.step(group, symbol, [data, indices, result, STATUS], writes=[2], plan=plan)
