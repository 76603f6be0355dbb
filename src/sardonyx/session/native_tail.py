"""Runs as one call of machine code, and then what little needs Python: maps of scores, labels that are text.

session.run(None, {"x": x})  ─►  the native run of the first program  ─►  ZipMap, Gather of its results
                                   what does not fit ─► the run in Python, which also words the errors
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import SardonyxError
from sardonyx.forks import without_fork
from sardonyx.ir import Value
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.executors.sequential import SequentialExecutor, TailedProgram
from sardonyx.session.native_run import NativeRuns, Run, WrappedRuns

__all__ = ["KnownRuns", "Run", "TailedRuns", "missed", "runs_of"]


class TailedRuns(WrappedRuns):
    """What the native `run` knows of a session whose plan has a tail; made by `of`."""

    def __init__(self, runs: NativeRuns, tailed: TailedProgram, outputs: Sequence[str]) -> None:
        """Know no shapes yet; see `of`."""
        super().__init__(runs, self._with_tail, missed=missed)
        self._tailed = tailed
        self._places = dict(zip(outputs, tailed.results, strict=True))

    @staticmethod
    def of(
        tailed: TailedProgram, inputs: Sequence[Value], defaults: Mapping[str, Array], outputs: Sequence[str]
    ) -> TailedRuns | None:
        """Return what is known of a session, None where its runs need Python; other arguments as of `NativeRuns.of`."""
        names = [f"result {place}" for place in tailed.head.results]
        runs = NativeRuns.of_program(tailed.head, inputs, defaults, names)
        return None if runs is None else TailedRuns(runs, tailed, outputs)

    def _with_tail(self, native: Callable[..., list[OnnxValue] | None], run: Run) -> Run:
        """Return the native run with the tail after it: what no machine code runs must take little."""
        tail, results, places = self._tailed.tail, self._tailed.results, self._places
        count, whole = len(self._tailed.head.results), results if len(set(results)) == len(results) else ()

        def tailed(session: object, names: object, feed: object, options: object) -> list[OnnxValue]:
            wanted = whole if names is None else _wanted(names, places)
            found = native(session, None, feed, options) if wanted else None
            if found is not None and (wanted is whole or max(wanted) >= count):
                try:
                    for call, arguments in tail:
                        found.append(call(*[found[place] for place in arguments]))
                except (SardonyxError, ArithmeticError, LookupError, TypeError, ValueError):
                    found = None
            return run(session, names, feed, options) if found is None else [found[place] for place in wanted]

        return tailed


def _wanted(names: object, places: Mapping[str, int]) -> Sequence[int]:
    """Return the places of what is asked for by a list of names; none where Python must see to it."""
    if type(names) is not list:
        return ()
    try:
        found = [places[name] for name in names]
    except (LookupError, TypeError):
        return ()
    return found if len(set(found)) == len(found) else ()


def missed(*_arguments: object) -> OnnxValue:
    """Return None where only Python can run."""


class KnownRuns(Protocol):
    """What the native `run` knows of a session, as `NativeRuns`, `TailedRuns` and, of one that is profiled, `RecordedRuns` do."""

    @property
    def scratch_bytes(self) -> int:
        """How much memory it keeps for runs."""

    def learn(self, feed: Mapping[str, OnnxValue], run: Run) -> Run | None:
        """Have later runs of the shapes of `feed` run natively where they can."""

    def trim(self) -> int:
        """Forget all shapes; returns the bytes of memory that were kept for them."""

    def close(self) -> None:
        """Have no run use what is known, or learn more."""


def runs_of(
    executor: Executor, inputs: Sequence[Value], defaults: Mapping[str, Array], outputs: Sequence[str], *, is_recorded: bool = False
) -> KnownRuns | None:
    """Return what is known of a session, None where its runs need Python; arguments as of `NativeRuns.of`.

    `is_recorded`: the session is profiled.
    """
    if is_recorded:
        with without_fork():
            from sardonyx.session.profiling.recorded_runs import RecordedRuns  # which few sessions need

        return RecordedRuns.of(executor, inputs, defaults, outputs)
    runs = NativeRuns.of(executor, inputs, defaults, outputs)
    parts = executor.find_tailed() if runs is None and isinstance(executor, SequentialExecutor) else None
    if parts is None or len(set(outputs)) < len(outputs):
        return runs
    if not parts.front:
        return TailedRuns.of(parts, inputs, defaults, outputs)
    with without_fork():
        from sardonyx.session.native_front import FrontedRuns  # which few models need

    return None if defaults else FrontedRuns(parts, inputs, outputs)
