"""Softmax and LogSoftmax along any axis: rows where the axis is the last, columns where it is not."""

from __future__ import annotations

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.lines import Along
from sardonyx.codegen.kernels.softmax import write_softmax
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Shape, Value
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.lines import Lines, joins_lines
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.sizes import Sizes

_ONE_AXIS_SINCE = 13
"""Before this version the axes from `axis` on made one row."""


def _check(node: Node) -> str | None:
    x = node.inputs[0]
    if x is None or x.dtype is not DataType.FLOAT or not x.shape:
        return f"a softmax of {None if x is None else x.dtype}, or of a scalar"
    rank = len(x.shape)
    axis = node.get("axis", _default_axis(node))
    return None if -rank <= axis < rank else f"axis={axis} for {rank} dimensions"


def _default_axis(node: Node) -> int:
    return -1 if node.version >= _ONE_AXIS_SINCE else 1


def _view(node: Node, shape: Shape) -> tuple[int, int, Along]:
    """The first axis that is folded, the axis at which lines begin, and what is folded."""
    axis = node.get("axis", _default_axis(node)) % len(shape)
    if node.version < _ONE_AXIS_SINCE or all(dim == 1 for dim in shape[axis + 1 :]):
        return axis, axis, Along.ROWS
    return axis, axis + 1, Along.COLUMNS


def _joins(group: Group, node: Node, value: Value) -> bool:
    _, split, _ = _view(group.anchor, value.shape or ())
    return joins_lines(split, group, node, value)


@lowers("LogSoftmax", "Softmax", check=_check, joins=_joins)
def softmax(low: Lowering, group: Group) -> None:
    """Lower to one kernel that reads a row or column once and writes it once."""
    node = group.anchor
    source, log = low.of(node.inputs[0]), node.op_type == "LogSoftmax"
    after, operands = low.epilogue(group)
    besides = [low.of(value) for value in operands]
    result = low.result(group.result)
    lines = Lines(result.shape, *_view(node, result.shape), [(buffer.dtype, buffer.shape) for buffer in besides])
    symbol = low.symbol("log_softmax" if log else "softmax", [after], lines.name)
    low.kernel(
        symbol,
        lambda module, name: write_softmax(
            module, name, lines.along, log=log, before=argument(0, F32), after=after, besides=lines.besides
        ),
    )

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = lines.params(sizes)
        return [*params.words(), *lines.walk(sizes)], params.tasks()

    low.step(group, symbol, [source, result, *besides], writes=[1], plan=plan, in_place=[0])
