"""Nearest Resize of rows that lie element after element: by windows, and small planes as one row each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.images.nearest import has_windows, write_nearest, write_plane_table, write_windows
from sardonyx.codegen.kernels.resize import ResizeParams
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import ceil_div, product
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["NearestKernel", "PlaneTableKernel", "WindowsKernel", "resample_nearest", "takes_nearest"]

_TASK_ELEMENTS = 1 << 14
_SMALL_PLANE = 1 << 12
"""Elements up to which the table of a whole plane of the result is made."""
_MOST_ELEMENTS = 1 << 31
_FEW_PLANES = 4
"""Up to so many planes no such table pays."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlaneTableKernel:
    """The table of a plane, of those of its rows and columns."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"resize_plane_table_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_plane_table(module, symbol)


@dataclasses.dataclass(frozen=True, slots=True)
class WindowsKernel:
    """The windows of a table."""

    lanes: int
    """Elements of a vector."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"resize_windows_{self.lanes}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_windows(module, symbol, self.lanes)


@dataclasses.dataclass(frozen=True, slots=True)
class NearestKernel:
    """One or two axes resampled by windows."""

    element: Type
    """The type as which elements are moved."""
    count: int
    """How many axes."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"resize_nearest_{self.element}_{self.count}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_nearest(module, symbol, self.element, self.count)


def takes_nearest(low: Lowering, element: Type, after: Shape) -> bool:
    """Return whether axes with the dimensions `after` behind them are resampled by windows."""
    return product(after) == 1 and has_windows(low.target, element.bits)


def resample_nearest(
    low: Lowering,
    group: Group,
    buffers: tuple[Buffer, Buffer],
    places: Sequence[int],
    tables: Sequence[Buffer],
    element: Type,
) -> None:
    """Add the steps that resample the last axes, `places`, of the first buffer into the second, by a table of each."""
    source, result = buffers
    lengths, outputs = (tuple(buffer.shape[place] for place in places) for buffer in buffers)
    before = source.shape[: places[0]]
    if len(places) == 2 and _is_small(before, lengths, outputs):
        tables = [_plane_table(low, group, tables, lengths, outputs)]
        lengths, outputs = (product(lengths),), (product(outputs),)
    windows = _windows(low, group, tables[-1], lengths[-1], outputs[-1], element)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = ResizeParams(sizes.product(before), sizes.shape(lengths), sizes.shape(outputs), 1, _TASK_ELEMENTS)
        return params.words(), params.tasks()

    symbol = low.kernel(NearestKernel(element, len(outputs)))
    low.step(group, symbol, [source, result, *tables, *windows], writes=[1], plan=plan)


def _is_small(before: Shape, lengths: Shape, outputs: Shape) -> bool:
    planes, known = product(before), [dim for dim in (*lengths, *outputs) if isinstance(dim, int)]
    if len(known) < 4 or (isinstance(planes, int) and planes <= _FEW_PLANES):
        return False
    return math.prod(known[2:]) <= _SMALL_PLANE and math.prod(known[:2]) < _MOST_ELEMENTS


def _plane_table(low: Lowering, group: Group, tables: Sequence[Buffer], lengths: Shape, outputs: Shape) -> Buffer:
    plane = low.temporary(DataType.INT32, (product(outputs),))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [*sizes.shape(outputs), sizes(lengths[1])], 1

    low.step(group, low.kernel(PlaneTableKernel()), [*tables, plane], writes=[2], plan=plan)
    return plane


def _windows(low: Lowering, group: Group, table: Buffer, length: Dim, output: Dim, element: Type) -> tuple[Buffer, Buffer]:
    lanes = low.target.lanes(element.bits)
    windows, places = low.temporary(DataType.INT32, (ceil_div(output, lanes),)), low.temporary(DataType.UINT8, (output,))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes(length), sizes(output)], 1

    low.step(group, low.kernel(WindowsKernel(lanes)), [table, windows, places], writes=[1, 2], plan=plan)
    return windows, places
