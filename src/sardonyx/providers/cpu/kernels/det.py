"""Det: determinants of matrices."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.kernels.determinant import write_determinant
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes

_KINDS = {DataType.FLOAT: F32, DataType.DOUBLE: F64}
_TASKS_PER_THREAD = 16
_TASK_ELEMENTS = 1 << 22
"""How many elements a task changes about, while a run that is to end has to wait."""


@dataclasses.dataclass(frozen=True, slots=True)
class DetSpec:
    """A Det."""

    kind: Type
    """The type of elements."""


def claim(node: Node) -> DetSpec | str:
    """Return the type of the matrices of a Det, or why it cannot be compiled."""
    x, shape = given(node.inputs[0]), shape_of(node.inputs[0])
    if x.dtype not in _KINDS:
        return f"matrices of type {x.dtype}"
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return f"that matrices are square {open_or_wrong(shape)}"
    return DetSpec(_KINDS[x.dtype])


@dataclasses.dataclass(frozen=True, slots=True)
class DeterminantKernel:
    """Determinants."""

    kind: Type
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"determinant_{self.kind}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_determinant(module, symbol, self.kind)


@lowers("Det", claim=claim)
def det(low: Lowering, group: Group, spec: DetSpec) -> None:
    """Eliminate in copies of several matrices at a time."""
    x, result = low.of(group.node.inputs[0]), low.result(group.node.output)
    together = 1 if low.threads == 1 else _TASKS_PER_THREAD * low.threads
    rows = x.shape[-1]
    work = low.temporary(DataType.DOUBLE, (together, rows * rows + 1))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        size, count = sizes(rows), sizes.product(x.shape[:-2])
        columns = max(1, _TASK_ELEMENTS // max(size * size, 1))
        parts = max(1, -(-size // columns))
        return [size, together, parts, columns, count], -(-count // together) * parts * together

    symbol = low.kernel(DeterminantKernel(spec.kind))
    low.step(group, symbol, [x, result, work], writes=[1, 2], plan=plan, together=together)
