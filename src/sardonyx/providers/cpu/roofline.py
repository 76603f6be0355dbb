"""The peak of this machine: multiply-adds on registers, and bytes by how many are at work; measured once and kept on disk.

A step can take no less time than its operations take at the one peak, and its bytes at the other (Williams, Waterman and Patterson,
"Roofline: an insightful visual performance model", 2009). What fits in a cache is faster there, hence several bandwidths.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.peak import SCALE_BYTES, write_multiply_adds, write_scale
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import Buffer, KernelCall, StepTable
from sardonyx.codegen.target import Target
from sardonyx.digests import sha256
from sardonyx.provider import HOST
from sardonyx.providers.cpu.library import driver_for, kernel_cache

__all__ = ["Roofline", "measure_roofline", "roofline_for"]

_SIZES_BYTES = (256 << 10, 4 << 20, 64 << 20)
_ROUNDS = 40
_LEAST_SECONDS = 1e-3
"""Rounds are short and many, so that some are not interrupted where others use the machine."""
_LOOPS = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Roofline:
    """What this machine can do at most, on some number of threads."""

    threads: int
    """On how many threads it was measured."""
    flops_per_s: float
    """Operations of float32, a multiplication and an addition as two."""
    bytes_per_s: tuple[tuple[int, float], ...]
    """By rising working set in bytes: how many bytes a second are read and written of one so large."""

    def seconds(self, flops: float, size_bytes: float) -> float:
        """Return how long a step takes at least that does `flops` operations and moves `size_bytes`."""
        return max(flops / self.flops_per_s, size_bytes / self.bandwidth(size_bytes))

    def bandwidth(self, size_bytes: float) -> float:
        """Return the bytes a second for a working set of `size_bytes`: those of the next larger one that was measured."""
        return next((speed for size, speed in self.bytes_per_s if size_bytes <= size), self.bytes_per_s[-1][1])


def roofline_for(target: Target, threads: int) -> Roofline:
    """Return the peak of this machine, as it was measured before where the cache has that; else it takes a fraction of a second."""
    cache = kernel_cache()
    key = sha256(f"roofline/2/{target.key}/{threads}/{_processor()}".encode()).hexdigest()
    kept = None if cache is None else cache.load(key)
    if kept is not None:
        with contextlib.suppress(ValueError, TypeError, KeyError):
            return _read(kept)
    found = measure_roofline(target, threads)
    if cache is not None:
        cache.store(key, json.dumps(dataclasses.asdict(found)).encode())
    return found


def _read(kept: bytes) -> Roofline:
    facts = json.loads(kept)
    speeds = tuple((int(size), float(speed)) for size, speed in facts["bytes_per_s"])
    return Roofline(int(facts["threads"]), float(facts["flops_per_s"]), speeds)


def measure_roofline(target: Target, threads: int) -> Roofline:
    """Measure the peak of this machine on so many threads: the best of several rounds, since others may use it too."""
    engine, run = Engine(target, cache=kernel_cache()), driver_for(target)
    module = Module(target)
    operations = write_multiply_adds(module, "multiply_adds")
    write_scale(module, "scale")
    engine.add(module)
    registers = HOST.allocate(2 * target.vector_bytes)
    registers[:] = 0
    chains = KernelCall(engine.address("multiply_adds"), [Buffer(1), Buffer(1, target.vector_bytes)], [_LOOPS], 8 * threads)
    flops = operations * _LOOPS * 8 * threads / _best(run, chains, registers.ctypes.data, threads)
    speeds = []
    for size in _SIZES_BYTES:
        memory = HOST.allocate(size)
        memory.view(np.float32)[:] = 1.0
        scale = KernelCall(engine.address("scale"), [Buffer(1)], [float_word(1.0)], size // SCALE_BYTES)
        speeds.append((size, 2 * size / _best(run, scale, memory.ctypes.data, threads)))
    return Roofline(threads, flops, tuple(speeds))


def _best(run: Driver, step: KernelCall, address: int, threads: int) -> float:
    """Return the least seconds that a step takes."""
    table = StepTable([step], 1, threads=threads)
    table.set_bases([address])
    call = run.prepare(table)
    call()
    return min(_seconds(call) for _ in range(_ROUNDS))


def _seconds(call: Callable[[], int]) -> float:
    start, calls = time.perf_counter(), 0
    while True:
        call()
        calls += 1
        elapsed = time.perf_counter() - start
        if elapsed > _LEAST_SECONDS:
            return elapsed / calls


def _processor() -> str:
    """Return the processor's name, where the system says it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""
