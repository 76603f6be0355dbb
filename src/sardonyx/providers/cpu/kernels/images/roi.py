"""Operators that pool regions of images."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.images.roi import write_max_roi_pool, write_roi_align
from sardonyx.codegen.target import Target
from sardonyx.config import LIMITS
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.ops.views.roi import MaxRoiPool, RoiAlign
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import float_type, given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer

_TASKS_PER_THREAD = 4
_MOST_ELEMENTS = 1 << 31
"""Offsets in a channel are numbers of 32 bits."""


def _type_of(node: Node, parts: int) -> Type | str:
    """Return the type of images and regions, or why they do not fit the kernels."""
    shape, rois, kind = shape_of(node.inputs[0]), shape_of(node.inputs[1]), float_type(*node.inputs[:2])
    if isinstance(kind, str):
        return f"images or regions of {kind}"
    if len(shape) != 4 or len(rois) != 2 or rois[1] != parts:
        return f"that images (N, C, H, W) have regions (R, {parts}) {open_or_wrong(shape, rois)}"
    return kind


@dataclasses.dataclass(frozen=True, slots=True)
class AlignSpec:
    """A RoiAlign."""

    view: RoiAlign
    """What its attributes say."""
    kind: Type
    """The type of images and regions."""


def claim_align(node: Node) -> AlignSpec | str:
    """Return how a RoiAlign pools, or why it cannot be compiled."""
    kind, images = _type_of(node, 4), given(node.inputs[2])
    if isinstance(kind, str):
        return kind
    if images.dtype is not DataType.INT64 or shape_of(images) != shape_of(node.inputs[1])[:1]:
        return f"that there is an int64 image for each region {open_or_wrong(shape_of(images), shape_of(node.inputs[1]))}"
    return AlignSpec(RoiAlign.of(node), kind)


@dataclasses.dataclass(frozen=True, slots=True)
class RoiAlignKernel:
    """Cells of regions, from samples."""

    shifted: bool
    """Whether elements' centres lie at halves."""
    takes_max: bool
    """Whether the greatest of all neighbours is wanted."""
    kind: Type
    """The type of images and regions."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"roi_align_{self.kind}_{'max' if self.takes_max else 'mean'}{'_shifted' * self.shifted}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_roi_align(module, symbol, shifted=self.shifted, takes_max=self.takes_max, kind=self.kind)


def _check_plane(sizes: Sizes, x: Buffer, regions: int) -> None:
    plane = sizes.product(x.shape[2:])
    if regions and not 0 < plane < _MOST_ELEMENTS:
        raise InvalidArgument(
            f"X has shape {sizes.shape(x.shape)}; images must have elements, and fewer than 2^31 in a channel, to be pooled"
        )


@lowers("RoiAlign", claim=claim_align, inputs=3)
def roi_align(low: Lowering, group: Group, spec: AlignSpec) -> None:
    """Pool region after region; each of those that run at a time has room for a vector of cells of every channel."""
    node, view = group.node, spec.view
    x, rois, images = (low.of(value) for value in node.inputs[:3])
    result = low.result(node.output)
    together = 1 if low.threads == 1 else _TASKS_PER_THREAD * low.threads
    work = low.temporary(x.dtype, (together, x.shape[1], low.target.lanes(spec.kind.bits)))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        regions = sizes(rois.shape[0])
        _check_plane(sizes, x, regions)
        most = LIMITS.tensor_bytes // 4
        words = [*sizes.shape(x.shape), *view.output, view.samples, float_word(view.scale), most, together]
        return words, regions

    symbol = low.kernel(RoiAlignKernel(view.is_shifted, view.takes_max, spec.kind))
    buffers = [x, rois, images, result, work, STATUS]
    low.step(group, symbol, buffers, writes=[3, 4], plan=plan, together=together, failure=_ALIGN_FAILURE)


_ALIGN_FAILURE = "region {} is of an image that X does not have, or needs too many samples; check rois and batch_indices"


@dataclasses.dataclass(frozen=True, slots=True)
class MaxPoolSpec:
    """A MaxRoiPool."""

    view: MaxRoiPool
    """What its attributes say."""
    kind: Type
    """The type of images and regions."""


def claim_pool(node: Node) -> MaxPoolSpec | str:
    """Return how a MaxRoiPool pools, or why it cannot be compiled."""
    kind = _type_of(node, 5)
    return kind if isinstance(kind, str) else MaxPoolSpec(MaxRoiPool.of(node), kind)


@dataclasses.dataclass(frozen=True, slots=True)
class MaxRoiPoolKernel:
    """The greatest elements of the cells of regions."""

    kind: Type
    """The type of images and regions."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"max_roi_pool_{self.kind}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_max_roi_pool(module, symbol, self.kind)


@lowers("MaxRoiPool", claim=claim_pool, inputs=2)
def max_roi_pool(low: Lowering, group: Group, spec: MaxPoolSpec) -> None:
    """Pool region after region."""
    node, view = group.node, spec.view
    x, rois, result = low.of(node.inputs[0]), low.of(node.inputs[1]), low.result(node.output)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [*sizes.shape(x.shape), *view.output, float_word(view.scale)], sizes(rois.shape[0])

    symbol = low.kernel(MaxRoiPoolKernel(spec.kind))
    low.step(group, symbol, [x, rois, result, STATUS], writes=[2], plan=plan, failure=_POOL_FAILURE)


_POOL_FAILURE = "region {} is of an image that X does not have; check the first column of rois"
