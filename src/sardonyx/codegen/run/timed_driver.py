"""The driver that reads the clock between steps: a second function, so that runs which nobody times pay nothing.

times: seconds, nanoseconds, now, 0 | seconds, nanoseconds, spent, count | …      four words before the first step, four after each

What a step has spent, in nanoseconds, is summed over the times that it ran, which are counted: a loop runs its steps often. `now`
is the clock's last time, in nanoseconds.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.emit.values import Operand, Register
from sardonyx.codegen.run.driver import Call
from sardonyx.codegen.run.driver_code import write_timed_driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import DONE, StepTable
from sardonyx.codegen.run.thread_pool import ThreadPool, shared_pool
from sardonyx.codegen.target import Target
from sardonyx.disk_cache import Cache
from sardonyx.dtypes import Array

__all__ = ["TimedDriver", "TimedTable", "can_time"]

_OF_PAIRS = ("driver_run_pair", "driver_resume_pair")
"""The functions of a pair of addresses."""
_CLOCKS = {"linux": 1, "darwin": 8}
"""System -> the clock that `time.perf_counter_ns` reads: CLOCK_MONOTONIC (linux/time.h), CLOCK_UPTIME_RAW (macOS' time.h)."""
_SECONDS, _NANOSECONDS, _SPENT, _COUNT = range(4)
_WORDS = 4
_BILLION = 1_000_000_000


def can_time(target: Target) -> bool:
    """Return whether machine code can read the clock on the system of `target`."""
    return _clock_of(target) is not None


def _clock_of(target: Target) -> int | None:
    return next((number for name, number in _CLOCKS.items() if name in target.triple), None)


class TimedDriver:
    """The compiled driver that reads the clock; it shares tasks with the same pool as the other."""

    def __init__(self, target: Target, *, cache: Cache | None = None, pool: ThreadPool | None = None) -> None:
        """Compile it for `target`, on whose system `can_time` is true."""
        clock = _clock_of(target)
        if clock is None:
            raise ValueError(f"no clock is known that machine code could read on {target.triple}; ask can_time first")
        module = Module(target)
        write_timed_driver(module, functools.partial(_write_stamp, clock))
        self._engine = Engine(target, cache=cache)
        self._engine.add(module)
        self._pool = pool or shared_pool()
        self._pool_address = self._pool.address
        signature = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        run, resume = (signature(self._engine.address(f"driver_{name}_timed")) for name in ("run", "resume"))
        self._run: Callable[[ctypes.c_void_p, int, int], int] = run
        self._resume: Callable[[ctypes.c_void_p, int, int], int] = resume

    @staticmethod
    def new_times(steps: int) -> Array:
        """Return an array for the times of a run of so many steps: int64 (steps + 1, 2), a part of what the driver writes."""
        return np.zeros((steps + 1, _WORDS), np.int64)[:, :_SPENT]

    @staticmethod
    def in_line(times: Array) -> Array:
        """Return the times of a run as if steps had run one after another, each for as long as it took in all.

        The result is int64 (steps + 1, 3): when the first step began and when each ended, in seconds and nanoseconds, then how
        often it ran, 0 in the first row.

        Args:
            times: of `new_times`, after the run.
        """
        words = times.base
        if words is None:
            raise ValueError("the times are no part of what the driver writes; give those of new_times")
        first = words[0, _SECONDS] * _BILLION + words[0, _NANOSECONDS]
        ends = first + np.concatenate([[0], np.cumsum(words[1:, _SPENT])])
        return np.stack([ends // _BILLION, ends % _BILLION, words[:, _COUNT]], axis=1)

    def native(self, table: StepTable, steps: int, *, in_line: bool) -> TimedTable:
        """Return how machine code runs a table of so many steps, as `Driver.native` does.

        Args:
            table: the steps.
            steps: how many there are.
            in_line: whether steps may run often, so that times are shown as by `in_line`.
        """
        self._attach(table)
        return TimedTable(table, self.new_times(steps), tuple(map(self._engine.address, _OF_PAIRS)), in_line=in_line)

    def run(self, table: StepTable, times_address: int) -> int:
        """Run a table once, as `prepare` says."""
        return self.prepare(table, times_address)()

    def prepare(self, table: StepTable, times_address: int) -> Call:
        """Return what runs all steps of a table, as `Driver.prepare` does.

        Args:
            table: the steps.
            times_address: where an array of `new_times` is, which takes seconds and nanoseconds of `time.perf_counter_ns`:
                before the first step, then after each.
        """
        self._attach(table)

        def call(watch: int = 0, paused: Callable[[], object] | None = None, asked: Callable[[], object] | None = None) -> int:
            result = self._run(table.pointer, times_address, watch)
            while result != DONE and table.attend(result, paused, asked):
                result = self._resume(table.pointer, times_address, watch)
            return result

        return call

    def _attach(self, table: StepTable) -> None:
        """Say which pool a table shares tasks with, and start the workers that it needs."""
        table.set_pool(self._pool_address)
        if self._pool.workers < table.threads - 1:
            self._pool.grow(table.threads - 1, self._engine)


class TimedTable:
    """A table with memory for the times of its steps, for one run at a time."""

    def __init__(self, table: StepTable, times: Array, functions: Sequence[int], *, in_line: bool) -> None:
        """Make the pair of addresses; arguments as of `TimedDriver.native`, and the functions of pairs."""
        self._table, self._times, self._in_line = table, times, in_line
        self.bases_address = table.bases_address
        """As of the table."""
        self.run, self.resume = functions
        """The addresses of what runs it and of what goes on after a pause, as of `Driver.native`."""
        self._pair = (ctypes.c_int64 * 2)(table.address, times.ctypes.data)
        self.address = ctypes.addressof(self._pair)
        """The argument of both."""

    def take_times(self) -> Array | None:
        """Return the times of the last run, as the array of `new_times` has them, and forget them; None where there was none."""
        times, words = self._times, self._times.base
        if words is None or not (words[0, _SECONDS] or words[0, _NANOSECONDS]):
            return None
        found = TimedDriver.in_line(times) if self._in_line else times.copy()
        words.fill(0)
        return found


def _write_stamp(clock: int, b: Function, number: Operand) -> None:
    times = b.addresses[1]
    place = times.at(number * _WORDS)
    b.line(f"call i32 @clock_gettime(i32 {clock}, ptr {place.ref})")
    b.declarations["clock_gettime"] = f"declare {I32} @clock_gettime(i32, ptr)"
    now = place.load(_SECONDS) * _BILLION + place.load(_NANOSECONDS)
    if isinstance(number, Register):
        place.store(place.load(_SPENT) + (now - times.load(_SPENT)), _SPENT)
        place.store(place.load(_COUNT) + 1, _COUNT)
    times.store(now, _SPENT)
