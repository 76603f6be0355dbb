"""Runs as one call of machine code, and then what little needs Python: maps of scores, labels that are text.

session.run(None, {"x": x})  ─►  the native run of the first program  ─►  ZipMap, Gather of its results
                                   what does not fit ─► the run in Python, which also words the errors
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import SardonyxError
from sardonyx.ir import Value
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.executors.sequential import SequentialExecutor, TailedProgram
from sardonyx.session.native_run import NativeRuns

__all__ = ["KnownRuns", "TailedRuns", "runs_of"]

Run: TypeAlias = Callable[..., list[OnnxValue]]
"""A function of a session, output names, a feed and options."""


class TailedRuns:
    """What the native `run` knows of a session whose plan has a tail; made by `of`."""

    def __init__(self, runs: NativeRuns, tailed: TailedProgram, outputs: Sequence[str]) -> None:
        """Know no shapes yet; see `of`."""
        self._runs, self._tailed = runs, tailed
        self._places = dict(zip(outputs, tailed.results, strict=True))
        self._latest: tuple[Run, Run] | None = None

    @staticmethod
    def of(executor: Executor, inputs: Sequence[Value], defaults: Mapping[str, Array], outputs: Sequence[str]) -> TailedRuns | None:
        """Return what is known of a session, None where its runs need Python; arguments as of `NativeRuns.of`."""
        tailed = executor.find_tailed() if isinstance(executor, SequentialExecutor) else None
        if tailed is None or len(set(outputs)) < len(outputs):
            return None
        names = [f"result {place}" for place in tailed.head.results]
        runs = NativeRuns.of_program(tailed.head, inputs, defaults, names)
        return None if runs is None else TailedRuns(runs, tailed, outputs)

    def learn(self, feed: Mapping[str, OnnxValue], run: Callable[..., list[OnnxValue]]) -> Run | None:
        """Have later runs of the shapes of `feed` run natively where they can; as `NativeRuns.learn`."""
        native = self._runs.learn(feed, _missed)
        if native is None:
            return None
        if self._latest is None or self._latest[0] is not native:
            self._latest = native, self._with_tail(native, run)
        return self._latest[1]

    @property
    def scratch_bytes(self) -> int:
        """How much memory the lanes of all shapes work in."""
        return self._runs.scratch_bytes

    def trim(self) -> int:
        """Forget all shapes; returns the bytes of scratch memory that they had."""
        return self._runs.trim()

    def close(self) -> None:
        """Have no run use what is known, or learn more."""
        self._runs.close()

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


def _missed(*_arguments: object) -> None:
    """Return None where only Python can run."""


KnownRuns: TypeAlias = NativeRuns | TailedRuns
"""What the native `run` knows of a session."""


def runs_of(executor: Executor, inputs: Sequence[Value], defaults: Mapping[str, Array], outputs: Sequence[str]) -> KnownRuns | None:
    """Return what is known of a session, None where its runs need Python; arguments as of `NativeRuns.of`."""
    return NativeRuns.of(executor, inputs, defaults, outputs) or TailedRuns.of(executor, inputs, defaults, outputs)
