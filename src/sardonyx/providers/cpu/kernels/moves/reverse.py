"""ReverseSequence: the first elements of sequences turned around."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.kernels.reverse import write_reverse
from sardonyx.codegen.target import Target
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.ops.views.slice import ReverseSequence
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import index_type, moved_as, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS
from sardonyx.providers.cpu.strided import TASK_ELEMENTS

_TOGETHER = 16
"""Sequences of a task are whole groups of so many, whose elements share cache lines where steps come first."""


@dataclasses.dataclass(frozen=True, slots=True)
class ReverseSpec:
    """A ReverseSequence."""

    element: Type
    """The type as which elements are moved."""
    time_axis: int
    """Which of the first two axes counts steps; the other counts sequences."""


def claim(node: Node) -> ReverseSpec | str:
    """Return which way sequences lie, or why it cannot be compiled."""
    shape, lengths, element, view = shape_of(node.inputs[0]), shape_of(node.inputs[1]), moved_as(node), ReverseSequence.of(node)
    if isinstance(element, str):
        return element
    if len(shape) < 2:
        return f"data of {len(shape)} dimensions, expected two for steps and sequences"
    if index_type(node.inputs[1]) != I64:
        return "lengths that are no int64"
    if lengths != (shape[1 - view.time_axis],):
        return f"that there is a length for each sequence {open_or_wrong(shape, lengths)}"
    return ReverseSpec(element, view.time_axis)


@dataclasses.dataclass(frozen=True, slots=True)
class ReverseKernel:
    """Rows of sequences in another order."""

    element: Type
    """The type as which elements are moved."""
    steps_first: bool
    """Whether the first dimension counts steps."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"reverse_{self.element.size_bytes}{'_steps' if self.steps_first else ''}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_reverse(module, symbol, self.element, steps_first=self.steps_first)


@lowers("ReverseSequence", claim=claim, inputs=2)
def reverse_sequence(low: Lowering, group: Group, spec: ReverseSpec) -> None:
    """Copy row after row."""
    node = group.node
    data, lengths, result = low.of(node.inputs[0]), low.of(node.inputs[1]), low.result(node.output)
    axes, rest = data.shape[:2], data.shape[2:]

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        steps, sequences, inner = sizes(axes[spec.time_axis]), sizes(axes[1 - spec.time_axis]), sizes(product(rest))
        block = -(-TASK_ELEMENTS // max(steps * inner * _TOGETHER, 1)) * _TOGETHER
        return [steps, sequences, inner, block], -(-sequences // block) if steps else 0

    symbol = low.kernel(ReverseKernel(spec.element, spec.time_axis == 0))
    low.step(group, symbol, [data, lengths, result, STATUS], writes=[2], plan=plan, failure=_FAILURE)


_FAILURE = "the length of sequence {} is negative, or beyond the number of steps; expected one from 0 to that"
