"""Find the distinct slices along an axis, or the distinct elements; ONNX Unique.

Slices are sorted by their elements, the last one first, so that equal ones are neighbours, each group in the order of its places.
NaN differs from itself, and comes last.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.ranking import Keys, key_type, sort_key, write_sort

__all__ = ["work_bytes", "write_distinct"]

X, VALUES, FIRSTS, INVERSE, COUNTS, LENGTH, WORK = range(7)
"""The buffers of the kernel."""


def work_bytes(kind: Type) -> int:
    """Return the bytes of workspace for each slice."""
    return 2 * (key_type(kind).size_bytes + 4) + 8


class _Slices:
    """The slices x[:, s, :]."""

    def __init__(self, b: Kernel, kind: Type) -> None:
        self.b, self.x = b, b.buffer(X, kind)
        self.outer, self.count, self.inner = (b.param(place) for place in range(3))

    def offset(self, number: Register) -> Register:
        """Return where element `number` of slice 0 is."""
        return number // self.inner * self.count * self.inner + number % self.inner

    def element(self, offset: Register, of: Register) -> Register:
        """Return the element of slice `of` that is at `offset` in slice 0."""
        return self.x.load(offset + of * self.inner)


def write_distinct(module: Module, symbol: str, kind: Type, *, single: bool, is_sorted: bool) -> None:
    """Write the kernel `symbol`; parameters: outer, slices, inner, of x (outer, slices, inner).

    Tasks, one after another: a sort by each element of a slice, the last one first, then what follows from the order.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        kind: the type of the elements.
        single: whether a slice is one element.
        is_sorted: whether the result is ascending, or in the order of the first places.
    """
    key = key_type(kind)
    sort = write_sort(module, f"{symbol}_sort", key)
    with module.kernel(symbol) as b:
        slices = _Slices(b, kind)
        keys, sorts = Keys(b, b.buffer(WORK, I32), slices.count, key), slices.outer * slices.inner
        groups, numbers = (keys.other_places.at(slices.count * part) for part in (1, 2))
        with b.loop(b.begin, b.end) as task:
            with b.when(task.eq(0)):
                for i, span in b.vectors(0, slices.count, I32):
                    keys.places.store(b.iota(I32, span.lanes) + i.to(I32).splat(span.lanes), i, span)
            with b.when(task < sorts):
                _order(b, slices, keys, sort, slices.offset(sorts - 1 - task))
            with b.when(task.eq(sorts)):
                total = _group(b, slices, keys, groups, single=single)
                b.buffer(LENGTH, I64).store(total)
                if not is_sorted:
                    _renumber(b, slices.count, groups, numbers)
                    _regroup(b, slices.count, groups, total)
                _copy_slices(b, slices, b.buffer(VALUES, kind), total)


def _order(b: Kernel, slices: _Slices, keys: Keys, sort: Function, offset: Register) -> None:
    """Sort the places of slices by the elements at an offset."""
    with b.loop(0, slices.count) as i:
        keys.keys.store(sort_key(b, slices.element(offset, keys.places.load(i).to(I64))), i)
    keys.sort(sort, slices.count)


def _group(b: Kernel, slices: _Slices, keys: Keys, groups: Pointer, *, single: bool) -> Register:
    """Number the groups of equal slices; store first place and count of each, and the group of each slice. Returns how many."""
    firsts, counts, inverse = b.buffer(FIRSTS, I64), b.buffer(COUNTS, I64), b.buffer(INVERSE, I64)
    total = b.variable(b.const(I64, 0))
    with b.loop(0, slices.count) as i:
        place = keys.places.load(i).to(I64)
        differs = b.variable(i.eq(0))
        with b.when(i > 0):
            if single:
                differs.set(~_same(b, keys.keys.load(i), keys.keys.load(i - 1), slices.x.element))
            else:
                differs.set(_differ(b, slices, place, keys.places.load(i - 1).to(I64)))
        with b.when(differs.value):
            firsts.store(place, total.value)
            counts.store(0, total.value)
            total.add(1)
        group = total.value - 1
        counts.store(counts.load(group) + 1, group)
        inverse.store(group, place)
        groups.store(group.to(I32), place)
    return total.value


def _same(b: Kernel, left: Register, right: Register, kind: Type) -> Register:
    """Return whether elements with these keys are equal; NaN never is."""
    return left.eq(right) & left.ne(-1) if kind.is_float else left.eq(right)


def _differ(b: Kernel, slices: _Slices, left: Register, right: Register) -> Register:
    number, found = b.variable(b.const(I64, 0)), b.variable(b.const(BOOL, False))
    with b.repeat() as again:
        again.stop_if((number.value >= slices.outer * slices.inner) | found.value)
        offset = slices.offset(number.value)
        one, other = (sort_key(b, slices.element(offset, of)) for of in (left, right))
        found.set(~_same(b, one, other, slices.x.element))
        number.add(1)
    return found.value


def _renumber(b: Kernel, count: Register, groups: Pointer, numbers: Pointer) -> None:
    """Number the groups in the order of their first places: `numbers` has the new number of each."""
    firsts, inverse, following = b.buffer(FIRSTS, I64), b.buffer(INVERSE, I64), b.variable(b.const(I32, 0))
    with b.loop(0, count) as i:
        group = groups.load(i).to(I64)
        with b.when(firsts.load(group).eq(i)):
            numbers.store(following.value, group)
            following.add(1)
        inverse.store(numbers.load(group).to(I64), i)


def _regroup(b: Kernel, count: Register, groups: Pointer, total: Register) -> None:
    """Store first places and counts anew, by the new numbers, which the inverse has."""
    firsts, counts, inverse = b.buffer(FIRSTS, I64), b.buffer(COUNTS, I64), b.buffer(INVERSE, I64)
    with b.loop(0, total) as group:
        counts.store(0, group)
    following = b.variable(b.const(I64, 0))
    with b.loop(0, count) as i:
        group = inverse.load(i)
        with b.when(group.eq(following.value)):
            firsts.store(i, group)
            following.add(1)
        counts.store(counts.load(group) + 1, group)


def _copy_slices(b: Kernel, slices: _Slices, values: Pointer, total: Register) -> None:
    firsts = b.buffer(FIRSTS, I64)
    with b.loop(0, slices.outer) as outer, b.loop(0, total) as group:
        source = slices.x.at((outer * slices.count + firsts.load(group)) * slices.inner)
        target = values.at((outer * total + group) * slices.inner)
        with b.loop(0, slices.inner) as i:
            target.store(source.load(i), i)
