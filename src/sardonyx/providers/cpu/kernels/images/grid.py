"""GridSample: images sampled at given positions."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.images.grid_sample import BLOCK, Sampling, write_grid_sample
from sardonyx.codegen.target import Target
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.ops.views.sampling import GridSample
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import float_type, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.strided import dense_strides

_MOST_AXES = 3
_MOST_ELEMENTS = 1 << 31
"""Offsets in a channel are numbers of 32 bits."""


@dataclasses.dataclass(frozen=True, slots=True)
class GridSpec:
    """A GridSample."""

    sampling: Sampling
    """How images are sampled."""


def claim(node: Node) -> GridSpec | str:
    """Return how a GridSample samples, or why it cannot be compiled."""
    shape, grid, view = shape_of(node.inputs[0]), shape_of(node.inputs[1]), GridSample.of(node)
    rank = len(shape) - 2
    kind = float_type(*node.inputs[:2])
    if isinstance(kind, str):
        return f"images or positions of {kind}"
    if not 1 <= rank <= _MOST_AXES or len(grid) != len(shape) or grid[-1] != rank or grid[0] != shape[0]:
        return f"that images (N, C, *spatial) of up to {_MOST_AXES} axes fit positions (N, *, axes) {open_or_wrong(shape, grid)}"
    return GridSpec(Sampling(view.mode, view.padding, view.align_corners, rank, kind))


@dataclasses.dataclass(frozen=True, slots=True)
class GridSampleKernel:
    """Images sampled at positions."""

    sampling: Sampling
    """How."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"grid_sample_{self.sampling.key}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_grid_sample(module, symbol, self.sampling)


@lowers("GridSample", claim=claim, inputs=2)
@lowers("GridSample", claim=claim, inputs=2, domain="com.microsoft")
def grid_sample(low: Lowering, group: Group, spec: GridSpec) -> None:
    """Sample a block of positions in all channels."""
    node = group.node
    x, grid, result = low.of(node.inputs[0]), low.of(node.inputs[1]), low.result(node.output)
    axes = list(zip(x.shape[2:], dense_strides(x.shape[2:]), strict=True))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        positions, plane = sizes.product(grid.shape[1:-1]), sizes.product(x.shape[2:])
        tasks = sizes(grid.shape[0]) * -(-positions // BLOCK)
        if tasks and not 0 < plane < _MOST_ELEMENTS:
            raise InvalidArgument(
                f"X has shape {sizes.shape(x.shape)}; images must have elements, and fewer than 2^31 in a channel, to be sampled"
            )
        return [positions, sizes(x.shape[1]), plane, *(sizes(word) for axis in axes for word in axis)], tasks

    low.step(group, low.kernel(GridSampleKernel(spec.sampling)), [x, grid, result], writes=[2], plan=plan)
