"""Find the k largest or smallest elements of rows, in order, and where they are; of equals the first.

The first elements of a row fill a list, which is sorted and cut to k; after that only elements better than the k-th are added. A
short list is kept in order; a longer one is sorted and cut again whenever it is full. So a row in random order costs O(n); one in
adverse order costs O(n * k) where the list is short, and O(n) passes of the sort where it is longer.
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.ranking import INSERTION, Keys, each_lane, key_type, sort_key, write_sort

__all__ = ["TopKParams", "list_room", "work_bytes", "write_top_k"]

X, VALUES, POSITIONS, WORK, LENGTH, COUNT, STATUS = range(7)
"""The buffers of the kernel; COUNT holds k, which LENGTH gets."""


def list_room(k: int) -> int:
    """Return how many elements the list of a long row has room for, which is sorted whenever it is full."""
    return k if k <= INSERTION else 2 * k


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
    """Bytes of the lists of one task."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.rows, self.n, self.inner, self.block, self.together, self.work]

    def tasks(self) -> int:
        """Return how many tasks it is; at least one, since k is checked."""
        return max(-(-self.rows // self.block), 1)


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
        rows, n, inner, block, together, work = (b.param(place) for place in range(6))
        k = b.buffer(COUNT, I64).load()
        valid = (k >= 0) & (k <= n)
        with b.when(~valid):
            b.buffer(STATUS, I64).store(1)
        with b.when(valid & b.begin.eq(0)):
            b.buffer(LENGTH, I64).store(k)
        with b.when(valid & (k > 0)), b.loop(b.begin, b.end) as task:
            room = b.min(n, b.select(k <= INSERTION, k, k * 2))
            lists = Keys(b, b.buffer(WORK, I32).at(task % together * (work // 4)), room, key_type(kind))
            with b.loop(task * block, b.min((task + 1) * block, rows)) as row:
                _select(b, sort, lists, b.buffer(X, kind).at(row * n), (n, k, room), largest=largest)
                _store(b, lists.places, row, kind, (n, k, inner))


def _select(
    b: Kernel, sort: Function, lists: Keys, x: Pointer, sizes: tuple[Register, Register, Register], *, largest: bool
) -> None:
    """Leave the first k elements of a row in the list."""
    n, k, room = sizes
    for i, span in b.vectors(0, room, lists.keys.element):
        lists.keys.store(sort_key(b, x.load(i, span), descending=largest), i, span)
        lists.places.store(b.iota(I32, span.lanes) + i.to(I32).splat(span.lanes), i, span)
    lists.sort(sort, room)
    filled, worst = b.variable(k), b.variable(lists.keys.load(k - 1))
    for i, span in b.vectors(room, n, lists.keys.element):
        keys = sort_key(b, x.load(i, span), descending=largest)
        better = keys < worst.value
        better = better if span.mask is None else better & span.mask
        with each_lane(b, better) as lane:
            _offer(b, sort, lists, (keys if span.lanes == 1 else keys.lane(lane), i + lane), (k, room), filled, worst)
    with b.when(filled.value > k):
        lists.sort(sort, filled.value)


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


def _store(b: Kernel, places: Pointer, row: Register, kind: Type, sizes: tuple[Register, Register, Register]) -> None:
    n, k, inner = sizes
    x, values, positions = b.buffer(X, kind).at(row * n), b.buffer(VALUES, kind), b.buffer(POSITIONS, I64)
    first = row // inner * k * inner + row % inner
    with b.loop(0, k) as j:
        place = places.load(j).to(I64)
        values.store(x.load(place), first + j * inner)
        positions.store(place, first + j * inner)
