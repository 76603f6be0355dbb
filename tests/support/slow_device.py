"""A pretended device that is slow, or fast, by known amounts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from support.providers import DeviceMemory, DeviceProvider, DeviceTensor

from sardonyx.dtypes import Array
from sardonyx.ir import Graph
from sardonyx.provider import Body, Bound, Partition, Program

__all__ = ["FakeClock", "TimedDevice"]

Wait = Callable[[float], None]
"""Lets so many microseconds pass."""


class FakeClock:
    """A clock that goes on when it is told to, and by two microseconds when it is read."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """The time in seconds."""
        self.now_s += 2e-6
        return self.now_s

    def wait(self, duration_us: float) -> None:
        """Let time pass."""
        self.now_s += duration_us / 1e6


def wait_busily(duration_us: float) -> None:
    """Busy, as a device that is waited for would be; sleeping is not exact enough."""
    end = time.perf_counter() + duration_us / 1e6
    while time.perf_counter() < end:
        pass


class TimedDevice(DeviceProvider):
    """Takes a known time for each node and each copy, besides the little that computing and copying here take."""

    def __init__(
        self, operators: Iterable[str] = ("Relu", "Neg", "Add", "Mul"), *, node_us: float, copy_us: float, wait: Wait = wait_busily
    ) -> None:
        super().__init__(operators, "TimedDevice")
        self.node_us = node_us
        self.memory = _TimedMemory(copy_us, wait)
        self._wait = wait

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return _TimedProgram(super().compile(partition, bodies), self.node_us * len(partition.nodes), self._wait)


class _TimedMemory(DeviceMemory):
    def __init__(self, copy_us: float, wait: Wait) -> None:
        super().__init__()
        self._copy_us, self._wait = copy_us, wait

    def to_host(self, tensor: DeviceTensor) -> Array:
        self._wait(self._copy_us)
        return super().to_host(tensor)

    def from_host(self, array: Array) -> DeviceTensor:
        self._wait(self._copy_us)
        return super().from_host(array)


class _TimedProgram:
    makes_outputs = False

    def __init__(self, program: Program, run_us: float, wait: Wait) -> None:
        self._program, self._run_us, self._wait = program, run_us, wait

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return self._program.bind(shapes)

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        self._wait(self._run_us)
        return self._program.run(bound, inputs, outputs, scratch)
