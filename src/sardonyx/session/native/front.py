"""Runs as one call of machine code whose inputs are prepared in Python: texts that are encoded, or counted word by word.

session.run(None, feed)  ─►  OneHotEncoder, Tokenizer, TfIdfVectorizer …  ─►  the native run, with what follows it (`tail`)
                               what does not fit ─► the run in Python, which also words the errors
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import SardonyxError
from sardonyx.ir import TensorType, Value
from sardonyx.native_program import NativeProgram
from sardonyx.runtime.executors.sequential import TailedProgram
from sardonyx.session.native.run import SHAPES_KEPT, NativeRuns, Run
from sardonyx.session.native.tail import TailedRuns, missed

__all__ = ["FrontedRuns"]

_FAILURES = (SardonyxError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_Call: TypeAlias = tuple[Callable[..., OnnxValue], tuple[int, ...]]
_Key: TypeAlias = tuple[tuple[int, ...], ...]
"""The shapes of what is fed."""
_MOST_SEEN = 4 * SHAPES_KEPT
"""How many sets of shapes are waited for to come again."""
_MOST_MISSED = 3
"""After how many native runs that there were none of shapes are prepared for Python alone."""


class FrontedRuns:
    """What the native `run` knows of a session whose plan begins in Python.

    Shapes are learned when they come for the second time (those of the first feed at once): what is prepared is prepared anew for
    that, and feeds whose shapes never come again have nothing of it.
    """

    def __init__(
        self, parts: TailedProgram, inputs: Sequence[Value], outputs: Sequence[str], calls: NativeProgram | None = None
    ) -> None:
        """Know no shapes yet.

        Args:
            parts: the plan, with a front.
            inputs: the inputs, none of which has a default.
            outputs: the names of the outputs, each once.
            calls: as `program` of `NativeRuns.of_program`.
        """
        passed = [*range(len(inputs)), *sorted({place for place in parts.head.step.inputs if place >= len(inputs)})]
        read = tuple([passed.index(place) for place in parts.head.step.inputs])
        step = dataclasses.replace(parts.head.step, inputs=read)
        self._parts = dataclasses.replace(parts, head=dataclasses.replace(parts.head, step=step))
        self._outputs, self._calls = list(outputs), calls
        self._front = _Front(parts.front, inputs, passed)
        self._known: tuple[list[TensorType], TailedRuns] | None = None
        self._latest: tuple[Run, Run] | None = None
        self._seen: list[_Key] = []

    def learn(self, feed: Mapping[str, OnnxValue], run: Run) -> Run | None:
        """Have later runs of the shapes of `feed` run natively where they can; as `NativeRuns.learn`."""
        try:
            key = self._front.shapes(feed)
            is_new = bool(self._seen) and key not in self._seen
            if is_new:
                self._seen = [*self._seen[1 - _MOST_SEEN :], key]
            if is_new or self._front.missed.get(key, 0) >= _MOST_MISSED:
                return None if self._latest is None else self._latest[1]
            self._seen = self._seen or [key]
            whole = self._front.prepared(feed)
        except _FAILURES:
            return None
        if not all(type(value) is np.ndarray for value in whole.values()):
            return None
        runs = self._runs_of(whole)
        native = None if runs is None else runs.learn(whole, missed)
        if native is None:
            self._front.miss(key)
            return None
        self._front.native = self._front.native | {key}
        if self._latest is None or self._latest[0] is not native:
            self._latest = native, _with_front(self._front, native, run)
        return self._latest[1]

    @property
    def scratch_bytes(self) -> int:
        """How much memory the lanes of all shapes work in."""
        return 0 if self._known is None else self._known[1].scratch_bytes

    def trim(self) -> int:
        """Forget all shapes; returns the bytes of scratch memory that they had."""
        self._front.native, self._front.missed = set(), {}
        return 0 if self._known is None else self._known[1].trim()

    def close(self) -> None:
        """Have no run use what is known, or learn more."""
        if self._known is not None:
            self._known[1].close()

    def _runs_of(self, whole: Mapping[str, Array]) -> TailedRuns | None:
        """Return the runs of what is prepared; it begins anew where that has other types or ranks."""
        types = [TensorType(DataType.from_numpy(array.dtype), (0,) * array.ndim) for array in whole.values()]  # only ranks are read
        if self._known is None or self._known[0] != types:
            values = [Value(name, kind) for name, kind in zip(whole, types, strict=True)]
            head, names = self._parts.head, [f"result {place}" for place in self._parts.head.results]
            runs = NativeRuns.of_program(head, values, {}, names, self._calls, has_text=True)
            self.close()
            self._known = None if runs is None else (types, TailedRuns(runs, self._parts, self._outputs))
        return None if self._known is None else self._known[1]


class _Front:
    """What is called before the native run."""

    def __init__(self, calls: Sequence[_Call], inputs: Sequence[Value], passed: Sequence[int]) -> None:
        self._calls = calls
        self._inputs = [value.name for value in inputs]
        self._texts = [place for place, value in enumerate(inputs) if value.dtype is DataType.STRING]
        self._passed = [(self._inputs[place] if place < len(inputs) else f"\0{place}", place) for place in passed]
        self.native: set[_Key] = set()
        """The shapes that the native run knows, unless it has forgotten them; replaced, never changed."""
        self.missed: dict[_Key, int] = {}
        """How often what was prepared of shapes had no native run: these take too much memory, or make place for others."""

    def shapes(self, feed: Mapping[str, OnnxValue]) -> _Key:
        """Return the shapes of a feed's arrays; raises one of `_FAILURES` for what Python must check."""
        if type(feed) is not dict or len(feed) != len(self._inputs):
            raise TypeError("a feed that Python must check")
        return tuple([feed[name].shape for name in self._inputs])

    def miss(self, key: _Key) -> None:
        """Note that what was prepared of these shapes had no native run."""
        self.native = self.native - {key}
        kept = list(self.missed.items())[1 - _MOST_SEEN :]
        self.missed = {**dict(kept), key: self.missed.get(key, 0) + 1}

    def prepared(self, feed: Mapping[str, OnnxValue]) -> dict[str, OnnxValue]:
        """Return what the native run reads, which compares types and shapes, of text too."""
        values = [feed[name] for name in self._inputs]
        for place in self._texts:
            _check_texts(values[place])
        for call, arguments in self._calls:
            values.append(call(*[values[argument] for argument in arguments]))
        return {name: values[place] for name, place in self._passed}


def _with_front(front: _Front, native: Callable[..., list[OnnxValue] | None], run: Run) -> Run:
    def fronted(session: object, names: object, feed: Mapping[str, OnnxValue], options: object) -> list[OnnxValue]:
        found = None
        if options is None and (names is None or type(names) is list):
            try:
                key = front.shapes(feed)
                if key in front.native:
                    found = native(session, names, front.prepared(feed), None)
                    if found is None:
                        front.miss(key)
            except _FAILURES:
                found = None
        return run(session, names, feed, options) if found is None else found

    return fronted


def _check_texts(array: Array) -> None:
    """Raise TypeError where an element is no text: of what is fed such are made in Python."""
    texts = array.reshape(-1).tolist() if array.size != 1 else [array.item()]
    if not array.dtype.hasobject or not all(issubclass(kind, str) for kind in set(map(type, texts))):
        raise TypeError("no array of texts")
