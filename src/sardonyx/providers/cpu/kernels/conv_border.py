"""The copy of an input of few channels that has room for its padding, so that taps side by side are one run."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.kernels.border import BorderParams, write_border
from sardonyx.codegen.target import Target
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.kernels.windows import padding_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["FEW_CHANNELS", "BorderKernel", "add_border"]

FEW_CHANNELS = 8
"""Up to so many channels a padded input is copied, so that a run is more than one tap's channels."""


@dataclasses.dataclass(frozen=True, slots=True)
class BorderKernel:
    """A copy with a border of zeros, or of an element that is read."""

    rank: int
    """How many spatial axes."""
    kind: Type = F32
    """The type of the elements."""
    reads_border: bool = False
    """Whether the element of the border is read; it is 0 else."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"border{self.rank}d_{self.kind.kind.value}{self.kind.bits}{'_read' * self.reads_border}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_border(module, symbol, self.rank, self.kind, reads_border=self.reads_border)


def add_border(low: Lowering, data: Buffer, window: Window[int], border: Buffer | None = None) -> Buffer:
    """Return a copy of the input (N, spatial…, C) that holds its padding: zeros, or the element that `border` holds."""
    batch, *spatial, channels = data.shape
    rank = len(spatial)
    same = window.is_same
    room = [
        extent - 1 if same else begin + end
        for extent, begin, end in zip(window.extents, window.pads[:rank], window.pads[rank:], strict=True)
    ]
    held = low.temporary(data.dtype, (batch, *(size + more for size, more in zip(spatial, room, strict=True)), channels))
    symbol = low.kernel(BorderKernel(rank, element_type(data.dtype) or F32, border is not None))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, *results, C = sizes.shape(held.shape)
        lengths = sizes.shape(tuple(spatial))
        begins = [padding_of(window, axis, size)[0] for axis, size in enumerate(lengths)]
        params = BorderParams(images, C, lengths, begins, results)
        return params.words(), params.tasks()

    low.move("Pad", symbol, [data, *([] if border is None else [border]), held], plan)
    return held
