"""Find the k largest or smallest elements of rows, in order, and where they are; of equals the first.

The first elements of a row fill a list, which is sorted and cut to k; after that only elements better than the k-th are added. A
short list is kept in order; a longer one is sorted and cut again whenever it is full. So a row in random order costs O(n); one in
adverse order costs O(n * k) where the list is short, and O(n) passes of the sort where it is longer.

A long row is several tasks, one after another, of which each goes on with the list of the one before:

    task        | part 0 of T rows | part 1 of the same | … | part 0 of the next T rows | …       T tasks run at a time
    work        how many elements the list has | keys | places                                    of each of them

Where k is very large the list holds the whole row, and is sorted by the bytes of its keys, the lowest first, a part in each task:

    part        | fill and count, by parts | move by byte 0, by parts | … | move by the last byte | store, by parts
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.ranking import (
    DIGITS,
    INSERTION,
    Keys,
    digit_of,
    each_lane,
    key_type,
    sort_key,
    spread_digits,
    sum_digits,
    write_sort,
)

__all__ = ["SORTED_FROM", "STATE_BYTES", "TopKParams", "list_room", "sorting_passes", "work_bytes", "write_top_k"]

X, VALUES, POSITIONS, WORK, LENGTH, COUNT, STATUS = range(7)
"""The buffers of the kernel; COUNT holds k, which LENGTH gets."""
_FILLED, _SIDE, _STAYS = range(3)
_COUNTS_BYTES = 64
STATE_BYTES = _COUNTS_BYTES + 8 * DIGITS * 4
"""Bytes before the list of a task: how many elements it has; where keys lie, whether they stay there, and counts of their bytes."""
_SHORT_ROW = 32
"""Elements of a row whose first one is found element by element."""
_PART = 1 << 18
"""Elements of a row that a task offers to the list, or moves."""
SORTED_FROM = 1 << 18
"""From which k on whole rows are sorted, part by part."""


def list_room(k: int) -> int:
    """Return how many elements the list of a long row has room for, which is sorted whenever it is full."""
    return k if k <= INSERTION else 2 * k


def sorting_passes(kind: Type) -> int:
    """Return how many passes over a row sort it: one that fills the list, one for each byte of a key, and one that stores."""
    return key_type(kind).size_bytes + 2


def work_bytes(kind: Type) -> int:
    """Return the bytes of a list for each element that it has room for."""
    return 2 * (key_type(kind).size_bytes + 4)


@dataclasses.dataclass(frozen=True, slots=True)
class TopKParams:
    """The integer parameters of `write_top_k`, in their order."""

    rows: int
    """How many rows there are."""
    n: int
    """Elements of one."""
    inner: int
    """How many rows have their results side by side: those of a row lie so many elements apart."""
    block: int
    """Rows in one task."""
    together: int
    """The most tasks that run at a time."""
    work: int
    """Bytes of the state and the lists of one task."""
    passes: int = 1
    """How often a task goes over a part of a row: once, or as `sorting_passes` says where rows may be sorted."""

    @property
    def parts(self) -> int:
        """Of how many parts a row is, each of which is a task; 1 where a task has several rows."""
        return self.passes * max(-(-self.n // _PART), 1)

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.rows, self.n, self.inner, self.block, self.together, self.work, self.parts, self.parts // self.passes]

    def tasks(self) -> int:
        """Return how many tasks it is; at least one, since k is checked."""
        groups = max(-(-self.rows // self.block), 1)
        return groups if self.parts == 1 else -(-groups // self.together) * self.together * self.parts


def write_top_k(module: Module, symbol: str, kind: Type, *, largest: bool) -> None:
    """Write the kernel `symbol`; a k below 0 or beyond the elements of a row is reported in the status word.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        kind: the type of the elements.
        largest: whether the largest or the smallest are wanted; NaN is the last either way.
    """
    sort = write_sort(module, f"{symbol}_sort", key_type(kind))
    with module.kernel(symbol) as b:
        rows, n, inner, block, together, work, parts, pieces = (b.param(place) for place in range(8))
        k = b.buffer(COUNT, I64).load()
        valid = (k >= 0) & (k <= n)
        with b.when(~valid):
            b.buffer(STATUS, I64).store(1)
        with b.when(valid & b.begin.eq(0)):
            b.buffer(LENGTH, I64).store(k)
        is_first = k.eq(1) & (n <= _SHORT_ROW) & parts.eq(1)
        with b.when(valid & is_first), b.loop(b.begin * block, b.min(b.end * block, rows)) as row:
            _store_first(b, row, kind, n, largest=largest)
        with b.when(valid & ~is_first & (k > 0)), b.loop(b.begin, b.end) as task:
            is_sorted = k > SORTED_FROM
            room = b.select(is_sorted, n, b.min(n, b.select(k <= INSERTION, k, k * 2)))
            state = b.buffer(WORK, I64).at(task % together * (work // 8))
            lists = Keys(b, state.at(STATE_BYTES // 8).of(I32), room, key_type(kind))
            group, part = task // (together * parts) * together + task % together, task // together % parts
            with b.loop(group * block, b.min((group + 1) * block, rows)) as row:
                x = b.buffer(X, kind).at(row * n)

                def select(row: Register = row, x: Pointer = x, lists: Keys = lists, state: Pointer = state) -> None:
                    with b.when(part.eq(0)):
                        _begin(b, lists, sort, x, room, largest=largest)
                        state.store(k, _FILLED)
                    share = (n - room + (pieces - 1)) // pieces
                    within = room + part * share, b.min(room + (part + 1) * share, n)
                    _select(b, sort, (lists, state), x, (within, k, room), largest=largest)
                    with b.when(part.eq(pieces - 1)):
                        with b.when(state.load(_FILLED) > k):
                            lists.sort(sort, state.load(_FILLED))
                        _store(b, lists.places, row, kind, (n, k, inner), (b.const(I64, 0), k))

                def sort_all(row: Register = row, x: Pointer = x, lists: Keys = lists, state: Pointer = state) -> None:
                    first = part % pieces * _PART
                    _sort_part(b, lists, state, x, (part // pieces, first, b.min(first + _PART, n)), n, largest=largest)
                    with b.when((part // pieces).eq(sorting_passes(kind) - 1)):
                        places = _side(b, state, lists.places, lists.other_places)
                        _store(b, places, row, kind, (n, k, inner), (first, b.min(first + _PART, k)))

                def select_part(select: Callable[[], None] = select) -> None:
                    b.branch(part < pieces, select, lambda: None)

                b.branch(is_sorted, sort_all, select_part)


def _store_first(b: Kernel, row: Register, kind: Type, n: Register, *, largest: bool) -> None:
    """Find the first element of a short row in order: element by element, with no list."""
    x = b.buffer(X, kind).at(row * n)
    best, found = b.variable(sort_key(b, x.load(0), descending=largest)), b.variable(b.const(I64, 0))
    with b.loop(1, n) as i:
        key = sort_key(b, x.load(i), descending=largest)
        is_better = key < best.value
        best.set(b.select(is_better, key, best.value))
        found.set(b.select(is_better, i, found.value))
    b.buffer(VALUES, kind).store(x.load(found.value), row)
    b.buffer(POSITIONS, I64).store(found.value, row)


def _side(b: Kernel, state: Pointer, one: Pointer, other: Pointer) -> Pointer:
    """Return where keys or places lie now."""
    return Pointer(b, b.select(state.load(_SIDE).ne(0), other, one).ref, one.element)


def _sort_part(
    b: Kernel,
    lists: Keys,
    state: Pointer,
    x: Pointer,
    part: tuple[Register, Register, Register],
    n: Register,
    *,
    largest: bool,
) -> None:
    """Take one part of a row, its number of pass, first and last element, one step further to being sorted."""
    number, first, last = part
    kind, counts = lists.keys.element, state.at(_COUNTS_BYTES // 8).of(I32)
    with b.when(number.eq(0)):
        with b.when(first.eq(0)):
            state.store(0, _SIDE)
            for i, span in b.vectors(0, DIGITS * kind.size_bytes, I32):
                counts.store(0, i, span)
        with b.loop(first, last) as i:
            key = sort_key(b, x.load(i), descending=largest)
            lists.store(key, i, i)
            for byte in range(kind.size_bytes):
                place = digit_of(key, key.like(byte * 8)) + byte * DIGITS
                counts.store(counts.load(place) + 1, place)
    with b.when((number > 0) & (number <= kind.size_bytes)):
        shift, here = ((number - 1) * 8).to(kind), counts.at((number - 1) * DIGITS)
        keys, places = _side(b, state, lists.keys, lists.other_keys), _side(b, state, lists.places, lists.other_places)
        to_keys, to_places = _side(b, state, lists.other_keys, lists.keys), _side(b, state, lists.other_places, lists.places)
        with b.when(first.eq(0)):
            stays = here.load(digit_of(keys.load(0), shift)).to(I64).eq(n)
            state.store(b.select(stays, b.const(I64, 1), 0), _STAYS)
            sum_digits(b, here)
        with b.when(state.load(_STAYS).eq(0)):
            spread_digits(b, here, shift, (keys.at(first), places.at(first)), (to_keys, to_places), last - first)
            with b.when(last.eq(n)):
                state.store(1 - state.load(_SIDE), _SIDE)


def _begin(b: Kernel, lists: Keys, sort: Function, x: Pointer, room: Register, *, largest: bool) -> None:
    """Fill the list with the first elements of a row, and sort it."""
    for i, span in b.vectors(0, room, lists.keys.element):
        lists.keys.store(sort_key(b, x.load(i, span), descending=largest), i, span)
        lists.places.store(b.iota(I32, span.lanes) + i.to(I32).splat(span.lanes), i, span)
    lists.sort(sort, room)


def _select(
    b: Kernel,
    sort: Function,
    state: tuple[Keys, Pointer],
    x: Pointer,
    sizes: tuple[tuple[Register, Register], Register, Register],
    *,
    largest: bool,
) -> None:
    """Have the list hold the first k elements of what it had and of those within a range of a row, and some others."""
    (lists, kept), (within, k, room) = state, sizes
    filled, worst = b.variable(kept.load()), b.variable(lists.keys.load(k - 1))
    for i, span in b.vectors(*within, lists.keys.element):
        keys = sort_key(b, x.load(i, span), descending=largest)
        better = keys < worst.value
        better = better if span.mask is None else better & span.mask
        with each_lane(b, better) as lane:
            _offer(b, sort, lists, (keys if span.lanes == 1 else keys.lane(lane), i + lane), (k, room), filled, worst)
    kept.store(filled.value)


def _offer(
    b: Kernel,
    sort: Function,
    lists: Keys,
    element: tuple[Register, Register],
    sizes: tuple[Register, Register],
    filled: Variable,
    worst: Variable,
) -> None:
    """Add an element that is better than the k-th."""
    key, place = element
    k, room = sizes

    def append() -> None:
        lists.store(key, place, filled.value)
        filled.add(1)
        with b.when(filled.value >= room):
            lists.sort(sort, room)
            filled.set(k)
            worst.set(lists.keys.load(k - 1))

    def insert() -> None:
        lists.insert(key, place, k - 1)
        worst.set(lists.keys.load(k - 1))

    with b.when(key < worst.value):
        b.branch(k <= INSERTION, insert, append)


def _store(
    b: Kernel,
    places: Pointer,
    row: Register,
    kind: Type,
    sizes: tuple[Register, Register, Register],
    within: tuple[Register, Register],
) -> None:
    n, k, inner = sizes
    x, values, positions = b.buffer(X, kind).at(row * n), b.buffer(VALUES, kind), b.buffer(POSITIONS, I64)
    first = row // inner * k * inner + row % inner
    with b.loop(*within) as j:
        place = places.load(j).to(I64)
        values.store(x.load(place), first + j * inner)
        positions.store(place, first + j * inner)
