"""Runs as one call of machine code whose inputs are prepared in Python: columns of text that are encoded.

session.run(None, feed)  ─►  OneHotEncoder, LabelEncoder of text  ─►  the native run, with what follows it (native_tail.py)
                               what does not fit ─► the run in Python, which also words the errors
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import SardonyxError
from sardonyx.ir import TensorType, Value
from sardonyx.runtime.executors.sequential import TailedProgram
from sardonyx.session.native_run import NativeRuns, Run
from sardonyx.session.native_tail import TailedRuns, missed

__all__ = ["FrontedRuns"]

_FAILURES = (SardonyxError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class FrontedRuns:
    """What the native `run` knows of a session whose plan begins in Python."""

    def __init__(self, parts: TailedProgram, inputs: Sequence[Value], outputs: Sequence[str]) -> None:
        """Know no shapes yet.

        Args:
            parts: the plan, with a front.
            inputs: the inputs, none of which has a default.
            outputs: the names of the outputs, each once.
        """
        self._parts, self._outputs = parts, list(outputs)
        self._inputs = [value.name for value in inputs]
        self._names = [*self._inputs, *(f"\0{place}" for place in range(len(parts.front)))]
        self._known: tuple[list[TensorType], TailedRuns] | None = None
        self._latest: tuple[Run, Run] | None = None

    def learn(self, feed: Mapping[str, OnnxValue], run: Run) -> Run | None:
        """Have later runs of the shapes of `feed` run natively where they can; as `NativeRuns.learn`."""
        try:
            whole = self._prepared(feed)
        except _FAILURES:
            whole = None
        if whole is None or not all(type(value) is np.ndarray for value in whole.values()):
            return None
        runs = self._runs_of([whole[name] for name in self._names])
        native = None if runs is None else runs.learn(whole, missed)
        if native is None:
            return None
        if self._latest is None or self._latest[0] is not native:
            self._latest = native, self._with_front(native, run)
        return self._latest[1]

    @property
    def scratch_bytes(self) -> int:
        """How much memory the lanes of all shapes work in."""
        return 0 if self._known is None else self._known[1].scratch_bytes

    def trim(self) -> int:
        """Forget all shapes; returns the bytes of scratch memory that they had."""
        return 0 if self._known is None else self._known[1].trim()

    def close(self) -> None:
        """Have no run use what is known, or learn more."""
        if self._known is not None:
            self._known[1].close()

    def _runs_of(self, arrays: Sequence[Array]) -> TailedRuns | None:
        """Return the runs of what is prepared; it begins anew where that has other types or ranks."""
        types = [TensorType(DataType.from_numpy(array.dtype), (0,) * array.ndim) for array in arrays]  # only ranks are read
        if self._known is None or self._known[0] != types:
            values = [Value(name, kind) for name, kind in zip(self._names, types, strict=True)]
            head, names = self._parts.head, [f"result {place}" for place in self._parts.head.results]
            runs = NativeRuns.of_program(head, values, {}, names, has_text=True)
            self.close()
            self._known = None if runs is None else (types, TailedRuns(runs, self._parts, self._outputs))
        return None if self._known is None else self._known[1]

    def _prepared(self, feed: Mapping[str, OnnxValue]) -> dict[str, OnnxValue] | None:
        """Return the feed with what the front makes of it; None for a feed that Python must check.

        The native run compares types and shapes, of text too. An element of an object array that is no text has no place in the
        tables of the front, which raise TypeError.
        """
        if type(feed) is not dict or len(feed) != len(self._inputs):
            return None
        names, whole = self._names, {**feed}
        for place, (call, arguments) in enumerate(self._parts.front, len(feed)):
            whole[names[place]] = call(*[whole[names[argument]] for argument in arguments])
        return whole

    def _with_front(self, native: Run, run: Run) -> Run:
        prepared = self._prepared

        def fronted(session: object, names: object, feed: Mapping[str, OnnxValue], options: object) -> list[OnnxValue]:
            found = None
            if options is None:
                try:
                    whole = prepared(feed)
                    found = None if whole is None else native(session, names, whole, None)
                except _FAILURES:
                    found = None
            return run(session, names, feed, options) if found is None else found

        return fronted
