"""A node whose output's size elements of its inputs say: a partition of its own, whose program reads them and is bound to it."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.forks import new_lock
from sardonyx.provider import HOST, Bound, DeviceBuffer, StepInfo, TimedRun
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.value_sizes import ValueSizes

__all__ = ["SizedProgram"]

_MOST_BINDINGS = 64


class SizedProgram:
    """Runs such a node; any number of threads may run it at a time."""

    makes_outputs = True

    def __init__(self, program: CpuProgram, sizes: ValueSizes) -> None:
        """Make a program of one whose symbols `sizes` reads."""
        self.program, self.sizes = program, sizes
        self.precisions = program.precisions
        self._bound = Bound((None,) * program.output_count)
        self._lock = new_lock()
        self._bindings: collections.OrderedDict[_Key, Bound] = collections.OrderedDict()

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Return that the output is made by the run, which reads its size from the inputs."""
        return self._bound

    def run(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> Sequence[OnnxValue]:
        """Run the node and return its output."""
        return self._run(inputs, timed=False).results

    def run_timed(self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer) -> TimedRun:
        """Run the node, and note how long each of its steps took."""
        return self._run(inputs, timed=True)

    @property
    def steps(self) -> list[str]:
        """The kernels in the order in which they run, for reports."""
        return self.program.steps

    def describe_steps(self) -> list[StepInfo]:
        """Return the kernels in the order in which they run."""
        return self.program.describe_steps()

    def _run(self, inputs: Sequence[Array], *, timed: bool) -> TimedRun:
        known = self.sizes.read(inputs)
        binding = self._binding((tuple([array.shape for array in inputs]), tuple(known.items())))
        made = [np.empty(spec.shape, spec.dtype.numpy) for spec in binding.outputs if spec is not None]
        arena = HOST.allocate(binding.scratch_bytes) if binding.scratch_bytes else None
        return self.program.execute(binding, inputs, made, arena, None, timed=timed)

    def _binding(self, key: _Key) -> Bound:
        """Return the sizes for inputs of some shapes and the sizes that were read."""
        with self._lock:
            found = self._bindings.pop(key, None)
            if found is not None:
                self._bindings[key] = found  # as the latest
                return found
        shapes, known = key
        found = self.program.bind(shapes, dict(known))
        with self._lock:
            self._bindings[key] = found
            if len(self._bindings) > _MOST_BINDINGS:
                self._bindings.popitem(last=False)
        return found


_Key: TypeAlias = tuple[tuple[tuple[int, ...], ...], tuple[tuple[str, int], ...]]
"""The shapes of inputs, and the sizes that their elements say."""
