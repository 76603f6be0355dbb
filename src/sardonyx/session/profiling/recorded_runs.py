"""Runs as one call of machine code in a session that is profiled: the call notes the times of its steps.

    clock │ the native run, with stamps between its steps │ clock │ what the call noted is kept
          │ and functions in Python before and after it, each between two clocks

A run takes what it takes without a profile, and the stamps; keeping them is no part of it. One run at a time is made so; those
beside it run in Python.
"""

from __future__ import annotations

import collections
import threading
import time

from sardonyx.codegen.run.python_words import LANES
from sardonyx.dtypes import OnnxValue
from sardonyx.forks import new_lock
from sardonyx.native_program import NativeCall, TimedCall
from sardonyx.provider import Bound, Program, TimedRun
from sardonyx.session.native.run import SHAPES_KEPT, KnownRuns, Run, WrappedRuns
from sardonyx.session.profiling.profiler import NO_THREAD, TimedProgram

__all__ = ["RecordedRuns", "TimedCalls"]


class RecordedRuns(WrappedRuns):
    """What the native `run` knows of a session that is profiled."""

    def __init__(self, runs: KnownRuns, calls: TimedCalls) -> None:
        """Record the runs of which `runs` knows, whose native calls are those of `calls`."""
        super().__init__(runs, calls.recording)


class TimedCalls:
    """Makes the native calls of a program, and reads what they noted."""

    def __init__(self, program: TimedProgram) -> None:
        """Have made none yet."""
        self._program, self._profiler = program, program.profiler
        self._made: collections.deque[tuple[TimedCall, Bound]] = collections.deque(maxlen=LANES * SHAPES_KEPT)
        self._lock = new_lock()
        self._is_recording = False

    @staticmethod
    def of(program: Program) -> TimedCalls | None:
        """Return the calls of a program of a session that is profiled; None for one whose runs are not recorded."""
        return TimedCalls(program) if isinstance(program, TimedProgram) else None

    def native_call(self, bound: Bound) -> NativeCall | None:
        """Return a new call for what is bound; None where only Python will do."""
        timed = self._program.timed_call(bound)
        if timed is None:
            return None
        self._made.appendleft((timed, bound))
        return timed.call

    def recording(self, native: Run, run: Run) -> Run:
        """Return a native run that is recorded, where no other one is under way; `run` runs in Python."""
        lock, clock, profiler = self._lock, time.perf_counter_ns, self._profiler

        def recorded(session: object, names: object, feed: object, options: object) -> list[OnnxValue]:
            if self._is_recording or not lock.acquire(blocking=False):  # in another thread, or where a handler interrupted this one
                return run(session, names, feed, options)
            try:
                self._is_recording, profiler.plain_thread, profiler.went_to_python = True, threading.get_ident(), False
                start_ns = clock()
                results = native(session, names, feed, options)
                self._record(start_ns, clock())
            finally:
                self._is_recording, profiler.plain_thread = False, NO_THREAD
                profiler.plain_runs.clear()
                lock.release()
            return results

        return recorded

    def _record(self, start_ns: int, end_ns: int) -> None:
        """Keep the times of the call that ran since `start_ns`; none did where Python ran, which records itself."""
        for timed, bound in self._made:
            times = timed.take_times()
            if times is not None and int(times[0, 0]) * 1_000_000_000 + int(times[0, 1]) >= start_ns:
                if not self._profiler.went_to_python:
                    run = TimedRun((), times, timed.symbols)
                    self._profiler.record_whole(self._program, start_ns, end_ns, run, bound.scratch_bytes)
                return
