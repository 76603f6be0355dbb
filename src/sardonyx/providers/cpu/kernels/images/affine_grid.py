"""AffineGrid: evenly spaced positions, mapped by matrices."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.kernels.images.affine import write_affine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes

_KINDS = {DataType.FLOAT: F32, DataType.DOUBLE: F64}
_RANKS = (2, 3)


@dataclasses.dataclass(frozen=True, slots=True)
class AffineSpec:
    """An AffineGrid."""

    kind: Type
    """The type of positions."""
    rank: int
    """How many spatial axes there are."""
    align_corners: bool
    """Whether -1 and 1 are the centres of the outer elements, or their edges."""


def claim(node: Node) -> AffineSpec | str:
    """Return how an AffineGrid maps positions, or why it cannot be compiled."""
    theta, shape, wide = given(node.inputs[0]), shape_of(node.inputs[0]), shape_of(node.output)
    rank = len(wide) - 2
    if theta.dtype not in _KINDS:
        return f"matrices of type {theta.dtype}"
    if rank not in _RANKS or len(shape) != 3 or shape[1:] != (rank, rank + 1) or wide[-1] != rank:
        return f"that matrices (N, r, r + 1) are for r of 2 or 3 axes {open_or_wrong(shape, wide)}"
    return AffineSpec(_KINDS[theta.dtype], rank, node.flag("align_corners"))


@dataclasses.dataclass(frozen=True, slots=True)
class AffineKernel:
    """Positions, mapped."""

    kind: Type
    """The type of positions."""
    rank: int
    """How many spatial axes."""
    align_corners: bool
    """Whether the outer elements' centres are at the ends."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"affine{self.rank}d_{self.kind}_{'corners' if self.align_corners else 'edges'}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_affine(module, symbol, self.kind, self.rank, align_corners=self.align_corners)


@lowers("AffineGrid", claim=claim, inputs=2)
def affine_grid(low: Lowering, group: Group, spec: AffineSpec) -> None:
    """Map row after row; how large the image is, is known by the time of binding."""
    theta, result = low.of(group.node.inputs[0]), low.result(group.node.output)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, *spatial, _ = sizes.shape(result.shape)
        if images != sizes(theta.shape[0]):
            raise InvalidArgument(f"theta has shape {sizes.shape(theta.shape)}, expected a matrix for each of {images} images")
        rows = 1
        for size in spatial[:-1]:
            rows *= size
        return [rows, *spatial], images * rows if spatial[-1] else 0

    symbol = low.kernel(AffineKernel(spec.kind, spec.rank, spec.align_corners))
    low.step(group, symbol, [theta, result], writes=[1], plan=plan)
