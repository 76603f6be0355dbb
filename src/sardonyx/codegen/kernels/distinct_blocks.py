"""Find the distinct elements of a large array block by block; ONNX Unique. `distinct` has the same for a few, and for slices.

Elements are sorted by the bytes of their keys, the lowest first. Each byte is a pass, which every block takes by itself once all
blocks have counted how often each value occurs among theirs; so keys stay in order, however many threads there are:

    keys            keys and places of a block, and how many keys have each value of each byte
    shared          which bytes are the same in all keys, and on which side keys lie before each pass; a single task
    recount         the same counts for one byte, where a pass before has moved keys
    spread          moves the keys of a block to where they belong by one byte; nothing where all share it
    groups          how many groups of equal keys begin in a block
    numbers         the number of its group for each place; first place, and first rank, of each group
    firsts          how many places of a block are the first of their group        these two only for results
    renumber        numbers groups in the order of their first places              in the order of first places
    results         values, first places and counts of a block of groups
    inverse         the new number of its group for each place

    work     keys | other keys | places | other places        as `ranking.Keys`
    state    side before each pass | whether its byte is shared | whether keys were moved before it       0 or 1 each

NaN differs from itself, and comes last.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.ranking import DIGITS, Keys, count_digits, digit_of, key_type, sort_key, spread_digits

__all__ = [
    "MOST_BLOCKS",
    "STATE_WORDS",
    "STEPS",
    "block_of",
    "digits_of",
    "write_step",
]

X, VALUES, FIRSTS, INVERSE, COUNTS, LENGTH, WORK, TABLE, STATE, TOTALS = range(10)
"""The buffers of all kernels: five of the caller, how many groups there are; then workspace: keys, counts of digits, state, counts.

TABLE has DIGITS numbers of 32 bits for each byte of a key and each block, STATE the words of the passes, TOTALS one of each block.
"""
STATE_WORDS = 48
"""Words of STATE."""
_SHARED, _MOVED = 16, 32
MOST_BLOCKS = 256
"""How many blocks there are at most."""
_BLOCK = 1 << 16


def block_of(count: int) -> int:
    """Return how many of `count` elements a block has."""
    return max(_BLOCK, -(-count // MOST_BLOCKS))


def digits_of(kind: Type) -> int:
    """Return how many bytes the keys of elements of type `kind` have, each of which is a pass."""
    return key_type(kind).size_bytes


class _Blocks:
    """The elements, and the keys of them."""

    def __init__(self, b: Kernel, kind: Type) -> None:
        self.b, self.kind, self.key = b, kind, key_type(kind)
        self.count, self.block, self.blocks, self.number = (b.param(place) for place in range(4))
        self.keys = Keys(b, b.buffer(WORK, I32), self.count, self.key)
        self.state, self.totals = b.buffer(STATE, I64), b.buffer(TOTALS, I64)

    def range_of(self, task: Register) -> tuple[Register, Register]:
        """Return the first element of a block, and the first behind it."""
        first = task * self.block
        return first, self.b.min(first + self.block, self.count)

    def table(self, block: Register, number: Register) -> Pointer:
        """Return the counts of byte `number` among the keys of a block."""
        return self.b.buffer(TABLE, I32).at((block * self.key.size_bytes + number) * DIGITS)

    def side(self, number: Register | int, *, other: bool = False) -> tuple[Pointer, Pointer]:
        """Return keys and places as they lie before pass `number`, or the memory beside them."""
        b, keys = self.b, self.keys
        first, second = (keys.keys, keys.places), (keys.other_keys, keys.other_places)
        is_second = self.state.load(number).ne(1 if other else 0)
        chosen = [Pointer(b, b.select(is_second, two, one).ref, one.element) for one, two in zip(first, second, strict=True)]
        return chosen[0], chosen[1]

    @property
    def shift(self) -> Register:
        """The bits below the byte of this pass."""
        return (self.number * 8).to(self.key)

    def before(self, task: Register) -> Register:
        """Return the sum of the totals of the blocks before."""
        return _sum(self.b, self.totals, task)


def _sum(b: Kernel, totals: Pointer, length: Register) -> Register:
    total = b.variable(b.const(I64, 0))
    with b.loop(0, length) as i:
        total.add(totals.load(i))
    return total.value


def _write_keys(b: Kernel, blocks: _Blocks) -> None:
    x, keys = b.buffer(X, blocks.kind), blocks.keys
    with b.loop(b.begin, b.end) as task:
        first, last = blocks.range_of(task)
        for i, span in b.vectors(first, last, blocks.key):
            keys.keys.store(sort_key(b, x.load(i, span)), i, span)
            keys.places.store(b.iota(I32, span.lanes) + i.to(I32).splat(span.lanes), i, span)
        count_digits(b, blocks.table(task, b.const(I64, 0)), keys.keys.at(first), last - first)


def _write_shared(b: Kernel, blocks: _Blocks) -> None:
    state, side, moved = blocks.state, b.variable(b.const(I64, 0)), b.variable(b.const(I64, 0))
    with b.loop(b.begin, b.end), b.loop(0, blocks.key.size_bytes) as number:
        digit, total = digit_of(blocks.keys.keys.load(0), (number * 8).to(blocks.key)), b.variable(b.const(I64, 0))
        with b.loop(0, blocks.blocks) as block:
            total.add(blocks.table(block, number).load(digit).to(I64))
        shared = total.value.eq(blocks.count)
        state.store(side.value, number)
        state.store(shared.to(I64), number + _SHARED)
        state.store(moved.value, number + _MOVED)
        side.set(b.select(shared, side.value, 1 - side.value))
        moved.set(b.select(shared, moved.value, 1))
        state.store(side.value, number + 1)


def _write_recount(b: Kernel, blocks: _Blocks) -> None:
    state, number = blocks.state, blocks.number
    with b.when(state.load(number + _MOVED).ne(0) & state.load(number + _SHARED).eq(0)):
        keys, _ = blocks.side(number)
        with b.loop(b.begin, b.end) as task:
            table, (first, last) = blocks.table(task, number), blocks.range_of(task)
            for i, span in b.vectors(0, DIGITS, I32):
                table.store(0, i, span)
            with b.loop(first, last) as i:
                place = digit_of(keys.load(i), blocks.shift)
                table.store(table.load(place) + 1, place)


def _write_spread(b: Kernel, blocks: _Blocks) -> None:
    """Move the keys of each block; the counts stay as they are, since later tasks read those of all blocks."""
    number = blocks.number
    source, target = blocks.side(number), blocks.side(number, other=True)
    starts, sums = b.stack(I32, DIGITS), b.stack(I32, DIGITS)
    with b.when(blocks.state.load(number + _SHARED).eq(0)), b.loop(b.begin, b.end) as task:
        first, last = blocks.range_of(task)
        _find_starts(b, blocks, task, starts, sums)
        here = source[0].at(first), source[1].at(first)
        spread_digits(b, starts, blocks.shift, here, target, last - first)


def _find_starts(b: Kernel, blocks: _Blocks, task: Register, starts: Pointer, sums: Pointer) -> None:
    """Store where the first key of a block with each value belongs: behind lower values, and behind the same of blocks before."""
    for i, span in b.vectors(0, DIGITS, I32):
        starts.store(0, i, span)
        sums.store(0, i, span)
    with b.loop(0, blocks.blocks) as block:
        table = blocks.table(block, blocks.number)
        with b.when(block < task):
            _add(b, starts, table)
        _add(b, sums, table)
    total = b.variable(b.const(I32, 0))
    with b.loop(0, DIGITS) as digit:
        starts.store(starts.load(digit) + total.value, digit)
        total.add(sums.load(digit))


def _add(b: Kernel, totals: Pointer, counts: Pointer) -> None:
    for i, span in b.vectors(0, DIGITS, I32):
        totals.store(totals.load(i, span) + counts.load(i, span), i, span)


def _begins(b: Kernel, blocks: _Blocks, keys: Pointer, i: Register) -> Register:
    """Return whether a group begins with the key at i."""
    key, before = keys.load(i), keys.load(b.max(i - 1, 0))
    differs = key.ne(before)
    return i.eq(0) | (differs | key.eq(-1) if blocks.kind.is_float else differs)


def _write_groups(b: Kernel, blocks: _Blocks) -> None:
    keys, _ = blocks.side(digits_of(blocks.kind))
    with b.loop(b.begin, b.end) as task:
        found, (first, last) = b.variable(b.const(I64, 0)), blocks.range_of(task)
        with b.loop(first, last) as i:
            found.add(_begins(b, blocks, keys, i).to(I64))
        blocks.totals.store(found.value, task)


def _write_numbers(b: Kernel, blocks: _Blocks) -> None:
    keys, places = blocks.side(digits_of(blocks.kind))
    firsts, ranks = _beside(blocks)
    inverse = b.buffer(INVERSE, I64)
    with b.when(b.begin.eq(0)):
        b.buffer(LENGTH, I64).store(blocks.before(blocks.blocks))
    with b.loop(b.begin, b.end) as task:
        number, (first, last) = b.variable(blocks.before(task) - 1), blocks.range_of(task)
        with b.loop(first, last) as i:
            place = places.load(i)
            with b.when(_begins(b, blocks, keys, i)):
                number.add(1)
                firsts.store(place, number.value)
                ranks.store(i.to(I32), number.value)
            inverse.store(number.value, place.to(I64))


def _beside(blocks: _Blocks) -> tuple[Pointer, Pointer]:
    """Return the memory beside the sorted keys: first places and first ranks of groups."""
    keys, places = blocks.side(digits_of(blocks.kind), other=True)
    return keys.of(I32), places


def _is_first(blocks: _Blocks, firsts: Pointer, i: Register) -> tuple[Register, Register]:
    """Return the group of place i, and whether the place is its first."""
    group = blocks.b.buffer(INVERSE, I64).load(i)
    return group, firsts.load(group).eq(i.to(I32))


def _write_firsts(b: Kernel, blocks: _Blocks) -> None:
    firsts, _ = _beside(blocks)
    with b.loop(b.begin, b.end) as task:
        found, (first, last) = b.variable(b.const(I64, 0)), blocks.range_of(task)
        with b.loop(first, last) as i:
            found.add(_is_first(blocks, firsts, i)[1].to(I64))
        blocks.totals.store(found.value, task)


def _write_renumber(b: Kernel, blocks: _Blocks) -> None:
    """Store the numbers where the places were, which nothing needs any more."""
    firsts, _ = _beside(blocks)
    _, numbers = blocks.side(digits_of(blocks.kind))
    with b.loop(b.begin, b.end) as task:
        number, (first, last) = b.variable(blocks.before(task)), blocks.range_of(task)
        with b.loop(first, last) as i:
            group, is_first = _is_first(blocks, firsts, i)
            with b.when(is_first):
                numbers.store(number.value.to(I32), group)
                number.add(1)


def _write_results(b: Kernel, blocks: _Blocks, *, is_sorted: bool) -> None:
    firsts, ranks = _beside(blocks)
    _, numbers = blocks.side(digits_of(blocks.kind))
    x, values = b.buffer(X, blocks.kind), b.buffer(VALUES, blocks.kind)
    total = b.buffer(LENGTH, I64).load()
    with b.loop(b.begin, b.end) as task:
        first, last = blocks.range_of(task)
        with b.loop(first, b.min(last, total)) as group:
            number = group if is_sorted else numbers.load(group).to(I64)
            place, is_last = firsts.load(group).to(I64), (group + 1).eq(total)
            end = b.select(is_last, blocks.count, ranks.load(b.select(is_last, group, group + 1)).to(I64))
            b.buffer(COUNTS, I64).store(end - ranks.load(group).to(I64), number)
            b.buffer(FIRSTS, I64).store(place, number)
            values.store(x.load(place), number)


def _write_inverse(b: Kernel, blocks: _Blocks) -> None:
    _, numbers = blocks.side(digits_of(blocks.kind))
    inverse = b.buffer(INVERSE, I64)
    with b.loop(b.begin, b.end) as task:
        first, last = blocks.range_of(task)
        with b.loop(first, last) as i:
            inverse.store(numbers.load(inverse.load(i)).to(I64), i)


_WRITERS = {
    "keys": _write_keys,
    "shared": _write_shared,
    "recount": _write_recount,
    "spread": _write_spread,
    "groups": _write_groups,
    "numbers": _write_numbers,
    "firsts": _write_firsts,
    "renumber": _write_renumber,
    "results": lambda b, blocks: _write_results(b, blocks, is_sorted=True),
    "renumbered_results": lambda b, blocks: _write_results(b, blocks, is_sorted=False),
    "inverse": _write_inverse,
}
STEPS = tuple(_WRITERS)
"""What `write_step` writes; where groups are numbered anew, their results are a kernel of its own."""


def write_step(module: Module, symbol: str, kind: Type, name: str) -> None:
    """Write the kernel `symbol` of one of STEPS; a task is a block. Parameters: elements, those of a block, blocks, the pass."""
    with module.kernel(symbol) as b:
        _WRITERS[name](b, _Blocks(b, kind))
