"""Keys and values of former tokens, in memory that decoders read and write in place of copies of it.

growing:  past (B, H, P, D) ─► run ─► present (B, H, P + T, D), in the buffer that held the past before last; two buffers in turn
shared:   one buffer (B, H, C, D) is past and present; a run writes rows P … P + T - 1 of it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.generate.bound_step import BoundStep
from sardonyx.generate.signature import CacheSlot

__all__ = ["Cache", "GrowingCache", "SharedCache", "empty_past", "take_rows"]

_LEAST_SLACK = 64
"""Tokens for which a buffer has space at least when it is made anew."""


class Cache(Protocol):
    """The caches of the rows of a batch."""

    rows: int
    """How many sequences."""

    def feeds(self) -> Mapping[str, Array]:
        """Return name of an input -> the past, for the next run."""
        ...

    def targets(self, count: int) -> Mapping[str, Array]:
        """Return name of an output -> the array that the next run, of `count` tokens a row, fills."""
        ...

    def advance(self, count: int) -> None:
        """Take what a run of `count` tokens a row has filled as the past."""
        ...

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; a row may be kept more than once."""
        ...


def empty_past(slot: CacheSlot, rows: int, length: int = 0) -> Array:
    """Return a past of `rows` sequences of `length` tokens of zeros.

    Raises:
        InvalidArgument: the model does not say one of the other sizes.
    """
    return np.zeros(_shape(slot, rows, length), slot.dtype.numpy)


def take_rows(array: Array, axis: int, rows: Sequence[int]) -> Array:
    """Return a dense copy of the rows of an array along its batch axis."""
    return np.ascontiguousarray(np.take(array, np.asarray(rows, np.int64), axis=axis))


class GrowingCache:
    """Caches whose past and present are two arrays: each run copies the past once.

    Every slot has two buffers, each of which holds dense arrays of any length up to its capacity. What a run reads lies in one,
    what it writes in the other. A buffer that is too small is replaced by one with slack, so that n steps allocate O(log n) times.
    Buffers are the object's own, and are freed with it.
    """

    def __init__(self, slots: Sequence[CacheSlot], rows: int) -> None:
        """Hold no token of `rows` sequences."""
        self.rows, self.length = rows, 0
        self._slots = tuple(slots)
        self._pasts = {slot.key: empty_past(slot, rows) for slot in self._slots}
        self._spare: dict[str, Array] = {}
        self._next: dict[str, Array] = {}

    def feeds(self) -> Mapping[str, Array]:
        """Return name of an input -> the past, a dense array."""
        return {slot.past: self._pasts[slot.key] for slot in self._slots}

    def targets(self, count: int) -> Mapping[str, Array]:
        """Return name of an output -> a dense array with space for `count` more tokens."""
        self._next = {slot.key: self._target(slot, self.length + count) for slot in self._slots}
        return {slot.present: self._next[slot.key] for slot in self._slots}

    def _target(self, slot: CacheSlot, length: int) -> Array:
        shape = _shape(slot, self.rows, length)
        size, spare = int(np.prod(shape)), self._spare.get(slot.key)
        if spare is None or spare.size < size:
            roomy = _shape(slot, self.rows, length + max(_LEAST_SLACK, length // 2))
            spare = self._spare[slot.key] = np.empty(int(np.prod(roomy)), slot.dtype.numpy)
        return spare[:size].reshape(shape)

    def advance(self, count: int) -> None:
        """Make the filled arrays the past, and the buffers of the past the spare ones."""
        for slot in self._slots:
            past, self._pasts[slot.key] = self._pasts[slot.key], self._next[slot.key]
            self._spare[slot.key] = _flat(past)
        self._next, self.length = {}, self.length + count

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; nothing is copied where they are what it has."""
        if list(rows) == list(range(self.rows)):
            return
        chosen, self.rows = list(rows), len(rows)
        for slot in self._slots:
            past = self._pasts[slot.key]
            target = self._target(slot, self.length)
            np.take(past, np.asarray(chosen, np.int64), axis=slot.batch_axis, out=target, mode="clip")
            self._pasts[slot.key], self._spare[slot.key] = target, _flat(past)

    def cut(self, start: int, stop: int) -> None:
        """Keep the columns `start` … `stop` - 1 of every row."""
        if (start, stop) == (0, self.length):
            return
        for slot in self._slots:
            index = [slice(None)] * len(slot.shape)
            index[slot.length_axis] = slice(start, stop)
            self._pasts[slot.key] = np.ascontiguousarray(self._pasts[slot.key][tuple(index)])
        self.length = stop - start

    def copy(self) -> GrowingCache:
        """Return the same in memory of its own."""
        made = GrowingCache(self._slots, self.rows)
        made.length, made._pasts = self.length, {key: past.copy() for key, past in self._pasts.items()}
        return made

    def joined(self, others: Sequence[GrowingCache]) -> GrowingCache:
        """Return the rows of this and the others, shorter ones with zeros in front."""
        parts = [self, *others]
        made = GrowingCache(self._slots, sum(part.rows for part in parts))
        made.length = max(part.length for part in parts)
        for slot in self._slots:
            whole, row = empty_past(slot, made.rows, made.length), 0
            for part in parts:
                index = [slice(None)] * whole.ndim
                index[slot.batch_axis] = slice(row, row + part.rows)
                index[slot.length_axis] = slice(made.length - part.length, made.length)
                whole[tuple(index)] = part._pasts[slot.key]
                row += part.rows
            made._pasts[slot.key] = whole
        return made

    @property
    def size_bytes(self) -> int:
        """How many bytes its past takes, without spare buffers."""
        return sum(past.nbytes for past in self._pasts.values())


class SharedCache:
    """Caches in buffers that are past and present at once, for operators that count the tokens of each row (GroupQueryAttention).

    Row b holds `lengths[b]` tokens from the front; what lies behind is never read. Buffers grow by half when they are full.
    """

    def __init__(self, slots: Sequence[CacheSlot], rows: int, capacity: int = 0) -> None:
        """Hold no token of `rows` sequences, with space for `capacity` tokens each."""
        self.rows, self.capacity = rows, capacity
        self._held = rows
        self.lengths = np.zeros(rows, np.int64)
        self._slots = tuple(slots)
        self._arrays = {slot.key: empty_past(slot, rows, capacity) for slot in self._slots}
        self.step: BoundStep | None = None
        """A binding of its buffers for steps of one token a row; None until there is one for these buffers."""

    def reserve(self, length: int) -> bool:
        """Make space for `length` tokens a row; returns whether the buffers are other ones now."""
        if length <= self.capacity:
            return False
        made = SharedCache(self._slots, self.rows, length + max(_LEAST_SLACK, length // 2))
        made._fill(0, self)
        self.capacity, self._held, self._arrays, self.step = made.capacity, made._held, made._arrays, None
        return True

    def feeds(self) -> Mapping[str, Array]:
        """Return name of an input -> the buffer."""
        return {slot.past: self._arrays[slot.key] for slot in self._slots}

    def targets(self, count: int) -> Mapping[str, Array]:
        """Return name of an output -> the buffer."""
        self.reserve(int(self.lengths.max(initial=0)) + count)
        return {slot.present: self._arrays[slot.key] for slot in self._slots}

    def advance(self, count: int) -> None:
        """Count what a run has appended to each row."""
        self.lengths += count

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order.

        Nothing is copied where they are what it has, and only rows that change places where most are kept in their order; buffers
        stay where as many are kept.
        """
        if list(rows) == list(range(self.rows)):
            return
        if len(rows) < self.rows and self._held < 2 * len(rows) and list(rows) == sorted(set(rows)) and self._close_up(rows):
            return
        used, stays = int(self.lengths.max(initial=0)), len(rows) == self.rows
        for slot in self._slots:
            index = [slice(None)] * len(slot.shape)
            index[slot.length_axis] = slice(0, used)
            kept = take_rows(self._arrays[slot.key][tuple(index)], slot.batch_axis, rows)
            if not stays:
                self._arrays[slot.key] = empty_past(slot, len(rows), self.capacity)
            self._arrays[slot.key][tuple(index)] = kept
        self.lengths, self.rows = self.lengths[np.asarray(rows, np.int64)], len(rows)
        self._held, self.step = (self._held, self.step) if stays else (len(rows), None)

    def _close_up(self, rows: Sequence[int]) -> bool:
        """Move rows to the front of their buffers, the first parts of which are then the caches; whether the rows are in front."""
        if any(slot.batch_axis for slot in self._slots):
            return False
        used = int(self.lengths.max(initial=0))
        for slot in self._slots:
            array, index = self._arrays[slot.key], [slice(None)] * len(slot.shape)
            index[slot.length_axis] = slice(0, used)
            inner = tuple(index[1:])
            for place, row in enumerate(rows):
                if place != row:
                    array[place][inner] = array[row][inner]
            self._arrays[slot.key] = array[: len(rows)]
        self.lengths, self.rows, self.step = self.lengths[np.asarray(rows, np.int64)], len(rows), None
        return True

    def cut(self, length: int) -> None:
        """Keep the first `length` tokens of every row, as far as it has them."""
        np.minimum(self.lengths, length, out=self.lengths)

    def copy(self) -> SharedCache:
        """Return the same in memory of its own."""
        return self.joined([])

    def joined(self, others: Sequence[SharedCache]) -> SharedCache:
        """Return the rows of this and the others."""
        parts = [self, *others]
        longest = max(int(part.lengths.max(initial=0)) for part in parts)
        capacity = max(longest, min(max(part.capacity for part in parts), longest + _LEAST_SLACK))
        made, row = SharedCache(self._slots, sum(part.rows for part in parts), capacity), 0
        for part in parts:
            made._fill(row, part)
            row += part.rows
        return made

    def _fill(self, row: int, part: SharedCache) -> None:
        """Copy the rows of another cache to the rows from `row` on."""
        used = int(part.lengths.max(initial=0))
        for slot in self._slots:
            target, source = [slice(None)] * len(slot.shape), [slice(None)] * len(slot.shape)
            target[slot.batch_axis] = slice(row, row + part.rows)
            target[slot.length_axis] = source[slot.length_axis] = slice(0, used)
            self._arrays[slot.key][tuple(target)] = part._arrays[slot.key][tuple(source)]
        self.lengths[row : row + part.rows] = part.lengths

    @property
    def size_bytes(self) -> int:
        """How many bytes its buffers take, those of rows that left included."""
        return sum(array.nbytes for array in self._arrays.values()) // max(self.rows, 1) * self._held


def _flat(past: Array) -> Array:
    """Return the buffer that a dense array lies in, from its first element on."""
    base = past.base
    return base if isinstance(base, np.ndarray) and base.ndim == 1 and base.dtype == past.dtype else past.reshape(-1)


def _shape(slot: CacheSlot, rows: int, length: int) -> tuple[int, ...]:
    sizes = list(slot.shape)
    sizes[slot.batch_axis], sizes[slot.length_axis] = rows, length
    if any(size is None for size in sizes):
        raise InvalidArgument(
            f"the model leaves sizes of the cache {slot.past or slot.present!r} open besides batch and length: "
            f"{list(slot.shape)}; write them "
            "into the model (onnxruntime.tools.make_dynamic_shape_fixed), or override the dimensions by name in the "
            "session's options"
        )
    return tuple(size for size in sizes if size is not None)
