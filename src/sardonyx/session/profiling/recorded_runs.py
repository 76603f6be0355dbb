"""Runs as one call of machine code in a session that is profiled: the call notes the times of its steps.

    clock │ the native run, with stamps between its steps │ clock │ what the call noted is kept

A run takes what it takes without a profile, and the stamps; keeping them is no part of it. One run at a time is made so; those
beside it run in Python.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Mapping, Sequence

from sardonyx.codegen.run.python_words import LANES
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.forks import new_lock
from sardonyx.ir import Value
from sardonyx.native_program import NativeCall, TimedCall
from sardonyx.provider import Bound, TimedRun
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.executors.sequential import SequentialExecutor
from sardonyx.session.native_run import SHAPES_KEPT, NativeRuns, Run, WrappedRuns
from sardonyx.session.profiling.profiler import TimedProgram

__all__ = ["RecordedRuns"]


class RecordedRuns(WrappedRuns):
    """What the native `run` knows of a session that is profiled; made by `of`."""

    def __init__(self, runs: NativeRuns, calls: _TimedCalls) -> None:
        """Know no shapes yet; see `of`."""
        super().__init__(runs, calls.recording)

    @staticmethod
    def of(
        executor: Executor, inputs: Sequence[Value], defaults: Mapping[str, Array], outputs: Sequence[str]
    ) -> RecordedRuns | None:
        """Return what is known of a session, None where its runs need Python; arguments as of `NativeRuns.of`."""
        only = executor.only if isinstance(executor, SequentialExecutor) else None
        if only is None or not isinstance(only.step.program, TimedProgram):
            return None
        calls = _TimedCalls(only.step.program)
        runs = NativeRuns.of_program(only, inputs, defaults, outputs, calls)
        return None if runs is None else RecordedRuns(runs, calls)


class _TimedCalls:
    """Makes the calls of a program for lanes, and reads what they noted."""

    def __init__(self, program: TimedProgram) -> None:
        self._program = program
        self._made: collections.deque[tuple[TimedCall, Bound]] = collections.deque(maxlen=LANES * SHAPES_KEPT)
        self._lock = new_lock()
        self._is_recording = False

    def native_call(self, bound: Bound) -> NativeCall | None:
        """Return a new call for what is bound; None where only Python will do."""
        timed = self._program.timed_call(bound)
        if timed is None:
            return None
        self._made.appendleft((timed, bound))
        return timed.call

    def recording(self, native: Run, run: Run) -> Run:
        """Return a native run that is recorded, where no other one is under way; `run` runs in Python."""
        lock, clock = self._lock, time.perf_counter_ns

        def recorded(session: object, names: object, feed: object, options: object) -> list[OnnxValue]:
            if self._is_recording or not lock.acquire(blocking=False):  # in another thread, or where a handler interrupted this one
                return run(session, names, feed, options)
            try:
                self._is_recording = True
                start_ns = clock()
                results = native(session, names, feed, options)
                self._record(start_ns, clock())
            finally:
                self._is_recording = False
                lock.release()
            return results

        return recorded

    def _record(self, start_ns: int, end_ns: int) -> None:
        """Keep the times of the call that ran since `start_ns`; none did where Python ran, which records itself."""
        for timed, bound in self._made:
            times = timed.take_times()
            if times is not None and int(times[0, 0]) * 1_000_000_000 + int(times[0, 1]) >= start_ns:
                self._program.record_native(start_ns, end_ns, TimedRun((), times, timed.symbols), bound.scratch_bytes)
                return
