"""Put elements in order: keys whose order as unsigned integers is the one wanted, and a stable sort of keys with their places.

    x ─ sort_key ─► unsigned integer of 32 or 64 bits       equal where the elements are equal, +0 and -0 too; NaN is the last

Up to INSERTION keys are sorted by insertion, more by their bytes, the least significant first; bytes that are the same in all keys
are passed over. What is sorted by several tasks takes the same steps, each by itself: `count_digits`, `spread_digits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.narrow import from_narrow
from sardonyx.codegen.emit.types import BOOL, I32, I64, U32, U64, Kind, Type
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = [
    "DIGITS",
    "INSERTION",
    "MOST_KEYS",
    "Keys",
    "count_digits",
    "digit_of",
    "each_lane",
    "key_type",
    "sort_key",
    "spread_digits",
    "sum_digits",
    "write_sort",
]

INSERTION = 40
"""Up to so many keys insertion is the faster way."""
MOST_KEYS = (1 << 31) - 1
"""Places are numbered in 32 bits."""
DIGITS = 256
"""Values of a byte."""


def key_type(kind: Type) -> Type:
    """Return the type of the keys of elements of type `kind`."""
    return U64 if kind.bits == 64 else U32


def sort_key(b: Function, x: Register, *, descending: bool = False) -> Register:
    """Return the key of an element, or of each lane: ascending keys are ascending elements, or descending ones; NaN comes last."""
    kind = x.type.scalar
    if kind.is_narrow:
        x = from_narrow(b, x)
    key = _float_key(b, x) if x.type.is_float else _integer_key(x)
    key = ~key if descending else key
    return b.select(b.is_nan(x), -1, key) if x.type.is_float else key


def _integer_key(x: Register) -> Register:
    to = key_type(x.type.scalar)
    if x.type.kind is not Kind.SIGNED:
        return x.to(to)
    wide = x.to(I64 if to == U64 else I32).bits_as(to)
    return wide ^ (1 << (to.bits - 1))


def _float_key(b: Function, x: Register) -> Register:
    to = key_type(x.type.scalar)
    bits = b.select(x.eq(0.0), x.like(0.0), x).bits_as(to)
    top = 1 << (to.bits - 1)
    return b.select((bits & top).ne(0), ~bits, bits | top)


@contextmanager
def each_lane(b: Function, mask: Register) -> Iterator[Register]:
    """Run the block for the number of each lane of a mask that holds, in order."""
    lanes = mask.type.lanes
    if lanes == 1:
        with b.when(mask):
            yield b.const(I64, 0)
        return
    bits = b.value(f"bitcast {mask.type} {mask.ref} to i{lanes}", Type(f"i{lanes}", lanes, Kind.UNSIGNED))
    rest = b.variable(b.value(f"zext i{lanes} {bits.ref} to i64", U64))
    with b.repeat() as again:
        again.stop_if(rest.value.eq(0))
        yield b.intrinsic("llvm.cttz.i64", U64, [rest.value, b.const(BOOL, True)]).to(I64)
        rest.set(rest.value & (rest.value - 1))


class Keys:
    """Keys with their places, in memory for the same number of each, and as much again to sort in."""

    def __init__(self, b: Function, memory: Pointer, room: Register, key: Type) -> None:
        """Lay out `room` of each from `memory` on: 2 * room * (bytes of a key + 4) bytes, aligned as keys are."""
        size = key.size_bytes
        whole = memory.of(U32)
        self.keys = whole.of(key)
        self.other_keys = self.keys.at(room)
        self.places = whole.at(room * (2 * size // 4)).of(I32)
        self.other_places = self.places.at(room)
        self._b = b

    def store(self, key: Register, place: Register, at: Register) -> None:
        """Put a key and its place at `at`."""
        self.keys.store(key, at)
        self.places.store(place.to(I32), at)

    def insert(self, key: Register, place: Register, last: Register) -> None:
        """Put a key into the ascending list, behind those that equal it; what was at `last` is lost."""
        _insert(self._b, self.keys, self.places, (key, place.to(I32)), last)

    def sort(self, sort: Function, count: Register) -> None:
        """Sort the first `count`, ascending and stably, by what `write_sort` wrote."""
        self._b.call(sort, self.keys, self.places, self.other_keys, self.other_places, count)


def write_sort(module: Module, symbol: str, key: Type) -> Function:
    """Write and return the function that `Keys.sort` calls."""
    words = Address(key), Address(I32), Address(key), Address(I32)
    with module.function(symbol, *words, I64) as f:
        keys, places, other_keys, other_places = f.addresses
        (count,) = f.arguments
        f.branch(
            count <= INSERTION,
            lambda: _sort_by_insertion(f, keys, places, count),
            lambda: _by_digits(f, (keys, places), (other_keys, other_places), count),
        )
    return f


def _sort_by_insertion(f: Function, keys: Pointer, places: Pointer, count: Register) -> None:
    with f.loop(1, count) as i:
        _insert(f, keys, places, (keys.load(i), places.load(i)), i)


def _insert(f: Function, keys: Pointer, places: Pointer, element: tuple[Register, Register], last: Register) -> None:
    key, place = element
    hole = f.variable(last)
    with f.repeat() as again:
        again.stop_if(hole.value <= 0)
        before = hole.value - 1
        again.stop_if(keys.load(before) <= key)
        keys.store(keys.load(before), hole.value)
        places.store(places.load(before), hole.value)
        hole.set(before)
    keys.store(key, hole.value)
    places.store(place, hole.value)


def _by_digits(f: Function, first: tuple[Pointer, Pointer], second: tuple[Pointer, Pointer], count: Register) -> None:
    kind = first[0].element
    counts, is_second = f.stack(I32, DIGITS * kind.size_bytes), f.variable(f.const(BOOL, False))
    count_digits(f, counts, first[0], count)
    with f.loop(0, kind.size_bytes) as number:
        shift, here = (number * 8).to(kind), counts.at(number * DIGITS)
        with f.when(here.load(digit_of(first[0].load(0), shift)).to(I64).ne(count)):
            keys, places = (_either(f, is_second.value, b, a) for a, b in zip(first, second, strict=True))
            to_keys, to_places = (_either(f, is_second.value, a, b) for a, b in zip(first, second, strict=True))
            sum_digits(f, here)
            spread_digits(f, here, shift, (keys, places), (to_keys, to_places), count)
            is_second.set(~is_second.value)
    with f.when(is_second.value):
        for target, source in zip(first, second, strict=True):
            for i, span in f.vectors(0, count, source.element):
                target.store(source.load(i, span), i, span)


def count_digits(f: Function, counts: Pointer, keys: Pointer, count: Register) -> None:
    """Store for each byte of a key, the lowest first, how many of `count` keys have each of its values: 256 numbers of 32 bits.

    All bytes are counted in one pass: neighbours that share one do not wait for each other alone.
    """
    kind = keys.element
    for i, span in f.vectors(0, DIGITS * kind.size_bytes, I32):
        counts.store(0, i, span)
    with f.loop(0, count) as i:
        key = keys.load(i)
        for number in range(kind.size_bytes):
            place = digit_of(key, key.like(number * 8)) + number * DIGITS
            counts.store(counts.load(place) + 1, place)


def spread_digits(
    f: Function,
    places_of: Pointer,
    shift: Register,
    source: tuple[Pointer, Pointer],
    target: tuple[Pointer, Pointer],
    count: Register,
) -> None:
    """Move keys and their places to where the next key with such a digit belongs, which `places_of` has for each."""
    with f.loop(0, count) as i:
        key = source[0].load(i)
        digit = digit_of(key, shift)
        place = places_of.load(digit)
        places_of.store(place + 1, digit)
        target[0].store(key, place)
        target[1].store(source[1].load(i), place)


def sum_digits(f: Function, counts: Pointer) -> None:
    """Put in place of each count the sum of those before."""
    total = f.variable(f.const(I32, 0))
    with f.loop(0, DIGITS) as digit:
        here = counts.load(digit)
        counts.store(total.value, digit)
        total.add(here)


def digit_of(key: Register, shift: Register) -> Register:
    """Return a byte of a key."""
    return ((key >> shift) & (DIGITS - 1)).to(I64)


def _either(f: Function, condition: Register, yes: Pointer, no: Pointer) -> Pointer:
    return Pointer(f, f.select(condition, yes, no).ref, yes.element)
