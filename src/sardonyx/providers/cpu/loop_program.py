"""A Loop whose scan outputs are as long as only the run shows: a partition of its own, whose program makes its outputs.

Where the condition does not change, the number of iterations is read before the loop, and scan outputs are made for it. Else they
have room for some iterations; whenever that is full, the native run asks for the caller, who takes them over, and goes on.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.config import LIMITS
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.provider import HOST, Bound, DeviceBuffer, StepInfo, TensorSpec, TimedRun
from sardonyx.providers.cpu.latest_bindings import LatestBindings
from sardonyx.providers.cpu.program import CpuProgram

__all__ = ["LoopProgram", "OpenLoop"]

_CHUNK_BYTES = 1 << 18
"""How much room there is for the scan outputs of some iterations, where their number is not known."""
_LEAST_ROW_BYTES = 64
_MOST_IDLE = 4


@dataclasses.dataclass(frozen=True, slots=True)
class OpenLoop:
    """What the program of a Loop has to know of it."""

    place: str
    """How messages name it."""
    trips: int | Array | None
    """How often it runs at most: the place among the partition's inputs, an array, or None for any number."""
    is_exact: bool
    """Whether that is the number of iterations."""
    capacities: frozenset[str]
    """The symbols for how many iterations scan outputs have room for."""
    stacked: frozenset[int]
    """The places of scan outputs among the partition's outputs."""
    open_dims: Mapping[int, tuple[int, ...]]
    """For each of them which of its dimensions are not numbers: they are 0 where there is no iteration, as in ONNX Runtime."""


class LoopProgram:
    """Runs a Loop; any number of threads may run it at a time."""

    makes_outputs = True

    def __init__(self, program: CpuProgram, loop: OpenLoop) -> None:
        """Make a program of one whose scan outputs have room for a number of iterations, a symbol of its sizes."""
        self.program, self.loop = program, loop
        self.precisions = program.precisions
        self._bound = Bound((None,) * (program.output_count - 1))
        self._bindings: LatestBindings[_Key, _Binding] = LatestBindings()

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Return that all outputs are made by the run, which reads their sizes from its inputs."""
        return self._bound

    def run(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> Sequence[OnnxValue]:
        """Run the loop and return its outputs."""
        return self._run(inputs, timed=False).results

    def run_timed(self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer) -> TimedRun:
        """Run the loop, and note how long each of its steps took in all."""
        return self._run(inputs, timed=True)

    @property
    def steps(self) -> list[str]:
        """The kernels in the order in which they lie, for reports."""
        return self.program.steps

    def describe_steps(self) -> list[StepInfo]:
        """Return the kernels in the order in which they lie."""
        return self.program.describe_steps()

    def _run(self, inputs: Sequence[Array], *, timed: bool) -> TimedRun:
        capacity = 0
        if self.loop.is_exact:
            inputs, capacity = self._fixed_trips(inputs)
        binding = self._bindings.of((tuple([array.shape for array in inputs]), capacity), self._bind)
        work = binding.take()
        try:
            arrays = [make() if given is None else given for given, make in zip(work.arrays, binding.makers, strict=True)]
            results = _Results(self.loop, arrays, binding.capacity)
            asked = None if self.loop.is_exact else results.take_over
            run = self.program.execute(binding.bound, inputs, arrays, work.arena, asked, timed=timed)
            return TimedRun(results.finish(), run.times, run.symbols)
        finally:
            binding.give_back(work)

    def _fixed_trips(self, inputs: Sequence[Array]) -> tuple[Sequence[Array], int]:
        """Return the inputs with a number of iterations that nobody else can change meanwhile, and how many there will be."""
        trips = self.loop.trips
        if not isinstance(trips, int):
            return inputs, 0 if trips is None else max(int(trips.reshape(-1)[0]), 0)
        own = inputs[trips].copy()
        return [*inputs[:trips], own, *inputs[trips + 1 :]], max(int(own.reshape(-1)[0]), 0)

    def _bind(self, key: _Key) -> _Binding:
        """Return the sizes for inputs of some shapes and a number of iterations, where it is known."""
        (shapes, capacity), symbols, stacked = key, self.loop.capacities, self.loop.stacked
        if not self.loop.is_exact:
            specs = self.program.bind(shapes, dict.fromkeys(symbols, 1)).outputs
            row_bytes = sum(_size_bytes(spec) for place, spec in enumerate(specs) if place in stacked and spec is not None)
            capacity = max(1, _CHUNK_BYTES // max(row_bytes, _LEAST_ROW_BYTES))
        bound = self.program.bind(shapes, dict.fromkeys(symbols, capacity))
        return _Binding(bound, capacity, frozenset() if self.loop.is_exact else stacked)


def _size_bytes(spec: TensorSpec) -> int:
    return math.prod(spec.shape) * int(spec.dtype.numpy.itemsize)


_Key: TypeAlias = tuple[tuple[tuple[int, ...], ...], int]
"""The shapes of inputs, and the number of iterations where it is known before the loop, else 0."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Work:
    """What one run at a time uses."""

    arena: DeviceBuffer
    """Memory for the native run; None where it needs none."""
    arrays: tuple[Array | None, ...]
    """For each output the array that takes slices before they are copied; None where the output is made for each run."""


class _Binding:
    """The sizes of a loop, with memory that runs have left."""

    __slots__ = ("_idle", "_kept", "bound", "capacity", "makers")

    def __init__(self, bound: Bound, capacity: int, kept: frozenset[int]) -> None:
        self.bound, self.capacity = bound, capacity
        self.makers = [functools.partial(np.empty, spec.shape, spec.dtype.numpy) for spec in bound.outputs if spec is not None]
        """For each output what makes an array for it."""
        self._kept = kept
        self._idle: collections.deque[_Work] = collections.deque(maxlen=_MOST_IDLE)

    def take(self) -> _Work:
        """Return memory for one run."""
        try:
            return self._idle.pop()
        except IndexError:
            arena = HOST.allocate(self.bound.scratch_bytes) if self.bound.scratch_bytes else None
            return _Work(arena, tuple(make() if place in self._kept else None for place, make in enumerate(self.makers)))

    def give_back(self, work: _Work) -> None:
        """Keep it for another run."""
        self._idle.append(work)


class _Results:
    """The outputs of one run."""

    __slots__ = ("_arrays", "_capacity", "_chunks", "_loop", "_taken_bytes")

    def __init__(self, loop: OpenLoop, arrays: Sequence[Array], capacity: int) -> None:
        self._loop, self._arrays, self._capacity = loop, arrays, capacity
        self._chunks: list[dict[int, Array]] = []
        self._taken_bytes = 0

    def take_over(self) -> None:
        """Keep the slices of as many iterations as there is room for, whose room is needed again."""
        self._taken_bytes += sum(self._arrays[place].nbytes for place in self._loop.stacked)
        if self._taken_bytes > LIMITS.tensor_bytes:
            raise InvalidArgument(
                f"{self._loop.place}: {self._capacity * (len(self._chunks) + 1)} iterations have made scan outputs of "
                f"{self._taken_bytes} bytes; at most {LIMITS.tensor_bytes} are allowed: check how often the loop runs, or raise "
                "SARDONYX_MAX_TENSOR_BYTES"
            )
        self._chunks.append({place: self._arrays[place].copy() for place in self._loop.stacked})

    def finish(self) -> list[OnnxValue]:
        """Return the node's outputs."""
        *values, counter = self._arrays
        count = int(counter)
        return [self._whole(place, count) if place in self._loop.stacked else value for place, value in enumerate(values)]

    def _whole(self, place: int, count: int) -> Array:
        array = self._arrays[place]
        if not count:
            lengths = dict.fromkeys(self._loop.open_dims[place], 0)
            return np.empty([lengths.get(axis, size) for axis, size in enumerate(array.shape)], array.dtype)
        if self._loop.is_exact:
            return array
        rest = array[: count - len(self._chunks) * self._capacity]
        return np.concatenate([*(chunk[place] for chunk in self._chunks), rest]) if self._chunks else rest.copy()
