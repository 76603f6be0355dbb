"""Take parts of an array by index, with every index checked before it is used.

    write_gather             result[o, j, :] = data[o, i0, i1, …, :]     for the tuple (i0, i1, …) = indices[o or 0, j, :]
    write_gather_elements    result[…, j] = data[…, j] with the place on one axis replaced by indices[…, j]

An index counts from the end where it is negative; one outside its axis writes nothing and is reported in the status word as its
place among the indices, plus 1. Elements are moved as integers of their size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "GatherElementsParams",
    "GatherParams",
    "checked_index",
    "row_offset",
    "tuple_offset",
    "write_gather",
    "write_gather_elements",
]

DATA, INDICES, RESULT, STATUS = range(4)
"""The buffers of the kernels."""


@dataclass(frozen=True, slots=True)
class GatherParams:
    """The integer parameters of `write_gather`, in their order."""

    batch: int
    """How many o there are."""
    count: int
    """How many tuples there are for each."""
    inner: int
    """Elements of what one tuple takes."""
    data_stride: int
    """From one o to the next in the data, in elements."""
    index_stride: int
    """From one o to the next among the tuples; 0 where all o read the same ones."""
    axes: tuple[tuple[int, int], ...]
    """For each number of a tuple how long its axis is, and from one place of it to the next, in elements."""
    block: int
    """Tuples in one task."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        head = [self.count, self.inner, self.data_stride, self.index_stride, self.block]
        return [*head, *(word for axis in self.axes for word in axis)]

    def tasks(self) -> int:
        """Return how many tasks it is."""
        return self.batch * -(-self.count // self.block)


def write_gather(module: Module, symbol: str, element: Type, index: Type, depth: int, *, single: bool) -> None:
    """Write the kernel `symbol`.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: an integer of the size of the data's elements.
        index: the type of the indices: I32 or I64.
        depth: how many numbers a tuple has.
        single: whether a tuple takes one element: `inner` is 1.
    """
    with module.kernel(symbol) as b:
        count, inner, data_stride, index_stride, block = (b.param(place) for place in range(5))
        data, indices, result = b.buffer(DATA, element), b.buffer(INDICES, index), b.buffer(RESULT, element)
        blocks = (count + block - 1) // block
        with b.loop(b.begin, b.end) as task:
            outer, first = task // blocks, task % blocks * block
            base, tuples = data.at(outer * data_stride), outer * index_stride
            with b.loop(first, b.min(first + block, count)) as j:
                offset, valid = tuple_offset(b, indices, tuples + j, depth, 5)
                with b.when(valid):
                    _copy(b, result.at((outer * count + j) * inner), base.at(offset), b.const(I64, 1) if single else inner)
                with b.when(~valid):
                    b.buffer(STATUS, I64).store((tuples + j) * depth + 1)


def tuple_offset(b: Kernel, indices: Pointer, place: Register, depth: int, first_param: int) -> tuple[Register, Register]:
    """Return where tuple `place` points to, in elements, and whether all of its numbers lie inside their axes."""
    offset, valid = b.const(I64, 0), b.const(BOOL, True)
    for number in range(depth):
        position, inside = checked_index(b, indices.load(place * depth + number), b.param(first_param + 2 * number))
        offset = offset + position * b.param(first_param + 2 * number + 1)
        valid = valid & inside
    return offset, valid


def checked_index(b: Function, given: Register, length: Register) -> tuple[Register, Register]:
    """Return an index counted from the front, and whether it lies inside an axis of `length`."""
    index = given.to(I64)
    position = b.select(index < 0, index + length, index)
    return position, (position >= 0) & (position < length)


def _copy(b: Function, result: Pointer, source: Pointer, length: Register) -> None:
    lanes = 1 if length.is_constant else None
    for i, span in b.vectors(0, length, source.element, lanes=lanes):
        result.store(source.load(i, span), i, span)


@dataclass(frozen=True, slots=True)
class GatherElementsParams:
    """The integer parameters of `write_gather_elements`, in their order."""

    inner: int
    """The last dimension of the indices."""
    inner_stride: int
    """From one place of the last dimension to the next in the data: 0 if it is the axis that indices count along, else 1."""
    axis: int
    """How long the axis is in the data."""
    axis_stride: int
    """From one place of it to the next, in elements."""
    outer: tuple[tuple[int, int], ...]
    """For each other dimension of the indices its size and its stride in the data, which is 0 for the axis."""
    block: int
    """Rows of the indices in one task."""

    @staticmethod
    def along(axis: int, data: Sequence[int], indices: Sequence[int], grain: int) -> GatherElementsParams:
        """Return the parameters for indices of a shape that count along `axis` of data of another."""
        strides = [math.prod(data[place + 1 :]) for place in range(len(data))]
        around = [0 if place == axis else stride for place, stride in enumerate(strides)]
        outer = tuple(zip(indices[:-1], around[:-1], strict=True))
        return GatherElementsParams(indices[-1], around[-1], data[axis], strides[axis], outer, max(grain // max(indices[-1], 1), 1))

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        head = [self.inner, self.inner_stride, self.axis, self.axis_stride, self._rows, self.block, len(self.outer)]
        return [*head, *(word for dim in self.outer for word in dim)]

    def tasks(self) -> int:
        """Return how many tasks it is; none if there is no index."""
        return -(-self._rows // self.block) if self.inner else 0

    @property
    def _rows(self) -> int:
        return math.prod(size for size, _ in self.outer)


def write_gather_elements(module: Module, symbol: str, element: Type, index: Type) -> None:
    """Write the kernel `symbol` for elements of the size of `element` and indices of type `index`: I32 or I64."""
    with module.kernel(symbol) as b:
        inner, inner_stride, axis, axis_stride, rows, block, _ = (b.param(place) for place in range(7))
        data, indices, result = b.buffer(DATA, element), b.buffer(INDICES, index), b.buffer(RESULT, element)
        with b.loop(b.begin, b.end) as task, b.loop(task * block, b.min((task + 1) * block, rows)) as row:
            base = data.at(row_offset(b, row, 6))
            with b.loop(row * inner, (row + 1) * inner) as j:
                position, valid = checked_index(b, indices.load(j), axis)
                with b.when(valid):
                    result.store(base.load((j - row * inner) * inner_stride + position * axis_stride), j)
                with b.when(~valid):
                    b.buffer(STATUS, I64).store(j + 1)


def row_offset(b: Kernel, row: Register, first_param: int) -> Register:
    """Return where a row begins: parameters are a rank, then for each dimension, outermost first, its size and its stride."""
    rest, offset, rank = b.variable(row), b.variable(b.const(I64, 0)), b.param(first_param)
    with b.loop(0, rank) as step:
        place = (rank - 1 - step) * 2 + (first_param + 1)
        size = b.param_at(place)
        offset.add(rest.value % size * b.param_at(place + 1))
        rest.set(rest.value // size)
    return offset.value
