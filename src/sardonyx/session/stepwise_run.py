"""Runs of plans that are several programs, without the checks of a whole run in Python where a feed is like an earlier one.

session.run(None, feed)  ─►  arrays of known types and shapes  ─►  the executor, step after step
                               what does not fit ─► the run in Python

What fails is not run again to word its error: a custom operator may keep what it has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.cancellation import raise_interrupt
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import SardonyxError, SizesNotInferred, lacks_memory, located
from sardonyx.ir import TensorType, Value
from sardonyx.runtime.executor import Executor
from sardonyx.session.feeds import SharedSymbols, own_results
from sardonyx.session.native.run import SHAPES_KEPT, Run

__all__ = ["StepwiseRuns"]


class StepwiseRuns:
    """What is known of a session whose plan is no program of machine code alone; made by `of`."""

    scratch_bytes = 0
    """How much memory it keeps for runs."""

    def __init__(
        self, executor: Executor, inputs: Sequence[Value], types: Sequence[np.dtype[np.generic]], outputs: Sequence[str], label: str
    ) -> None:
        """Know no shapes yet; see `of`."""
        self._executor, self._symbols = executor, SharedSymbols(inputs)
        self._inputs = list(zip([value.name for value in inputs], types, strict=True))
        self._outputs, self._label = list(outputs), label
        self._known: frozenset[tuple[tuple[int, ...], ...]] = frozenset()
        self._latest: tuple[Run, Run] | None = None

    @staticmethod
    def of(
        executor: Executor, inputs: Sequence[Value], defaults: Mapping[str, Array], outputs: Sequence[str], label: str
    ) -> StepwiseRuns | None:
        """Return what is known of a session, None where inputs are no arrays of numbers; arguments as of `runs_of`."""
        types = [value.type.dtype.numpy for value in inputs if isinstance(value.type, TensorType) and value.shape is not None]
        if defaults or len(types) < len(inputs) or any(dtype.hasobject for dtype in types):
            return None
        return StepwiseRuns(executor, inputs, types, outputs, label)

    def learn(self, feed: Mapping[str, OnnxValue], run: Run) -> Run | None:
        """Have later runs of the shapes of `feed`, with which a run has succeeded, do without checks; as `NativeRuns.learn`."""
        values = self._given(feed)
        if values is not None and self._symbols.hold(values):
            others = self._known if len(self._known) < SHAPES_KEPT else frozenset()
            self._known = others | {_shapes_of(values)}
        if self._latest is None or self._latest[0] is not run:
            self._latest = run, self._before(run)
        return self._latest[1]

    def trim(self) -> int:
        """Forget all shapes; returns the bytes that were kept for them."""
        self._known = frozenset()
        return 0

    def close(self) -> None:
        """Have no run use what is known."""
        self.trim()

    def _before(self, run: Run) -> Run:
        def stepwise(session: object, names: object, feed: Mapping[str, OnnxValue], options: object) -> list[OnnxValue]:
            is_whole = options is None and (names is None or (type(names) is list and names == self._outputs))
            values = self._given(feed) if is_whole else None
            if values is not None and _shapes_of(values) in self._known:
                try:
                    return own_results(self._executor.run(values), values)
                except MemoryError as error:
                    raise lacks_memory(f"model {self._label}: a run", error) from error
                except SardonyxError as error:
                    raise_interrupt(error)
                    if not isinstance(error, SizesNotInferred):
                        raise located(error, f"model {self._label}") from error
            return run(session, names, feed, options)

        return stepwise

    def _given(self, feed: Mapping[str, OnnxValue]) -> list[Array] | None:
        """Return the array of each input; None where a feed has others, or what is none of the input's type."""
        if type(feed) is not dict or len(feed) != len(self._inputs):
            return None
        values = []
        for name, dtype in self._inputs:
            value = feed.get(name)
            if type(value) is not np.ndarray or (value.dtype is not dtype and value.dtype != dtype):
                return None
            values.append(value)
        return values


def _shapes_of(values: Sequence[Array]) -> tuple[tuple[int, ...], ...]:
    return tuple([value.shape for value in values])
