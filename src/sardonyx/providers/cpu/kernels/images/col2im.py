"""Col2Im: the columns of windows added up to images."""

from __future__ import annotations

from math import prod

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64, Type
from sardonyx.codegen.emit.window import axis_words
from sardonyx.codegen.kernels.images.fold_columns import write_fold_columns
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.ops.views.window import Sliding, Window
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.windows import conv_axes, place_window, problem_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of, given, shape_of
from sardonyx.providers.cpu.sizes import Sizes

_KINDS = {DataType.FLOAT: F32, DataType.DOUBLE: F64, DataType.INT32: I32, DataType.INT64: I64}
_MOST_AXES = 4


@dataclasses.dataclass(frozen=True, slots=True)
class FoldSpec:
    """A Col2Im."""

    kind: Type
    """The type of elements, in which they are added."""
    window: Window[int]
    """The blocks."""


def claim(node: Node) -> FoldSpec | str:
    """Return what a Col2Im adds up, or why it cannot be compiled."""
    x, block, wide = given(node.inputs[0]), constant_of(node.inputs[2]), shape_of(node.output)
    if x.dtype not in _KINDS:
        return f"elements of type {x.dtype}"
    if block is None:
        return "its block_shape is computed"
    kernel = [int(size) for size in block.reshape(-1).tolist()]
    if not 1 <= len(kernel) <= _MOST_AXES or len(wide) != len(kernel) + 2 or len(shape_of(x)) != 3 or min(kernel) < 1:
        return f"blocks of {kernel} for an image of {len(wide)} dimensions"
    window = Sliding.of(node).over(kernel)
    return problem_of(window) or FoldSpec(_KINDS[x.dtype], window)


@dataclasses.dataclass(frozen=True, slots=True)
class FoldColumnsKernel:
    """Columns, added up."""

    kind: Type
    """The type of elements."""
    rank: int
    """How many spatial axes."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"fold_columns{self.rank}d_{self.kind.kind.value}{self.kind.bits}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_fold_columns(module, symbol, self.kind, self.rank)


@lowers("Col2Im", claim=claim, inputs=3)
def col2im(low: Lowering, group: Group, spec: FoldSpec) -> None:
    """Add up row after row of each image."""
    window, x, result = spec.window, low.of(group.node.inputs[0]), low.result(group.node.output)
    taps = prod(window.kernel)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, channels, *spatial = sizes.shape(result.shape)
        places = [_places(window, axis, size) for axis, size in enumerate(spatial)]
        expected = (images, channels * taps, prod(places))
        if sizes.shape(x.shape) != expected or min(spatial, default=1) < 1:
            raise InvalidArgument(
                f"input has shape {sizes.shape(x.shape)}; expected {expected} for images of {spatial} and blocks of "
                f"{list(window.kernel)}"
            )
        axes = conv_axes(window, spatial, place_window(window, spatial, places), 1, 1)
        return axis_words(axes), images * channels * prod(spatial[:-1])

    low.step(group, low.kernel(FoldColumnsKernel(spec.kind, len(window.kernel))), [x, result], writes=[1], plan=plan)


def _places(window: Window[int], axis: int, size: int) -> int:
    """Return how many places a block has on an axis of this size."""
    padding = window.pads[axis] + window.pads[axis + len(window.kernel)]
    return max((size + padding - window.extents[axis]) // window.strides[axis] + 1, 0)
