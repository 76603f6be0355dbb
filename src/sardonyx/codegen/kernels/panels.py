"""How the right side of a product is stored, and how a block of one of its panels is had in float32.

    WidePanels      float32, read in place
    NarrowPanels    float16 or bfloat16, widened on the stack: exact, at half the memory traffic

A panel is [K][width] elements in the order in which tiles read them. What is not read in place is decoded a chain of K at a time,
so that the first-level cache has it for all rows of A that are multiplied with it.
"""

from __future__ import annotations

import abc

from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.narrow import from_narrow
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = ["NarrowPanels", "Panels", "WidePanels"]


class Panels(abc.ABC):
    """How the panels of B are stored."""

    element: Type
    """Of the buffer that holds them."""
    is_decoded: bool
    """Whether a block is written anew in float32: blocks are then chains."""

    @abc.abstractmethod
    def block(self, b: Kernel, stored: Pointer, width: int, depth: Register, room: Pointer | None) -> Pointer:
        """Return where `depth` rows of a panel lie in float32, `width` elements apart.

        Args:
            b: the function to write into.
            stored: the address of the first of the rows, as they are stored.
            width: elements of a row.
            depth: how many rows.
            room: memory for that many rows in float32, aligned to 64 bytes; None where `is_decoded` is false.
        """


class WidePanels(Panels):
    """Panels of float32, read in place."""

    element, is_decoded = F32, False

    def block(self, b: Kernel, stored: Pointer, width: int, depth: Register, room: Pointer | None) -> Pointer:
        """Return `stored`."""
        return stored


class NarrowPanels(Panels):
    """Panels of float16 or bfloat16."""

    is_decoded = True

    def __init__(self, element: Type) -> None:
        """Make panels of `element`, F16 or BF16."""
        self.element = element

    def block(self, b: Kernel, stored: Pointer, width: int, depth: Register, room: Pointer | None) -> Pointer:
        """Widen the rows into `room`."""
        if room is None:
            raise ValueError("narrow panels need memory to be widened into")
        lanes = b.lanes(F32)
        with b.loop(0, depth * width, width) as row:
            for j in range(0, width, lanes):
                room.store(from_narrow(b, stored.load(row + j, lanes)), row + j, lanes)
        return room
