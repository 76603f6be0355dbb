"""MaxUnpool: elements put back where MaxPool found them."""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.kernels.images.unpool import write_unpool
from sardonyx.codegen.kernels.pad import PadDim, PadParams
from sardonyx.codegen.target import Target
from sardonyx.ir import Node, Shape
from sardonyx.ir.shape import product
from sardonyx.ops.shapes.windows import slide_back
from sardonyx.ops.views.pool import Pool
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.slice import PadKernel
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import index_type, moved_as, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS
from sardonyx.providers.cpu.strided import TASK_ELEMENTS


@dataclasses.dataclass(frozen=True, slots=True)
class UnpoolSpec:
    """A MaxUnpool."""

    element: Type
    """The type as which elements are moved."""
    pooled: Shape
    """The shape of what was pooled, in which indices count; that of the result may be another."""


def claim(node: Node) -> UnpoolSpec | str:
    """Return how the elements of a MaxUnpool are moved, or why it cannot be compiled."""
    shape, indices, element = shape_of(node.inputs[0]), shape_of(node.inputs[1]), moved_as(node)
    if isinstance(element, str):
        return element
    if index_type(node.inputs[1]) != I64 or indices != shape or len(shape) < 3:
        return f"that images (N, C, *spatial) have an int64 index for each element {open_or_wrong(shape, indices)}"
    window, wide = Pool.of(node).window, shape_of(node.output)
    if len(window.kernel) != len(shape) - 2 or len(wide) != len(shape):
        return f"a window of {len(window.kernel)} axes over {len(shape)} dimensions, which become {len(wide)}"
    return UnpoolSpec(element, shape[:2] + slide_back(window, shape[2:], [0] * len(window.kernel)))


@dataclasses.dataclass(frozen=True, slots=True)
class UnpoolKernel:
    """Elements at places, over zeros."""

    element: Type
    """The type as which elements are moved."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"unpool_{self.element.size_bytes}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_unpool(module, symbol, self.element)


@lowers("MaxUnpool", claim=claim, inputs=2)
def max_unpool(low: Lowering, group: Group, spec: UnpoolSpec) -> None:
    """Clear what was pooled and put the elements in it; indices count in all of it. Then cut or fill it to the result."""
    node = group.node
    x, indices, result = low.of(node.inputs[0]), low.of(node.inputs[1]), low.result(node.output)
    is_whole = spec.pooled == result.shape
    pooled = result if is_whole else low.temporary(x.dtype, spec.pooled)
    count, size = product(x.shape), product(spec.pooled)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes(count), sizes(size)], 1

    low.step(group, low.kernel(UnpoolKernel(spec.element)), [x, indices, pooled, STATUS], writes=[2], plan=plan)
    if is_whole:
        return

    def plan_cut(sizes: Sizes) -> tuple[list[int], int]:
        pairs = zip(sizes.shape(spec.pooled), sizes.shape(result.shape), strict=True)
        params = PadParams.over([PadDim.of(size, 0, out - size) for size, out in pairs], "constant", TASK_ELEMENTS)
        return params.words(), params.tasks()

    zero = low.constant(np.zeros(1, x.dtype.numpy))
    low.step(group, low.kernel(PadKernel(spec.element, "constant")), [pooled, zero, result], writes=[2], plan=plan_cut)
