"""Kernels that decide which step follows: jumps, branches, and the end of a loop's body.

    enter ─► body ... ─► next        `enter` skips to `next`, which goes back to the body for each iteration
              ▲            │
              └────────────┘

The steps of a body are the same in each iteration; what changes is where some of their pointers point to. `next` has a list of
those, as moves, and lets each move on between iterations:

    SLICE    by as many bytes as a slice has: scan inputs and outputs, which are read and written in place
    READ     of a loop-carried value: at first where its initial value is, then where the iteration before wrote
    WRITE    of a loop-carried value: by turns to two buffers, one of which is the node's output

A word behind the status takes the number of steps to skip, as the driver says. When a loop ends, all pointers are as they were.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I64, PTR, U8
from sardonyx.codegen.emit.values import Pointer, Register

__all__ = [
    "FULL",
    "READ",
    "SLICE",
    "TOO_MANY",
    "WRITE",
    "write_branch",
    "write_enter",
    "write_jump",
    "write_next",
]

TOO_MANY, FULL = 1, -1
"""What `next` reports: more iterations than are allowed, or no place left for scan outputs; then nothing has happened."""

STATUS, COUNTER, TRIPS, FIRST_CONDITION, CONDITION, FIRST_CARRIED = range(6)
"""The buffers of `next`: then come three for each loop-carried value: its initial value, the node's output, a spare one."""

DISTANCE, MOVES, MOST, IS_EXACT, CAPACITY, FILLED, CARRIED = range(7)
"""The parameters of `next`: then come the bytes of each loop-carried value, then the moves."""

SLICE, READ, WRITE = range(3)
_WHERE, _ROLE, _NUMBER, _SAVED, _STEP, _NEXT = range(6)
_MOVE_WORDS = 6
"""A move: the place of a pointer, counted from those of `next`; its role; where its first slice begins, or which carried value
it is of; three words of its own, of which a slice's second one is how far it moves."""


def write_jump(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, which skips as many steps as its parameter says."""
    with module.kernel(symbol) as b:
        b.buffer(STATUS, I64).store(b.param(DISTANCE), 1)


def write_branch(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, which skips as many steps as its parameter says where the byte in its second buffer is 0."""
    with module.kernel(symbol) as b:
        b.buffer(STATUS, I64).store(b.select(b.buffer(1, U8).load().eq(0), b.param(DISTANCE), 0), 1)


def write_enter(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, which sets a loop's counter back and skips to its `next`."""
    with module.kernel(symbol) as b:
        b.buffer(COUNTER, I64).store(-1)
        b.buffer(STATUS, I64).store(b.param(DISTANCE), 1)


def write_next(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, which begins an iteration, the first one too, or ends the loop.

    When it has ended, the counter is how many iterations there were, and each loop-carried value is in the node's output.
    """
    with module.kernel(symbol) as b:
        _Next(b).write()


class _Next:
    """The parts of `next`."""

    def __init__(self, b: Kernel) -> None:
        self._b = b
        self._pointers = b.pointer("%buffers", I64)
        self._params = b.pointer("%params", I64)
        self._moves = self._params.at(b.param(CARRIED) + (CARRIED + 1))
        self._trips = b.buffer(TRIPS, I64).load()

    def write(self) -> None:
        b = self._b
        before = b.buffer(COUNTER, I64).load()
        count = before + 1
        is_first = before < 0
        condition = b.variable(b.buffer(FIRST_CONDITION, U8).load())
        with b.when(is_first.eq(False)):
            condition.set(b.buffer(CONDITION, U8).load())
        goes_on = condition.value.ne(0) & (count < self._trips)
        b.branch(goes_on, lambda: self._iterate(count, is_first), lambda: self._end(count, is_first))

    def _iterate(self, count: Register, is_first: Register) -> None:
        b = self._b
        with b.when(count >= b.param(MOST)):
            b.buffer(STATUS, I64).store(TOO_MANY)
            b.give()
        with b.when(is_first):
            self._params.store(0, FILLED)
        filled, capacity = b.variable(b.param(FILLED)), b.param(CAPACITY)
        with b.when((capacity > 0) & filled.value.eq(capacity)):
            self._params.store(-1, FILLED)
            b.buffer(STATUS, I64).store(FULL)
            b.give()
        is_drained = filled.value < 0
        with b.when(is_drained):
            filled.set(b.const(I64, 0))
        self._params.store(filled.value + 1, FILLED)
        b.buffer(COUNTER, I64).store(count)
        b.buffer(STATUS, I64).store(b.param(DISTANCE), 1)
        b.branch(is_first, self._begin_moves, lambda: self._move(is_drained))

    def _begin_moves(self) -> None:
        b = self._b
        with b.loop(0, b.param(MOVES)) as number:
            move, pointer = self._move_at(number)
            pointer_now = pointer.load()
            move.store(pointer_now, _SAVED)
            begin = b.variable(move.load(_NUMBER))
            with b.when(move.load(_ROLE).ne(SLICE)):
                initial, target, first, second = self._places(move.load(_NUMBER))
                swap = second - first
                is_read = move.load(_ROLE).eq(READ)
                move.store(b.select(is_read, first - initial, swap), _STEP)
                move.store(b.select(is_read, swap, -swap), _NEXT)
                begin.set(b.select(is_read, 0, first - target))
            pointer.store(pointer_now + begin.value)

    def _move(self, is_drained: Register) -> None:
        b = self._b
        with b.loop(0, b.param(MOVES)) as number:
            move, pointer = self._move_at(number)
            step = move.load(_STEP)
            is_slice = move.load(_ROLE).eq(SLICE)
            pointer.store(b.select(is_slice & is_drained, move.load(_SAVED), pointer.load() + step))
            with b.when(is_slice.eq(False)):
                following = move.load(_NEXT)
                move.store(following, _STEP)
                move.store(-following, _NEXT)

    def _end(self, count: Register, is_first: Register) -> None:
        """Copy what did not land in the node's outputs; then let the pointers be as they were."""
        b = self._b
        with b.loop(0, b.param(CARRIED)) as number:
            initial, target, first, second = self._places(number)
            last = b.select((count & 1).eq(0), second, first)
            source = b.variable(b.select(is_first, initial, last))
            with b.when(source.value.ne(target)):
                size_bytes = self._params.load(number + (CARRIED + 1))
                b.intrinsic("memcpy", PTR, [target.to(PTR), source.value.to(PTR), size_bytes])
        with b.when(is_first.eq(False)), b.loop(0, b.param(MOVES)) as number:
            move, pointer = self._move_at(number)
            pointer.store(move.load(_SAVED))
        b.buffer(COUNTER, I64).store(count)

    def _places(self, carried: Register) -> tuple[Register, Register, Register, Register]:
        """Return the addresses of a loop-carried value: the initial one, the output, where odd and where even iterations write.

        Where the number of iterations is known, the last one writes to the output.
        """
        b = self._b
        initial, target, spare = (self._pointers.load(carried * 3 + (FIRST_CARRIED + place)) for place in range(3))
        begins_with_spare = b.param(IS_EXACT).ne(0) & (self._trips & 1).eq(0)
        return initial, target, b.select(begins_with_spare, spare, target), b.select(begins_with_spare, target, spare)

    def _move_at(self, number: Register) -> tuple[Pointer, Pointer]:
        move = self._moves.at(number * _MOVE_WORDS)
        return move, self._pointers.at(move.load(_WHERE))
