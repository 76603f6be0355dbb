"""LRN: elements divided by a power of their neighbours in other channels."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.images.lrn import LrnParams, write_lrn
from sardonyx.codegen.target import Target
from sardonyx.ir import Node
from sardonyx.ops.views.normalize import Lrn
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import float_type, shape_of
from sardonyx.providers.cpu.sizes import Sizes


@dataclasses.dataclass(frozen=True, slots=True)
class LrnSpec:
    """An LRN."""

    view: Lrn
    """What its attributes say."""
    kind: Type
    """The type of elements."""


def claim(node: Node) -> LrnSpec | str:
    """Return what an LRN computes, or why it cannot be compiled."""
    kind, rank = float_type(node.inputs[0]), len(shape_of(node.inputs[0]))
    if isinstance(kind, str):
        return f"elements of {kind}"
    return f"{rank} dimensions, none of which counts channels" if rank < 2 else LrnSpec(Lrn.of(node), kind)


@dataclasses.dataclass(frozen=True, slots=True)
class LrnKernel:
    """Elements divided by a power of their neighbours."""

    kind: Type
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"lrn_{self.kind}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_lrn(module, symbol, self.kind)


@lowers("LRN", claim=claim)
def lrn(low: Lowering, group: Group, spec: LrnSpec) -> None:
    """Go through the channels of each image, block after block."""
    view, x, result = spec.view, low.of(group.node.inputs[0]), low.result(group.node.output)
    floats = [float_word(number) for number in (view.alpha / view.size, view.beta, view.bias)]

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        channels, inner = sizes(x.shape[1]), sizes.product(x.shape[2:])
        reach = min((view.size - 1) // 2, channels), min(view.size // 2, channels)
        params = LrnParams(sizes(x.shape[0]), channels, inner, *reach)
        return [*params.words(), *floats], params.tasks()

    low.step(group, low.kernel(LrnKernel(spec.kind)), [x, result], writes=[1], plan=plan)
