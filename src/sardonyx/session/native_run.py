"""Runs as one call of machine code, for sessions that are one native program.

    session.run(None, {"x": x})  ─►  a built-in function (native_function.py)  ─ what does not fit ─►  the run in Python

A run in Python teaches the session its shapes: the words that the function reads. The second one is the first that does. What
takes long anyway (very large results, or scratch memory) stays in Python, where memory is pooled.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeGuard

import numpy as np

from sardonyx.cancellation import raise_interrupt
from sardonyx.codegen.run.python_call import COUNT, ENTRY, LANE, LANES, MOST_ARRAYS, SHAPES
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.forks import new_lock
from sardonyx.ir import TensorType, Value
from sardonyx.provider import HOST, Bound, NativeCall, NativeProgram, TensorSpec
from sardonyx.runtime.bind import BoundStep
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.executors.sequential import OnlyProgram, SequentialExecutor
from sardonyx.runtime.memory import size_bytes
from sardonyx.session.native_function import EntryWords, NativeCode, Words, native_code, words

__all__ = ["MOST_SCRATCH_BYTES", "Key", "NativeRuns", "scratch_for"]

_SHAPES_KEPT = 16
_MOST_RESULT_BYTES = 1 << 23
"""How much memory the results of a run may take: what the allocator of the process takes from blocks that it keeps."""
_MOST_COUNTED_BYTES = 1 << 20
"""The same where only the run shows how long results are: large ones are copied for longer than a run in Python takes."""
MOST_SCRATCH_BYTES = 1 << 18
"""How much memory one lane may work in."""
_NO_GENERATION = -1
Key: TypeAlias = tuple[tuple[int, ...], ...]
"""The shapes of the inputs."""


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
        self._lock = new_lock()
        self._entry: _Entry | None = None
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
        only: OnlyProgram, inputs: Sequence[Value], defaults: Mapping[str, Array], outputs: Sequence[str]
    ) -> NativeRuns | None:
        """Return what is known of a session that runs a program, None where it needs Python; other arguments as of `of`."""
        if not isinstance(only.step.program, NativeProgram):
            return None
        if len(set(only.results)) < len(only.step.outputs):
            return None
        if max(len(inputs), len(outputs)) > MOST_ARRAYS or len(set(outputs)) < len(outputs) or not all(map(_is_plain, inputs)):
            return None
        code = native_code()
        return None if code is None else NativeRuns(code, only, only.step.program, inputs, defaults, outputs)

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
            if arrays is not None:
                key = tuple([array.shape for array in arrays])
                sizes = self.sizes(key)
                if sizes is not None and _makes_none(sizes.bound) and _is_small(sizes):
                    if self._entry is None or not self._entry.takes(key):
                        self._entry = _Entry(self, sizes, run)
                    self._entry.add(key, sizes, self.program)
            return None if self._entry is None else self._entry.function

    @property
    def scratch_bytes(self) -> int:
        """How much memory its lanes work in."""
        return 0 if self._entry is None else self._entry.scratch_bytes

    def trim(self) -> int:
        """Forget all shapes and bindings; returns the bytes of scratch memory that the shapes had."""
        with self._lock:
            dropped, self._entry = self._entry, None
            self._current[0] = _NO_GENERATION
        if dropped is None:
            return 0
        dropped.words[ENTRY.index("generation")] = _NO_GENERATION
        return dropped.scratch_bytes

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


class _Entry:
    """The words of a session's entry, and what they point to: shapes are added until the table is full."""

    def __init__(self, runs: NativeRuns, sizes: BoundStep, run: Callable[..., object]) -> None:
        step, defaults = runs.only.step, [0 if array is None else array.ctypes.data for array in runs.defaults]
        specs = _greatest(sizes.bound)
        results = [specs[place] for place in runs.only.results]
        inputs = zip(runs.inputs, runs.types, defaults, strict=True)
        outputs = zip(runs.outputs, results, strict=True)
        self._runs, self._generation, self._table = runs, runs.code.generation, words([0] * len(SHAPES) * _SHAPES_KEPT)
        self._known: dict[Key, _Lanes] = {}
        pointed = {
            "inputs": words(
                [word for name, kind, at in inputs for word in (id(name), id(kind.dtype.numpy), len(kind.shape or ()), at)]
            ),
            "outputs": words([word for name, spec in outputs for word in (id(name), id(spec.dtype.numpy), len(spec.shape))]),
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
            "shapes_count": _SHAPES_KEPT,
            "argument_count": len(step.inputs),
        }
        numbers |= {name: ctypes.addressof(memory) for name, memory in pointed.items()}
        self.words = EntryWords(*(numbers[name] for name in ENTRY))
        self.words.kept = (runs.code, run, pointed, self._known, runs.inputs, runs.outputs, runs.types, runs.defaults, specs)
        self.function = runs.code.function(self.words)

    def takes(self, key: Key) -> bool:
        """Return whether shapes are known, or can be added."""
        return self._generation == self._runs.code.generation and (key in self._known or len(self._known) < _SHAPES_KEPT)

    def add(self, key: Key, sizes: BoundStep, program: NativeProgram) -> None:
        """Have runs of these shapes find a lane."""
        if key not in self._known:
            self._known[key] = _Lanes(program, sizes)
        lanes = self._known[key]
        if not lanes.add():
            return
        first = len(SHAPES) * list(self._known).index(key)
        if self._table[first + SHAPES.index("lanes")]:
            return
        specs = _greatest(sizes.bound)
        lanes.sizes = {
            "input_dims": words(number for shape in key for number in shape),
            "output_dims": words(number for place in self._runs.only.results for number in specs[place].shape),
        }
        if sizes.bound.counted:
            lanes.sizes["counts"] = words(number for place in self._runs.only.results for number in _count(sizes.bound, place))
        for name, memory in (*lanes.sizes.items(), ("lanes", lanes.words)):  # `lanes` last: from then on runs use them
            self._table[first + SHAPES.index(name)] = ctypes.addressof(memory)

    @property
    def scratch_bytes(self) -> int:
        """How much memory its lanes work in."""
        return sum(lanes.scratch_bytes for lanes in self._known.values())


class _Lanes:
    """The lanes of one set of shapes: as many as there were runs at a time, up to LANES."""

    def __init__(self, program: NativeProgram, sizes: BoundStep) -> None:
        self.words = words([0] * len(LANE) * LANES)
        self.sizes: dict[str, Words] = {}
        self._program, self._bound = program, sizes.bound
        self._kept: list[tuple[NativeCall, Array]] = []

    @property
    def scratch_bytes(self) -> int:
        """How much memory they work in."""
        return self._bound.scratch_bytes * len(self._kept)

    def add(self) -> bool:
        """Add a lane where runs have all that there are; returns whether there is any."""
        count, taken = len(self._kept), LANE.index("taken")
        if count == LANES or not all(self.words[len(LANE) * lane + taken] for lane in range(count)):
            return True
        call = self._program.native_call(self._bound)
        if call is None:
            return count > 0
        scratch = scratch_for(self._bound)
        self._kept.append((call, scratch))
        numbers = {"function": call.function, "bases": call.bases, "scratch": scratch.ctypes.data, "resume": call.resume}
        for name, number in (*numbers.items(), ("table", call.table)):  # `table` last: from then on runs may take it
            self.words[len(LANE) * count + LANE.index(name)] = number
        return True


def scratch_for(bound: Bound) -> Array:
    """Return memory for one run at a time."""
    return HOST.allocate(bound.scratch_bytes)


def _is_small(sizes: BoundStep) -> bool:
    specs = _greatest(sizes.bound)
    most = _MOST_COUNTED_BYTES if sizes.bound.counted else _MOST_RESULT_BYTES
    return sizes.bound.scratch_bytes <= MOST_SCRATCH_BYTES and sum(map(size_bytes, specs)) <= most


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


def _is_plain(value: Value) -> bool:
    kind = value.type
    return isinstance(kind, TensorType) and kind.shape is not None and not kind.dtype.numpy.hasobject


def _has_type(array: OnnxValue, kind: TensorType) -> TypeGuard[Array]:
    return type(array) is np.ndarray and array.dtype == kind.dtype.numpy and array.ndim == len(kind.shape or ())
