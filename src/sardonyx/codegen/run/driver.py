"""Run a table of steps in one native call, without the GIL.

A step is a kernel, its buffers, its params and a number of tasks. Its buffers are given relative to bases: addresses that
change from run to run (the arena, what the user passes in, what he gets), so that one table serves all runs:

    head | bases | relocations | steps | pointers | params          words of 64 bits
                    │               │       ▲          ▲
                    │ pointer =     └───────┴──────────┘  kernel, pointers, params, tasks
                    └ base + offset

The driver fills in the pointers, then calls kernel after kernel; a step of more than one task is shared with the thread pool.
A kernel that finds a value it cannot work with (an index out of range) writes a number other than 0 where base STATUS points;
the driver then stops and says which step it was.

A table must not run twice at a time, since its pointers are its own: concurrent runs take copies.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.emit.values import Operand, Pointer
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.thread_pool import PoolCode, ThreadPool, shared_pool, write_pool
from sardonyx.codegen.target import Target
from sardonyx.disk_cache import Cache

__all__ = ["STATUS", "Buffer", "Driver", "KernelCall", "Stamp", "StepTable", "write_driver", "write_timed_driver"]

Stamp = Callable[[Function, Operand], None]
"""Writes code that notes the time: for number 0 before the first step, for number i + 1 after step i."""

STATUS = 0
"""The base that is the word in which a kernel reports a failure."""

_STEPS, _RELOCATIONS, _THREADS, _POOL, _REPORT, _FIRST, _LAST, _UNUSED, _BASES = range(9)
_STEP_WORDS = 4


@dataclass(frozen=True, slots=True)
class Buffer:
    """An address that a step works on."""

    base: int
    """The number of the base that it is relative to."""
    offset_bytes: int = 0
    """How far behind the base it is."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of a kernel."""

    kernel: int
    """The address of the kernel; its engine must outlive the table."""
    buffers: Sequence[Buffer]
    """What it works on, in the order of the kernel's buffers."""
    params: Sequence[int]
    """Its parameters; numbers with a fraction as `float_word`."""
    tasks: int = 1
    """How many tasks it is; 0 does nothing."""


class StepTable:
    """Steps in the form that the driver reads. `bases` counts the bases besides STATUS, which are numbered from 1."""

    def __init__(self, steps: Sequence[KernelCall], bases: int, *, threads: int = 1) -> None:
        self.threads = threads
        self._bases = struct.Struct(f"={bases}q")
        pointers = [buffer for step in steps for buffer in step.buffers]
        params = [word for step in steps for word in step.params]
        first_relocation = _BASES + 1 + bases
        first_step = first_relocation + 3 * len(pointers)
        first_pointer = first_step + _STEP_WORDS * len(steps)
        first_param = first_pointer + len(pointers)
        words = [0] * first_relocation
        words[_STEPS], words[_RELOCATIONS], words[_THREADS], words[_LAST] = first_step, len(pointers), threads, len(steps)
        for place, buffer in enumerate(pointers, first_pointer):
            words += (place, _BASES + buffer.base, buffer.offset_bytes)
        pointer, param = first_pointer, first_param
        self._inner: list[int] = []
        for step in steps:
            self._inner += (len(words) + 1, len(words) + 2)
            words += (step.kernel, 8 * pointer, 8 * param, step.tasks)
            pointer += len(step.buffers)
            param += len(step.params)
        words += [0] * len(pointers) + params
        self._adopt(np.array(words, np.int64), 0)

    def copy(self) -> StepTable:
        """Return the same steps in memory of their own, for a concurrent run."""
        other = object.__new__(StepTable)
        other.threads, other._bases, other._inner = self.threads, self._bases, self._inner
        other._adopt(self._words.copy(), self.address)
        return other

    @property
    def address(self) -> int:
        """Where the words are."""
        return int(self._words.ctypes.data)

    @property
    def status(self) -> int:
        """What the last failing kernel reported, 0 after a run that went well."""
        return int(self._words[_REPORT])

    @property
    def bases_address(self) -> int:
        """Where the base 1 is, with 2, … behind it."""
        return self.address + 8 * (_BASES + 1)

    def set_bases(self, addresses: Sequence[int]) -> None:
        """Say where the bases 1, 2, … are, for the runs that follow."""
        self._bases.pack_into(self._words.data, 8 * (_BASES + 1), *addresses)

    def set_range(self, first: int, last: int) -> None:
        """Let runs call the steps [first, last) only."""
        self._words[_FIRST], self._words[_LAST] = first, last

    def set_pool(self, address: int) -> None:
        """Say which pool to share tasks with."""
        self._words[_POOL] = address

    def _adopt(self, words: np.ndarray[tuple[int], np.dtype[np.int64]], old_address: int) -> None:
        """Take over words whose inner addresses are relative to `old_address`."""
        self._words = words
        self.pointer = ctypes.c_void_p(self.address)
        self._words[self._inner] += self.address - old_address
        self._words[_BASES + STATUS] = self.address + 8 * _REPORT


class Driver:
    """The compiled driver, and the pool that it shares tasks with."""

    def __init__(self, target: Target, *, cache: Cache | None = None, pool: ThreadPool | None = None) -> None:
        module = Module(target)
        write_driver(module)
        self._engine = Engine(target, cache=cache)
        self._engine.add(module)
        self._pool = pool or shared_pool()
        signature = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self._run: Callable[[ctypes.c_void_p], int] = signature(self._engine.address("driver_run"))

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return self._engine.target

    def prepare(self, table: StepTable) -> Callable[[], int]:
        """Return a function that runs `table` on the bases that it has then; may be called often, by one thread at a time.

        It returns -1, or the number of the step that failed, whose report is `table.status`. It keeps the table and the driver.
        Workers are started by the first call that needs them, also in the child of a fork.
        """
        table.set_pool(self._pool.address)
        run, workers, pool = self._run, table.threads - 1, self._pool

        def call() -> int:
            if pool.workers < workers:
                pool.grow(workers, self._engine)
            return run(table.pointer)

        return call

    def native(self, table: StepTable) -> int:
        """Return the address of what runs `table`, as a function of the table's address; starts the workers that it needs."""
        table.set_pool(self._pool.address)
        if self._pool.workers < table.threads - 1:
            self._pool.grow(table.threads - 1, self._engine)
        return self._engine.address("driver_run")

    def run(self, table: StepTable) -> int:
        """Run a table once, as `prepare` says."""
        return self.prepare(table)()


def write_driver(module: Module) -> None:
    """Write the driver, and the pool that it shares tasks with."""
    _write_run(module, write_pool(module))


def write_timed_driver(module: Module, stamp: Stamp) -> None:
    """Write `driver_run_timed` (table, times), which does what `driver_run` does, with the code of `stamp` between steps."""
    _write_run(module, write_pool(module), stamp)


def _write_run(module: Module, pool_code: PoolCode, stamp: Stamp | None = None) -> None:
    """Write `driver_run` (table), or with a stamp `driver_run_timed` (table, times), -> failing step or -1."""
    name, arguments = ("driver_run", 1) if stamp is None else ("driver_run_timed", 2)
    with module.function(name, *[Address(I64, unique=False)] * arguments, returns=I64, export=True) as b:
        table = b.addresses[0]
        _relocate(b, table)
        table.store(0, _REPORT)
        threads, pool = table.load(_THREADS), table.load_pointer(_POOL, I64)
        shared = b.variable(threads > 1)
        with b.when(shared.value):
            shared.set(b.call(pool_code.take, pool))
        entries = table.at(table.load(_STEPS))
        step, last = b.variable(table.load(_FIRST)), table.load(_LAST)
        failed = b.variable(b.const(I64, -1))
        if stamp is not None:
            stamp(b, 0)
        with b.repeat() as stepping:
            stepping.stop_if(step.value >= last)
            entry = entries.at(step.value * _STEP_WORDS)
            kernel, buffers, params, tasks = (
                entry.load_pointer(0, I64),
                entry.load_pointer(1, I64),
                entry.load_pointer(2, I64),
                entry.load(3),
            )
            b.branch(
                shared.value & (tasks > 1),
                lambda: b.call(pool_code.run_region, pool, threads, kernel, buffers, params, tasks),
                lambda: b.call(kernel, buffers, params, b.const(I64, 0), tasks),
            )
            with b.when(b.atomic_load(table.at(_REPORT)).ne(0)):
                failed.set(step.value)
            stepping.stop_if(failed.value >= 0)
            step.add(1)
            if stamp is not None:
                stamp(b, step.value)
        with b.when(shared.value):
            b.call(pool_code.leave, pool)
        b.give(failed.value)


def _relocate(b: Function, table: Pointer) -> None:
    """Fill in the pointers: the relocations end where the steps begin."""
    count = table.load(_RELOCATIONS)
    first = table.at(table.load(_STEPS) - count * 3)
    with b.loop(0, count) as number:
        relocation = first.at(number * 3)
        table.store(table.load(relocation.load(1)) + relocation.load(2), relocation.load(0))
