"""Runs as one call of machine code, and then what little needs Python: maps of scores, labels that are text.

session.run(None, {"x": x})  ─►  the native run of the first program  ─►  ZipMap, Gather of its results
                                   what does not fit ─► the run in Python, which also words the errors
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import SardonyxError
from sardonyx.forks import without_fork
from sardonyx.ir import Value
from sardonyx.native_program import NativeProgram
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.executors.sequential import OnlyProgram, SequentialExecutor, TailedProgram
from sardonyx.session.native.run import KnownRuns, NativeRuns, Run, WrappedRuns
from sardonyx.session.stepwise_run import StepwiseRuns

if TYPE_CHECKING:
    from sardonyx.session.native.front import FrontedRuns

__all__ = ["Run", "TailedRuns", "missed", "runs_of"]


class TailedRuns(WrappedRuns):
    """What the native `run` knows of a session whose plan has a tail; made by `of`."""

    def __init__(self, runs: NativeRuns, tailed: TailedProgram, outputs: Sequence[str]) -> None:
        """Know no shapes yet; see `of`."""
        super().__init__(runs, self._with_tail, missed=missed)
        self._tailed = tailed
        self._places = dict(zip(outputs, tailed.results, strict=True))

    @staticmethod
    def of(
        tailed: TailedProgram,
        inputs: Sequence[Value],
        defaults: Mapping[str, Array],
        outputs: Sequence[str],
        calls: NativeProgram | None = None,
    ) -> TailedRuns | None:
        """Return what is known of a session, None where its runs need Python.

        Other arguments as of `NativeRuns.of`; `calls` as `program` of `NativeRuns.of_program`.
        """
        names = [f"result {place}" for place in tailed.head.results]
        runs = NativeRuns.of_program(tailed.head, inputs, defaults, names, calls)
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


def runs_of(
    executor: Executor,
    inputs: Sequence[Value],
    defaults: Mapping[str, Array],
    outputs: Sequence[str],
    label: str,
    *,
    is_recorded: bool = False,
) -> KnownRuns | None:
    """Return what is known of a session, None where its runs need Python; arguments as of `NativeRuns.of`.

    `label` is what messages call the model, and `is_recorded` says that the session is profiled.
    """
    if not isinstance(executor, SequentialExecutor):
        return None
    only = executor.only
    parts = executor.find_tailed() if only is None and len(set(outputs)) == len(outputs) else None
    head = only if parts is None else parts.head
    if not is_recorded:
        found = None if head is None else _known_runs(head, parts, inputs, defaults, outputs, None)
        return StepwiseRuns.of(executor, inputs, defaults, outputs, label) if found is None else found
    if head is None:
        return None
    with without_fork():
        from sardonyx.session.profiling.recorded_runs import RecordedRuns, TimedCalls  # which few sessions need

    calls = TimedCalls.of(head.step.program)
    runs = None if calls is None else _known_runs(head, parts, inputs, defaults, outputs, calls)
    return None if calls is None or runs is None else RecordedRuns(runs, calls)


def _known_runs(
    head: OnlyProgram,
    parts: TailedProgram | None,
    inputs: Sequence[Value],
    defaults: Mapping[str, Array],
    outputs: Sequence[str],
    calls: NativeProgram | None,
) -> NativeRuns | TailedRuns | FrontedRuns | None:
    """Return what is known of a session whose plan is `head`, or `parts` with it.

    Other arguments as of `NativeRuns.of`; `calls` as `program` of `NativeRuns.of_program`.
    """
    if parts is None:
        return NativeRuns.of_program(head, inputs, defaults, outputs, calls)
    if not parts.front:
        return TailedRuns.of(parts, inputs, defaults, outputs, calls)
    with without_fork():
        from sardonyx.session.native.front import FrontedRuns  # which few models need

    return None if defaults else FrontedRuns(parts, inputs, outputs, calls)
