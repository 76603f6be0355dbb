"""Epilogues that end in a rounding to 8 bits: vectors are narrowed and stored together where the processor has packs for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.saturate import can_pack, pack_saturated
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.kernels.conv import ConvEpilogue
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["Narrowing", "narrow_together"]


@dataclass(frozen=True, slots=True)
class Narrowing:
    """An epilogue that ends in a rounding to 8 bits."""

    whole: ConvEpilogue
    """What is stored."""
    before: ConvEpilogue
    """The float32 numbers that are rounded for it."""
    zero: Callable[[Kernel], Register]
    """What is added after the rounding: one int32."""
    kind: Type
    """The integers of 8 bits that are stored."""

    def __call__(self, b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
        """Return what to store at a place."""
        return self.whole(b, sums, place, column, span)


def narrow_together(
    b: Kernel, epilogue: ConvEpilogue | None, sums: Sequence[Register], positions: Sequence[tuple[Register, Register, Span]]
) -> Register | None:
    """Return what an epilogue makes of some vectors of sums as one vector, each after the other, or None where that is no gain.

    Args:
        b: the kernel to write into.
        epilogue: the epilogue.
        sums: two to four vectors.
        positions: for each its place, its column and its span; of three, the last quarter of the result is undefined.
    """
    if not isinstance(epilogue, Narrowing) or not can_pack(b.target, len(sums), sums[0].type.lanes):
        return None
    parts = [epilogue.before(b, total, *position) for total, position in zip(sums, positions, strict=True)]
    return pack_saturated(b, parts, epilogue.zero(b), epilogue.kind)
