"""What Det and Inverse share: square matrices, and the step that eliminates their columns."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS

__all__ = ["SquareSpec", "claim_square", "eliminate"]

_KINDS = {DataType.FLOAT: F32, DataType.DOUBLE: F64}
_TASKS_PER_THREAD = 16
_TASK_ELEMENTS = 1 << 22
"""How many elements a task changes about, while a run that is to end has to wait."""


@dataclasses.dataclass(frozen=True, slots=True)
class SquareSpec:
    """A node of square matrices."""

    kind: Type
    """The type of elements."""


def claim_square(node: Node) -> SquareSpec | str:
    """Return the type of the matrices of a node whose result has it too, or why it cannot be compiled."""
    x, shape = given(node.inputs[0]), shape_of(node.inputs[0])
    if x.dtype not in _KINDS or node.output.dtype is not x.dtype:
        return f"matrices of type {x.dtype}"
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return f"that matrices are square {open_or_wrong(shape)}"
    return SquareSpec(_KINDS[x.dtype])


def eliminate(low: Lowering, group: Group, symbol: str, *, rows: int = 0, failure: str = "") -> None:
    """Add the step of a kernel of `elimination_tasks`, in copies of several matrices at a time.

    Args:
        low: where to add it.
        group: what it computes.
        symbol: the kernel.
        rows: how many more rows the copy of a matrix has.
        failure: what is wrong with the matrix that the kernel reports; "" where it reports none.
    """
    x, result = low.of(group.node.inputs[0]), low.result(group.node.output)
    together = 1 if low.threads == 1 else _TASKS_PER_THREAD * low.threads
    length = x.shape[-1]
    copies = low.temporary(DataType.DOUBLE, (together, length * (length + rows) + 1))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        size, count = sizes(length), sizes.product(x.shape[:-2])
        columns = max(1, _TASK_ELEMENTS // max(size * size, 1))
        parts = max(1, -(-size // columns))
        return [size, together, parts, columns, count], -(-count // together) * parts * together

    buffers = [x, result, copies, *([STATUS] if failure else [])]
    low.step(group, symbol, buffers, writes=[1, 2], plan=plan, together=together, failure=failure)
