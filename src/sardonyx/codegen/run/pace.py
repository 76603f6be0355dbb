"""When a run comes back to Python: because it is to end, or to hear signals, which Python handles in its main thread only.

A run that somebody may end has a watch, three words: the addresses of two flags, and a time. It pauses as soon as it finds a flag
set, or when the time has come. A run in the main thread also pauses every PERIOD_NS, so that signal handlers run; whether it then
goes on is the caller's matter. All others are never interrupted, and read no clock.

The state of one call lies in words of its own:

    watch (address or 0) | period | when to pause (0: not known yet) | last time | seconds, nanoseconds (of the system's clock)
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import I32, I64
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.run.step_table import PACE_WORDS
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["FIRST_CHUNK", "NEVER", "Pace", "begin_pace", "next_chunk", "write_pace"]

NEVER = (1 << 63) - 1
"""The time of a watch without a time."""

PERIOD_NS = 30_000_000
"""How long signals may have to wait, besides one chunk."""

FIRST_CHUNK = 2
"""How many tasks run before the clock is looked at for the first time."""

_LONG_CHUNK_NS = 8_000_000
_WATCH, _PERIOD, _SOON, _LAST, _SECONDS, _NANOSECONDS = range(PACE_WORDS)
_BILLION = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Pace:
    """The functions of a module that keep the pace of a run; the address of its state is their first argument."""

    look: Function
    """(state) -> nanoseconds since the last look, 0 at the first one of a call, -1 if the run is to pause."""


def write_pace(module: Module) -> Pace:
    """Write the functions into `module`."""
    with module.function("pace_look", Address(I64, unique=False), returns=I64) as b:
        state = b.addresses[0]
        wake = b.variable(b.const(I64, NEVER))
        with b.when(state.load(_WATCH).ne(0)):
            watch = state.load_pointer(_WATCH, I64)
            flags = [b.atomic_load(watch.load_pointer(place, I64)) for place in range(2)]
            with b.when((flags[0] | flags[1]).ne(0)):
                b.give(b.const(I64, -1))
            wake.set(watch.load(2))
        now, last, soon = _read_clock(b, state), state.load(_LAST), state.load(_SOON)
        state.store(now, _LAST)
        with b.when(soon.eq(0)):
            state.store(b.min(now + state.load(_PERIOD), wake.value), _SOON)
            b.give(b.select(now >= wake.value, b.const(I64, -1), 0))
        b.give(b.select(now >= soon, b.const(I64, -1), now - last))
    return Pace(b)


def begin_pace(b: Function, state: Pointer, watch: Register, in_main_thread: Register) -> Register:
    """Write the beginning of a call; return whether it may be interrupted, so that it has to look."""
    state.store(watch, _WATCH)
    state.store(b.select(in_main_thread, b.const(I64, PERIOD_NS), NEVER >> 1), _PERIOD)
    state.store(0, _SOON)
    return in_main_thread | watch.ne(0)


def next_chunk(b: Function, chunk: Register, spent_ns: Register) -> Register:
    """Return how many tasks to do next: twice as many while the clock does not notice them, half where they took long."""
    half = b.max(chunk >> 1, b.const(I64, 1))
    return b.select(spent_ns.eq(0), chunk << 1, b.select(spent_ns > _LONG_CHUNK_NS, half, chunk))


def _read_clock(b: Function, state: Pointer) -> Register:
    """Return a monotonic time in nanoseconds that may be some milliseconds late: a clock that is read without a system call."""
    clock = 6 if "linux" in b.target.triple else 9  # CLOCK_MONOTONIC_COARSE, CLOCK_UPTIME_RAW_APPROX of macOS
    time = state.at(_SECONDS)
    b.intrinsic("clock_gettime", I32, [b.const(I32, clock), time])
    return time.load(0) * _BILLION + time.load(1)
