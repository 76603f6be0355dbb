"""Runs as one call of machine code, for sessions that are one native program.

    session.run(None, {"x": x})  ─►  a built-in function (`function`)  ─ what does not fit ─►  the run in Python

A run in Python teaches the session its shapes: the words that the function reads. The second one is the first that does. What
takes long anyway (very large results, or scratch memory) stays in Python, where memory is pooled. Shapes that are alike, as those
of a cache that grows, are learned all at once where the program says how their sizes are computed.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeGuard

import numpy as np

from sardonyx.cancellation import raise_interrupt
from sardonyx.codegen.run.python_words import COUNT, ENTRY, MOST_ARRAYS, SHAPES
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.forks import new_lock
from sardonyx.ir import TensorType, Value
from sardonyx.native_program import GrowingProgram, NativeGrowth, NativeProgram
from sardonyx.provider import Bound, TensorSpec
from sardonyx.runtime.bind import BoundStep
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.executors.sequential import OnlyProgram, SequentialExecutor
from sardonyx.runtime.memory import size_bytes
from sardonyx.runtime.native_lanes import GrowthWords, Key, Lanes, Words, words
from sardonyx.session.native.function import EntryWords, NativeCode, PoolWords, native_code

__all__ = ["MOST_SCRATCH_BYTES", "SHAPES_KEPT", "KnownRuns", "NativeRuns", "Run", "WrappedRuns"]

SHAPES_KEPT = 16
"""How many sets of shapes, or of those that are alike, are known at a time."""
_MOST_RESULT_BYTES = 1 << 23
"""How much memory the results of a run may take: what the allocator of the process takes from blocks that it keeps."""
_MOST_COUNTED_BYTES = 1 << 22
"""The same where only the run shows how long results are: up to half of it is copied, for longer than a run in Python takes."""
MOST_SCRATCH_BYTES = 1 << 23
"""How much memory one lane, or a binding, may work in: with more, a run takes so long that Python's share is small."""
_LITTLE_SCRATCH_BYTES = 1 << 18
_MOST_SCRATCH_KEPT_BYTES = 1 << 24
"""How much all lanes of a session may work in before no others are added that need more than a little."""
_NO_GENERATION = -1
Run: TypeAlias = Callable[..., list[OnnxValue]]
"""A function of a session, output names, a feed and options."""
_Row: TypeAlias = "Key | tuple[Hashable]"
"""What is in a row of the table: shapes, or the key of shapes that are alike."""


class NativeRuns:
    """What the native `run` knows of one session; made by `of`, since most sessions have none."""

    def __init__(
        self,
        code: NativeCode,
        only: OnlyProgram,
        program: NativeProgram,
        inputs: Sequence[Value],
        defaults: Mapping[str, Array],
        outputs: Sequence[str],
    ) -> None:
        """Know no shapes yet; see `of`."""
        self.code, self.only, self.program = code, only, program
        self.inputs = [sys.intern(value.name) for value in inputs]
        self.outputs = [sys.intern(name) for name in outputs]
        self.types = [value.type for value in inputs if isinstance(value.type, TensorType)]
        self.defaults = [np.ascontiguousarray(defaults[name]) if name in defaults else None for name in self.inputs]
        self._current = words([code.generation])
        self.pool = PoolWords.of(len(outputs))
        self._lock = new_lock()
        self._is_learning = False
        self._entry: _Entry | None = None
        self._refused: Key | None = None  # the shapes of the latest run, where runs of theirs need Python
        self._closed = False

    @staticmethod
    def of(executor: Executor, inputs: Sequence[Value], defaults: Mapping[str, Array], outputs: Sequence[str]) -> NativeRuns | None:
        """Return what is known of a session, None where its runs need Python.

        Args:
            executor: what the session runs.
            inputs: the inputs, with those that have a default.
            defaults: input -> what it is where the feed leaves it out.
            outputs: the names of the outputs.
        """
        only = executor.only if isinstance(executor, SequentialExecutor) else None
        return None if only is None else NativeRuns.of_program(only, inputs, defaults, outputs)

    @staticmethod
    def of_program(
        only: OnlyProgram,
        inputs: Sequence[Value],
        defaults: Mapping[str, Array],
        outputs: Sequence[str],
        program: NativeProgram | None = None,
        *,
        has_text: bool = False,
    ) -> NativeRuns | None:
        """Return what is known of a session that runs a program, None where it needs Python; other arguments as of `of`.

        `program` makes the native calls where that is not the program itself. `has_text` says that every array of text has been
        checked, of which the program reads sizes at most.
        """
        program = program or (only.step.program if isinstance(only.step.program, NativeProgram) else None)
        if program is None:
            return None
        if len(set(only.results)) < len(only.step.outputs):
            return None
        if max(len(inputs), len(outputs)) > MOST_ARRAYS or len(set(outputs)) < len(outputs):
            return None
        if not all(_is_plain(value, has_text) for value in inputs):
            return None
        code = native_code()
        return None if code is None else NativeRuns(code, only, program, inputs, defaults, outputs)

    def learn(self, feed: Mapping[str, OnnxValue], run: Callable[..., object]) -> Callable[..., list[OnnxValue]] | None:
        """Have later runs of the shapes of `feed`, with which a run succeeded in Python, run natively where they can.

        Args:
            feed: input name -> value.
            run: the method in Python, a function of the session and three arguments.

        Returns:
            A function of the same arguments, all of them given by place; None where Python must run.
        """
        arrays = self.given(feed)
        with self._lock:
            if self._is_learning:  # a handler of a signal runs the session, in the middle of what its thread does here
                return None
            self._is_learning = True
            try:
                if arrays is not None:
                    key = tuple([array.shape for array in arrays])
                    if key != self._refused:
                        sizes = self.sizes(key)
                        is_learnt = sizes is not None and _makes_none(sizes.bound) and self._learn(key, sizes, run)
                        self._refused = None if is_learnt else key
            finally:
                self._is_learning = False
            entry = self._entry
        return None if entry is None else entry.function

    def _learn(self, key: Key, sizes: BoundStep, run: Callable[..., object]) -> bool:
        """Add shapes to the table, or those that are like them, and return whether runs of theirs may be native.

        Begins a new table where there is no space.
        """
        if sizes.bound.scratch_bytes > MOST_SCRATCH_BYTES:
            return False
        growth = self.program.native_growth(sizes.bound) if isinstance(self.program, GrowingProgram) else None
        if growth is None and not _makes_little(sizes):
            return False
        row: _Row = key if growth is None else (growth.key,)
        entry = self._entry
        if entry is None or not entry.takes(row):
            entry = self._entry = _Entry(self, sizes, run)
        if growth is not None or entry.affords(sizes.bound.scratch_bytes):
            entry.add(row, key, sizes, growth)
        return True

    @property
    def scratch_bytes(self) -> int:
        """How much memory its lanes work in, and is kept for results."""
        return self.pool.idle_bytes + (0 if self._entry is None else self._entry.scratch_bytes)

    def trim(self) -> int:
        """Forget all shapes and bindings; returns the bytes of scratch memory that the shapes had, and of that for results."""
        with self._lock:
            dropped, self._entry = self._entry, None
            self._current[0] = _NO_GENERATION
        pooled = self.pool.trim()
        if dropped is None:
            return pooled
        dropped.words[ENTRY.index("generation")] = _NO_GENERATION
        return pooled + dropped.scratch_bytes

    def close(self) -> None:
        """Have no run use what is known, or learn more: the session gets another model or other providers."""
        self._closed = True
        self.trim()

    def given(self, feed: Mapping[str, OnnxValue]) -> list[Array] | None:
        """Return for each input its array, of the input's type and rank; None where the feed has others, or the session changed."""
        found = [feed.get(name) if default is None else default for name, default in zip(self.inputs, self.defaults, strict=True)]
        arrays = [value for value, kind in zip(found, self.types, strict=True) if _has_type(value, kind)]
        return arrays if len(arrays) == len(found) and not self._closed else None

    def current(self) -> Words:
        """Return a word that is the process's generation as long as what is known now may be used."""
        with self._lock:
            if not self._closed and self._current[0] != self.code.generation:
                self._current = words([self.code.generation])
            return self._current

    def sizes(self, key: Key) -> BoundStep | None:
        """Return the sizes of the program for the shapes of the inputs; None where another build of the model runs these."""
        try:
            (sizes,) = self.only.bind(tuple([key[slot] for slot in self.only.step.inputs])).steps
        except InvalidArgument as error:
            raise_interrupt(error)
            return None
        return sizes


class KnownRuns(Protocol):
    """What the native `run` knows of a session, whatever belongs to its runs besides."""

    @property
    def scratch_bytes(self) -> int:
        """How much memory it keeps for runs."""

    def learn(self, feed: Mapping[str, OnnxValue], run: Run) -> Run | None:
        """Have later runs of the shapes of `feed` run natively where they can."""

    def trim(self) -> int:
        """Forget all shapes; returns the bytes of memory that were kept for them."""

    def close(self) -> None:
        """Have no run use what is known, or learn more."""


class WrappedRuns:
    """Native runs that something else belongs to, before or after them."""

    def __init__(self, runs: KnownRuns, wrap: Callable[[Run, Run], Run], *, missed: Run | None = None) -> None:
        """Know no shapes yet.

        Args:
            runs: what is known of the native part.
            wrap: makes a whole run of the native one and of that in Python.
            missed: what the native run calls where it does not fit; None for the run in Python.
        """
        self._runs, self._wrap, self._missed = runs, wrap, missed
        self._latest: tuple[Run, Run] | None = None

    def learn(self, feed: Mapping[str, OnnxValue], run: Run) -> Run | None:
        """Have later runs of the shapes of `feed` run natively where they can; as `NativeRuns.learn`."""
        native = self._runs.learn(feed, self._missed or run)
        if native is None:
            return None
        if self._latest is None or self._latest[0] is not native:
            self._latest = native, self._wrap(native, run)
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


class _Entry:
    """The words of a session's entry, and what they point to: shapes are added until the table is full."""

    def __init__(self, runs: NativeRuns, sizes: BoundStep, run: Callable[..., object]) -> None:
        step, defaults = runs.only.step, [0 if array is None else array.ctypes.data for array in runs.defaults]
        specs = _greatest(sizes.bound)
        results = [specs[place] for place in runs.only.results]
        inputs = zip(runs.inputs, runs.types, defaults, strict=True)
        outputs = zip(runs.outputs, results, strict=True)
        self._runs, self._generation, self._table = runs, runs.code.generation, words([0] * len(SHAPES) * SHAPES_KEPT)
        self._known: dict[_Row, Lanes] = {}
        self._retired: list[Lanes] = []
        pointed = {
            "inputs": words(
                [word for name, kind, at in inputs for word in (id(name), id(kind.dtype.numpy), len(kind.shape or ()), at)]
            ),
            "outputs": words([word for name, spec in outputs for word in _output_words(name, spec)]),
            "shapes": self._table,
            "latest": self._table,
            "arguments": words(step.inputs),
            "results": words([runs.only.results.index(place) for place in range(len(step.outputs))]),
        }
        numbers = {
            "call": runs.code.address,
            "fallback": id(run),
            "generation": self._generation,
            "input_count": len(runs.inputs),
            "needed": defaults.count(0),
            "output_count": len(runs.outputs),
            "shapes_count": SHAPES_KEPT,
            "argument_count": len(step.inputs),
            "pool": ctypes.addressof(runs.pool),
        }
        numbers |= {name: ctypes.addressof(memory) for name, memory in pointed.items()}
        self.words = EntryWords(*(numbers[name] for name in ENTRY))
        self.words.kept = (
            runs.code,
            run,
            runs.pool,
            pointed,
            self._known,
            self._retired,
            runs.inputs,
            runs.outputs,
            runs.types,
            runs.defaults,
            specs,
        )
        self.function = runs.code.function(self.words)

    def takes(self, row: _Row) -> bool:
        """Return whether shapes are known, or can be added."""
        return self._generation == self._runs.code.generation and (row in self._known or len(self._known) < SHAPES_KEPT)

    def affords(self, scratch_bytes: int) -> bool:
        """Return whether one more lane may work in so much memory."""
        return scratch_bytes <= _LITTLE_SCRATCH_BYTES or self.scratch_bytes + scratch_bytes <= _MOST_SCRATCH_KEPT_BYTES

    def add(self, row: _Row, key: Key, sizes: BoundStep, growth: NativeGrowth | None) -> None:
        """Have runs of these shapes, or of those that are like them, find a lane."""
        lanes = self._known.get(row)
        if lanes is not None and not lanes.serves(growth):
            self._retire(row, lanes)
            lanes = None
        if lanes is None:
            program, take = self._runs.program, self._runs.only.take
            lanes = self._known[row] = Lanes(program, sizes.bound, None if growth is None else growth.places, take)
        first = len(SHAPES) * list(self._known).index(row)
        if not lanes.add() or self._table[first + SHAPES.index("lanes")]:
            return
        specs = _greatest(sizes.bound)
        lanes.sizes = {"output_dims": words(number for place in self._runs.only.results for number in specs[place].shape)}
        if growth is None:
            lanes.sizes["input_dims"] = words(number for shape in key for number in shape)
        else:
            lanes.sizes["growth"] = GrowthWords.of(growth, key, self._runs.only)
        if sizes.bound.counted:
            lanes.sizes["counts"] = words(number for place in self._runs.only.results for number in _count(sizes.bound, place))
        for name, memory in (*lanes.sizes.items(), ("lanes", lanes.words)):  # `lanes` last: from then on runs use them
            self._table[first + SHAPES.index(name)] = ctypes.addressof(memory)

    def _retire(self, row: _Row, lanes: Lanes) -> None:
        """Have no run find the lanes of a row any more; those that runs have stay until these have ended."""
        self._table[len(SHAPES) * list(self._known).index(row) + SHAPES.index("lanes")] = 0
        self._retired[:] = [each for each in (*self._retired, lanes) if each.are_taken]

    @property
    def scratch_bytes(self) -> int:
        """How much memory its lanes work in."""
        return sum(lanes.scratch_bytes for lanes in (*self._known.values(), *self._retired))


def _output_words(name: str, spec: TensorSpec) -> tuple[int, ...]:
    """Return the words of OUTPUT."""
    return id(name), id(spec.dtype.numpy), len(spec.shape), spec.dtype.numpy.itemsize


def _makes_little(sizes: BoundStep) -> bool:
    specs = _greatest(sizes.bound)
    most = _MOST_COUNTED_BYTES if sizes.bound.counted else _MOST_RESULT_BYTES
    return sum(map(size_bytes, specs)) <= most


def _makes_none(bound: Bound) -> bool:
    """Return whether the sizes of all outputs are known, or the greatest that they may be."""
    return bound.outputs.count(None) == len(bound.counted)


def _greatest(bound: Bound) -> list[TensorSpec]:
    """Return the specifications of all outputs, those with the greatest shapes for what the run cuts to size."""
    most = {output.number: output.most for output in bound.counted}
    return [most[number] if spec is None else spec for number, spec in enumerate(bound.outputs)]


def _count(bound: Bound, place: int) -> tuple[int, ...]:
    """Return the words of COUNT of an output."""
    for output in bound.counted:
        if output.number == place:
            return output.axis, output.count_bytes, output.most.dtype.numpy.itemsize
    return (-1,) * len(COUNT)


def _is_plain(value: Value, has_text: bool) -> bool:
    kind = value.type
    return isinstance(kind, TensorType) and kind.shape is not None and (has_text or not kind.dtype.numpy.hasobject)


def _has_type(array: OnnxValue, kind: TensorType) -> TypeGuard[Array]:
    return type(array) is np.ndarray and array.dtype == kind.dtype.numpy and array.ndim == len(kind.shape or ())
