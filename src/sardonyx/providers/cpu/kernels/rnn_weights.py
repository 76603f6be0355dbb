"""Weights of recurrent networks with the gates of a unit side by side, as the recurrent kernel reads them.

The rows of W and R go gate by gate, H units each. Arranged, each vector of units has one vector of each gate:

    W, R:      i0 i1 i2 … o0 o1 o2 … f0 …           arranged (4 lanes):      i0 i1 i2 i3 o0 o1 o2 o3 f0 …

Units behind the last are zeros. Constants are arranged and packed once, others in the run by a kernel that reads the same places.
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type, of_dtype
from sardonyx.codegen.kernels.pack import aligned_zeros
from sardonyx.codegen.kernels.pack_rows import write_pack_rows
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Tensor, Value
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["Arrangement", "pack_arranged"]

ABSENT = -1
"""The number of a row of zeros."""


@dataclasses.dataclass(frozen=True, slots=True)
class Arrangement:
    """Which rows of a tensor, in which order."""

    directions: int
    """How often all of it comes."""
    rows: int
    """Rows of one direction."""
    groups: tuple[tuple[int, ...], ...]
    """Groups of gates, one after another in a direction: the row at which each gate begins, ABSENT for one of zeros."""
    H: int
    """Units of each gate."""
    padded: int
    """Units with those that are zeros."""
    lanes: int
    """Units that lie together."""
    width: int
    """Columns of a panel; those behind the last row are zeros."""

    @property
    def count(self) -> int:
        """How many rows there are, those of zeros among them, but for the end of the last panel."""
        return self.directions * sum(map(len, self.groups)) * self.padded

    @property
    def panels(self) -> int:
        """How many panels there are."""
        return -(-self.count // self.width)

    def places(self) -> Array:
        """Return the row number for each column of each panel (panels x width), ABSENT for zeros."""
        units = np.arange(self.padded).reshape(-1, 1, self.lanes)
        parts = []
        for d in range(self.directions):
            for group in self.groups:
                starts = np.array(group).reshape(-1, 1)
                there = (units < self.H) & (starts != ABSENT)
                parts.append(np.where(there, units + starts + d * self.rows, ABSENT).ravel())
        places = np.full(self.panels * self.width, ABSENT, np.int64)
        places[: self.count] = np.concatenate(parts)
        return places


def _pack(weights: Tensor, arrangement: Arrangement, K: int) -> Array:
    """Return rows of K elements as panels [N / width][K][width]."""
    dtype = np.float64 if weights.dtype is DataType.DOUBLE else np.float32
    rows = weights.numpy().reshape(-1, K).astype(dtype, copy=False)
    packed = aligned_zeros((arrangement.panels, K, arrangement.width), dtype)
    for panel, places in zip(packed, arrangement.places().reshape(-1, arrangement.width), strict=True):
        there = places != ABSENT
        panel[:, there] = rows[places[there]].T
    return packed


@dataclasses.dataclass(frozen=True, slots=True)
class PackRowsKernel:
    """Chosen rows as the columns of panels."""

    width: int
    """Elements of one row of a panel."""
    element: Type = F32
    """The type of elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"pack_rows_{'f32' if self.element == F32 else self.element.text}_{self.width}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_pack_rows(module, symbol, self.width, self.element)


def pack_arranged(low: Lowering, node: Node, value: Value | None, arrangement: Arrangement, K: int) -> Buffer:
    """Return panels of the rows of an input that is there, which have K elements each; made now for a constant, else in the run."""
    constant = given(value).constant
    if constant is not None:
        return low.packed(_pack, constant, arrangement, K, of=value)
    source = low.of(value)
    packed = low.temporary(source.dtype, (arrangement.panels, K, arrangement.width))
    symbol = low.kernel(PackRowsKernel(arrangement.width, of_dtype(source.dtype.numpy)))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [K], arrangement.panels

    low.move("Pack", symbol, [source, low.constant(arrangement.places()), packed], plan, node)
    return packed
