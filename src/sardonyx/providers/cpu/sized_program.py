"""A node whose output's size elements of its inputs say: a partition of its own, whose program reads them and is bound to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.provider import HOST, Bound, DeviceBuffer, PlainCalls, StepInfo, TimedRun
from sardonyx.providers.cpu.latest_bindings import LatestBindings
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.value_sizes import ValueSizes

__all__ = ["SizedProgram"]


class SizedProgram:
    """Runs such a node; any number of threads may run it at a time."""

    makes_outputs = True

    def __init__(self, program: CpuProgram, sizes: ValueSizes) -> None:
        """Make a program of one whose symbols `sizes` reads."""
        self.program, self.sizes = program, sizes
        self.precisions = program.precisions
        self._bound = Bound((None,) * program.output_count)
        self._bindings: LatestBindings[_Key, Bound] = LatestBindings()

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Return that the output is made by the run, which reads its size from the inputs."""
        return self._bound

    def run(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> Sequence[OnnxValue]:
        """Run the node and return its output."""
        return [self._make(*inputs)]

    def run_timed(self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer) -> TimedRun:
        """Run the node, and note how long each of its steps took."""
        binding = self._binding(inputs)
        return self.program.execute(binding, inputs, [_empty(binding)], _arena(binding), None, timed=True)

    def plain_calls(self) -> PlainCalls:
        """Return the call that makes the output."""
        count = len(self.program.inputs)
        return PlainCalls(((self._make, tuple(range(count))),), (count,))

    @property
    def steps(self) -> list[str]:
        """The kernels in the order in which they run, for reports."""
        return self.program.steps

    def describe_steps(self) -> list[StepInfo]:
        """Return the kernels in the order in which they run."""
        return self.program.describe_steps()

    def _make(self, *inputs: Array) -> OnnxValue:
        binding = self._binding(inputs)
        return self.program.run(binding, inputs, [_empty(binding)], _arena(binding))[0]

    def _binding(self, inputs: Sequence[Array]) -> Bound:
        return self._bindings.of((tuple([array.shape for array in inputs]), self.sizes.read(inputs)), self._bind)

    def _bind(self, key: _Key) -> Bound:
        """Return the sizes for the shapes of inputs and the sizes that their elements say."""
        shapes, sizes = key
        return self.program.bind(shapes, self.sizes.known(sizes))


def _empty(binding: Bound) -> Array:
    """Return memory for the output."""
    (spec,) = binding.outputs
    assert spec is not None  # its size is known
    return np.empty(spec.shape, spec.dtype.numpy)


def _arena(binding: Bound) -> DeviceBuffer:
    return HOST.allocate(binding.scratch_bytes) if binding.scratch_bytes else None


_Key: TypeAlias = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]
"""The shapes of inputs, and the sizes that their elements say."""
