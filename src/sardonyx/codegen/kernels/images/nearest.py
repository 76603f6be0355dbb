"""Take elements of rows by a table, where neighbours in the result lie near each other: nearest Resize of images, plane by plane.

The elements that one vector of the result takes mostly lie within two vectors of the source, a window, which are loaded as they
lie and permuted by one instruction or two:

    windows     for each vector of the result the first element of its window, or -1 where they lie further apart
    places      for every element of the result its place within the window

Windows are made in the run, of the tables that `resize.write_table` makes, and cost a few operations per element of one row.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (VPERMI2B, VPERMI2W, VPERMI2D, VPERMI2Q, VPERMD).
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I32, I64, U8, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["has_windows", "write_nearest", "write_plane_table", "write_windows"]

_PAIRS = {8: ("qi", "avx512vbmi"), 16: ("hi", "avx512bw"), 32: ("d", "avx512f"), 64: ("q", "avx512f")}
"""Bits of an element -> the type in the name of the permutation of two registers, and the feature that has it."""

_FULL_BYTES, _HALF_BYTES = 64, 32
_GATHERED_BITS = 32


def has_windows(target: Target, bits: int) -> bool:
    """Return whether elements of `bits` bits are permuted within two registers by places that the run computes."""
    if target.emulated:
        return False
    if target.vector_bytes == _FULL_BYTES:
        return target.has_feature(_PAIRS[bits][1])
    return target.vector_bytes == _HALF_BYTES and target.has_feature("avx2") and bits == I32.bits


def write_plane_table(module: Module, symbol: str) -> None:
    """Write the kernel `symbol` of one task: the table of a plane (buffer 2), of those of its rows and columns; int32.

    Parameters: rows and columns of the result, columns of the source.
    """
    with module.kernel(symbol) as b:
        rows, columns, plane = (b.buffer(place, I32) for place in range(3))
        height, width, before = (b.param(place) for place in range(3))
        with b.loop(b.begin, b.end), b.loop(0, height) as i:
            start = rows.load(i) * before.to(I32)
            with b.loop(0, width) as j:
                plane.store(start + columns.load(j), i * width + j)


def write_windows(module: Module, symbol: str, lanes: int) -> None:
    """Write the kernel `symbol` of one task: buffers are a table (int32), its windows (int32) and places (bytes).

    Parameters: the length of what the table reads, and of the table.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        lanes: elements of a vector.
    """
    with module.kernel(symbol) as b:
        table, windows, places = b.buffer(0, I32), b.buffer(1, I32), b.buffer(2, U8)
        size, count = b.param(0), b.param(1)
        fitting = b.max(size - 2 * lanes, 0).to(I32)
        reach = b.const(I32, 2 * lanes) if module.target.has_masks else b.select(size < 2 * lanes, b.const(I32, 0), 2 * lanes)
        with b.loop(b.begin, b.end), b.loop(0, count, lanes) as first:
            last = b.min(first + lanes, count)
            low, high = b.variable(table.load(first)), b.variable(table.load(first))
            with b.loop(first, last) as i:
                low.set(b.min(low.value, table.load(i)))
                high.set(b.max(high.value, table.load(i)))
            begin = b.min(low.value, fitting)
            windows.store(b.select(high.value - begin < reach, begin, -1), first // lanes)
            with b.loop(first, last) as i:
                places.store((table.load(i) - begin).to(U8), i)


def write_nearest(module: Module, symbol: str, element: Type, axes: int) -> None:
    """Write the kernel `symbol`: buffers source, result, the table of each axis, and windows and places of the last axis.

    Args:
        module: where to write, for a target that `has_windows`.
        symbol: the name of the kernel; parameters as `resize.ResizeParams`, where `block` is a multiple of a vector's lanes.
        element: an integer of the size of the elements.
        axes: 1 or 2.
    """
    with module.kernel(symbol) as b:
        block, sizes = b.param(1), [b.param(2 + axis) for axis in range(axes)]
        outputs = [b.param(2 + axes + axis) for axis in range(axes)]
        source, result = b.buffer(0, element), b.buffer(1, element)
        taking = _Taking.of(b, 2 + axes - 1, sizes[-1], element)
        blocks = (outputs[-1] + block - 1) // block
        with b.loop(b.begin, b.end) as task:
            row, first = task // blocks, task % blocks * block
            last = b.min(first + block, outputs[-1])
            start = source.at(_row_of(b, row, sizes, outputs) * sizes[-1])
            target = result.at(row * outputs[-1])
            for j, span in b.vectors(first, last, element):
                taking.write(start, target, j, span, last)


def _row_of(b: Kernel, row: Register, sizes: list[Register], outputs: list[Register]) -> Register:
    """Return which row of the source a row of the result is taken of."""
    if len(sizes) == 1:
        return row
    return row // outputs[0] * sizes[0] + b.buffer(2, I32).load(row % outputs[0]).to(I64)


@dataclass(frozen=True, slots=True)
class _Taking:
    """The tables of the last axis, and how windows of the source are loaded."""

    b: Kernel
    table: Pointer
    windows: Pointer
    places: Pointer
    halves: tuple[Span, Span]

    @staticmethod
    def of(b: Kernel, place: int, size: Register, element: Type) -> _Taking:
        """Return what is known from the length of the source on."""
        lanes = b.lanes(element)
        spans = Span(lanes), Span(lanes)
        if b.target.has_masks:
            counts = b.min(size, lanes), b.min(b.max(size - lanes, 0), lanes)
            spans = Span(lanes, b.tail_mask(counts[0], lanes)), Span(lanes, b.tail_mask(counts[1], lanes))
        return _Taking(b, b.buffer(place, I32), b.buffer(place + 1, I32), b.buffer(place + 2, U8), spans)

    def write(self, start: Pointer, target: Pointer, j: Register, span: Span, last: Register) -> None:
        """Write the elements from `j` on that `span` holds."""
        b, lanes = self.b, self.halves[0].lanes
        if span.lanes == 1:
            self._move(start, target, j)
            return
        begin = self.windows.load(j // lanes)

        def permute() -> None:
            first, second = (start.load(begin.to(I64) + half * lanes, self.halves[half]) for half in range(2))
            target.store(_permuted(b, first, second, self.places.load(j, span)), j, span)

        def gather() -> None:
            if b.target.has_masks and start.element.bits >= _GATHERED_BITS:
                target.store(start.gather(self.table.load(j, span), span.mask), j, span)
                return
            with b.loop(j, b.min(j + lanes, last)) as i:
                self._move(start, target, i)

        b.branch(begin >= 0, permute, gather)

    def _move(self, start: Pointer, target: Pointer, i: Register) -> None:
        target.store(start.load(self.table.load(i).to(I64)), i)


def _permuted(b: Kernel, first: Register, second: Register, places: Register) -> Register:
    """Return the lanes that `places` name, counted through `first` and on through `second`."""
    kind = first.type
    wanted = places.to(kind)
    if b.target.vector_bytes == _FULL_BYTES:
        name = f"llvm.x86.avx512.vpermi2var.{_PAIRS[kind.bits][0]}.512"
        return b.intrinsic(name, kind, [first, wanted, second])
    low, high = (b.intrinsic("llvm.x86.avx2.permd", kind, [half, wanted]) for half in (first, second))
    return b.select(wanted < kind.lanes, low, high)
