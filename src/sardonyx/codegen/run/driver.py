"""Run a table of steps in one native call, without the GIL.

A step is a kernel, its buffers, its params and a number of tasks. Its buffers are given relative to bases: addresses that
change from run to run (the arena, what the user passes in, what he gets), so that one table serves all runs:

    head | bases | relocations | steps | pointers | scalars, params …          words of 64 bits
                    │               │       ▲          ▲
                    │ pointer =     └───────┴──────────┘  kernel, pointers, params, tasks
                    └ base + offset

The driver fills in the pointers, then calls kernel after kernel; a step of more than one task is shared with the thread pool.
Between steps and between tasks it may pause, as `pace` says: the call then returns PAUSED, Python handles its signals and decides
whether the run goes on, and another call goes on with the next task.

A kernel that finds a value it cannot work with (an index out of range) writes a number other than 0 where base STATUS points;
the driver then stops and says which step it was. A kernel that decides which step follows (the end of a loop's body, a branch)
writes into the word behind it how many steps to skip, less than 0 to go back. What is less than 0 in the status is no failure: the
kernel asks for the caller, and is called again afterwards.

A table must not run twice at a time, since its pointers are its own: concurrent runs take copies.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import I64, PTR
from sardonyx.codegen.emit.values import Operand, Pointer, Register
from sardonyx.codegen.run.denormals import flush_bits, read_control, write_control
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.pace import FIRST_CHUNK, PACE_WORDS, Pace, begin_pace, next_chunk, write_pace
from sardonyx.codegen.run.thread_pool import MAIN_THREAD, MOST_TASKS, PoolCode, ThreadPool, shared_pool, write_pool
from sardonyx.codegen.target import Target
from sardonyx.disk_cache import Cache
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "DONE",
    "PAUSED",
    "STATUS",
    "Buffer",
    "Call",
    "Driver",
    "KernelCall",
    "Stamp",
    "StepTable",
    "write_driver",
    "write_timed_driver",
]

_Words: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

Stamp = Callable[[Function, Operand], None]
"""Writes code that notes the time: for number 0 before the first step, for number i + 1 after step i."""

STATUS = 0
"""The base that is the word in which a kernel reports a failure."""

DONE, PAUSED = -1, -2
"""What a run returns that has done all steps, or that has paused."""

_STEPS, _RELOCATIONS, _THREADS, _POOL, _REPORT, _SKIP, _FIRST, _LAST, _STEP, _TASK, _FLUSH, _PACE = range(12)
_BASES = _PACE + PACE_WORDS
_KERNEL, _BUFFERS, _PARAMS, _TASKS, _TOGETHER = range(5)
_STEP_WORDS = 5
_WORDS = Address(I64, unique=False)
_SHORT_STEPS = 3
"""Of steps with few tasks, how many run from one look at the clock to the next, less one; a power of 2, less one."""


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
    together: int = 0
    """The most tasks that may run at a time, from one multiple of it to the next, and end before the rest; 0 for any number."""
    scalars: Sequence[int] = ()
    """Words that lie before its parameters, the first one next to them: see `Kernel.scalar`."""


class StepTable:
    """Steps in the form that the driver reads. `bases` counts the bases besides STATUS, which are numbered from 1.

    With `flush` kernels compute with zeros for denormal numbers.
    """

    def __init__(self, steps: Sequence[KernelCall], bases: int, *, threads: int = 1, flush: bool = False) -> None:
        self.threads = threads
        self.address = 0
        """Where the words are."""
        self._bases = struct.Struct(f"={bases}q")
        pointers = [buffer for step in steps for buffer in step.buffers]
        params = [word for step in steps for word in (*reversed(step.scalars), *step.params)]
        first_relocation = _BASES + 1 + bases
        first_step = first_relocation + 3 * len(pointers)
        first_pointer = first_step + _STEP_WORDS * len(steps)
        first_param = first_pointer + len(pointers)
        self._first_step = first_step
        self._counts = [(len(step.buffers), len(step.params), len(step.scalars)) for step in steps]
        self._places: list[tuple[int, int]] = []
        words = [0] * first_relocation
        words[_STEPS], words[_RELOCATIONS], words[_THREADS], words[_LAST] = first_step, len(pointers), threads, len(steps)
        words[_FLUSH] = int(flush)
        for place, buffer in enumerate(pointers, first_pointer):
            words += (place, _BASES + buffer.base, buffer.offset_bytes)
        pointer, param = first_pointer, first_param
        for step in steps:
            param += len(step.scalars)
            self._places.append((first_relocation + 3 * (pointer - first_pointer), param))
            words += (step.kernel, 8 * pointer, 8 * param, step.tasks, min(step.together or MOST_TASKS, MOST_TASKS))
            pointer += len(step.buffers)
            param += len(step.params)
        self._end = len(words)
        words += [0] * len(pointers) + params
        self._adopt(np.array(words, np.int64), 0)

    def copy(self) -> StepTable:
        """Return the same steps in memory of their own, for a concurrent run."""
        other = object.__new__(StepTable)
        other.threads, other._bases, other._end = self.threads, self._bases, self._end
        other._first_step, other._counts, other._places = self._first_step, self._counts, self._places
        other._adopt(self._words.copy(), self.address)
        return other

    def with_calls(self, calls: Mapping[int, KernelCall]) -> StepTable | None:
        """Return the same steps but for some of other sizes; None where one has more or fewer buffers or parameters."""
        other = self.copy()
        return other if all(other.set_call(index, call) for index, call in calls.items()) else None

    def set_call(self, index: int, call: KernelCall) -> bool:
        """Have a step make another call of its kernel; False where that has more or fewer buffers or parameters."""
        words = self.words_of(index, call)
        if words is not None:
            self._words[list(words)] = list(words.values())
        return words is not None

    def with_words(self, places: _Words, numbers: _Words) -> StepTable:
        """Return the same steps but for some words; arguments are int64 (n,), the places as of `words_of`."""
        other = self.copy()
        other._words[places] = numbers
        return other

    def add_to_words(self, places: _Words, numbers: _Words) -> None:
        """Add to words, each of which is named once; arguments as of `with_words`."""
        self._words[places] += numbers

    def offset_word(self, index: int, number: int) -> int:
        """Return the place of the word that says how far behind its base the buffer `number` of a step is."""
        return self._places[index][0] + 3 * number + 2

    def words_of(self, index: int, call: KernelCall) -> dict[int, int] | None:
        """Return the words of a step with another call, by their places; None where it has more or fewer buffers or parameters."""
        words = {self._first_step + _STEP_WORDS * index + _TASKS: call.tasks}
        if not call.tasks:
            return words
        if self._counts[index] != (len(call.buffers), len(call.params), len(call.scalars)):
            return None
        relocation, param = self._places[index]
        for buffer in call.buffers:
            words[relocation + 1], words[relocation + 2] = _BASES + buffer.base, buffer.offset_bytes
            relocation += 3
        words |= enumerate((*reversed(call.scalars), *call.params), param - len(call.scalars))
        return words

    @property
    def size_bytes(self) -> int:
        """How long the words are."""
        return int(self._words.nbytes)

    @property
    def status(self) -> int:
        """What the last failing kernel reported, 0 after a run that went well."""
        return int(self._words[_REPORT])

    @property
    def bases_address(self) -> int:
        """Where the base 1 is, with 2, … behind it."""
        return self.address + 8 * (_BASES + 1)

    @property
    def step(self) -> int:
        """The step in which the last run paused."""
        return int(self._words[_STEP])

    def set_bases(self, addresses: Sequence[int]) -> None:
        """Say where the bases 1, 2, … are, for the runs that follow."""
        self._bases.pack_into(self._words.data, 8 * (_BASES + 1), *addresses)

    def attend(self, result: int, paused: Callable[[], object] | None, asked: Callable[[], object] | None) -> bool:
        """Call what a run that returned `result` waits for; return whether it is to go on, rather than has failed."""
        if result == PAUSED:
            if paused is not None:
                paused()
            return True
        if asked is None or self.status >= 0:
            return False
        asked()
        self._words[_REPORT] = 0
        return True

    def set_range(self, first: int, last: int) -> None:
        """Let runs call the steps [first, last) only."""
        self._words[_FIRST], self._words[_LAST] = first, last

    def set_pool(self, address: int) -> None:
        """Say which pool to share tasks with."""
        self._words[_POOL] = address

    def _adopt(self, words: _Words, old_address: int) -> None:
        """Take over words whose inner addresses are relative to `old_address`."""
        address = int(words.ctypes.data)
        self._words, self.address = words, address
        self.pointer = ctypes.c_void_p(address)
        for word in (_BUFFERS, _PARAMS):
            words[self._first_step + word : self._end : _STEP_WORDS] += address - old_address
        words[_BASES + STATUS] = address + 8 * _REPORT


class Call(Protocol):
    """What runs a table on the bases that it has then; may be called often, by one thread at a time."""

    def __call__(
        self, watch: int = 0, paused: Callable[[], object] | None = None, asked: Callable[[], object] | None = None
    ) -> int:
        """Run the table.

        Args:
            watch: the address of three words, as `pace` describes; 0 for a run that nothing ends.
            paused: is called whenever the run has paused; what it raises ends the run.
            asked: is called whenever a kernel has asked for the caller; without it that is a failure.

        Returns:
            DONE, or the number of the step that failed, whose report is `table.status`.
        """


_EXPORTS = ("pool_worker", "pool_stop", "driver_refuse", "driver_run", "driver_watch", "driver_resume")
"""The functions of the driver's module."""


class Driver:
    """The compiled driver, and the pool that it shares tasks with."""

    def __init__(
        self, target: Target, *, cache: Cache | None = None, pool: ThreadPool | None = None, edition: str | None = None
    ) -> None:
        """Compile the driver, or take it from the cache.

        Args:
            target: what it is compiled for.
            cache: where the object is looked up and kept.
            pool: whose threads do tasks; None for the process's.
            edition: what the sources are, by which a known driver is found without writing its text; None where that is not known.
        """
        self._engine = Engine(target, cache=cache)
        if edition is None:
            module = Module(target)
            write_driver(module)
            self._engine.add(module)
        else:
            self._engine.add_named("driver", _EXPORTS, write_driver, edition)
        self._pool = pool or shared_pool()
        alone = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        watched = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        self._run: Callable[[ctypes.c_void_p], int] = alone(self._engine.address("driver_run"))
        self._watch: Callable[[ctypes.c_void_p, int], int] = watched(self._engine.address("driver_watch"))
        self._resume: Callable[[ctypes.c_void_p, int], int] = watched(self._engine.address("driver_resume"))

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return self._engine.target

    @property
    def refusal(self) -> int:
        """The address of a kernel that reports a failure: for a step that cannot run, where it may not come to it."""
        return self._engine.address("driver_refuse")

    def prepare(self, table: StepTable) -> Call:
        """Return what runs `table`; it keeps the table and the driver.

        Workers are started by the first call that needs them, also in the child of a fork.
        """
        table.set_pool(self._pool.address)
        run, run_watched, resume, workers, pool = self._run, self._watch, self._resume, table.threads - 1, self._pool

        def call(watch: int = 0, paused: Callable[[], object] | None = None, asked: Callable[[], object] | None = None) -> int:
            if pool.workers < workers:
                pool.grow(workers, self._engine)
            result = run_watched(table.pointer, watch) if watch else run(table.pointer)
            while result != DONE and table.attend(result, paused, asked):
                result = resume(table.pointer, watch)
            return result

        return call

    def native(self, table: StepTable) -> tuple[int, int]:
        """Return the address of what runs `table`, a function of the table's address, and that of what goes on after a pause.

        The second is a function of the table's address and the watch's. Starts the workers that the table needs.
        """
        table.set_pool(self._pool.address)
        if self._pool.workers < table.threads - 1:
            self._pool.grow(table.threads - 1, self._engine)
        return self._engine.address("driver_run"), self._engine.address("driver_resume")

    def run(self, table: StepTable) -> int:
        """Run a table once, as `prepare` says."""
        return self.prepare(table)()


def write_driver(module: Module) -> None:
    """Write the driver, and the pool that it shares tasks with."""
    walk = _write_walk(module)
    with module.kernel("driver_refuse") as b:
        b.buffer(STATUS, I64).store(1)
    for name, watched in (("run", False), ("watch", True), ("resume", True)):
        with module.function(f"driver_{name}", _WORDS, *[I64] * watched, returns=I64, export=True) as b:
            table = b.addresses[0]
            if name != "resume":
                _begin(b, table)
            b.give(b.call(walk, table, table, b.arguments[0] if watched else b.const(I64, 0)))


def write_timed_driver(module: Module, stamp: Stamp) -> None:
    """Write a driver with the code of `stamp` between steps: `driver_run_timed` and `driver_resume_timed` (table, times, watch).

    `driver_run_pair` (pair) and `driver_resume_pair` (pair, watch) do the same for two words: the addresses of table and times.
    """
    walk = _write_walk(module, stamp)
    for name in ("run", "resume"):
        with module.function(f"driver_{name}_timed", _WORDS, _WORDS, I64, returns=I64, export=True) as timed:
            table, times = timed.addresses
            if name == "run":
                _begin(timed, table)
                stamp(timed, 0)
            timed.give(timed.call(walk, table, times, *timed.arguments))
        with module.function(f"driver_{name}_pair", _WORDS, *[I64] * (name == "resume"), returns=I64, export=True) as b:
            pair = b.addresses[0]
            b.give(b.call(timed, pair.load_pointer(0, I64), pair.load_pointer(1, I64), *(b.arguments or [b.const(I64, 0)])))


def _begin(b: Function, table: Pointer) -> None:
    """Let a table stand at its first step."""
    _relocate(b, table)
    table.store(0, _REPORT)
    table.store(0, _SKIP)
    table.store(table.load(_FIRST), _STEP)
    table.store(0, _TASK)


@dataclass(frozen=True, slots=True)
class _Ways:
    """The functions that run tasks of a step."""

    pool: PoolCode
    """With the workers."""
    alone: Function
    """(pace, kernel, buffers, params, begin, end) -> first task that was not done."""
    pace: Pace
    """What says whether a run pauses."""


def _write_alone(module: Module, pace: Pace) -> Function:
    """Write what runs tasks chunk by chunk, so that it can pause between them."""
    with module.function("driver_alone", _WORDS, PTR, PTR, PTR, I64, I64, returns=I64) as b:
        state = b.addresses[0]
        kernel, buffers, params, begin, end = b.arguments
        task, chunk = b.variable(begin), b.variable(b.const(I64, FIRST_CHUNK))
        with b.repeat() as working:
            following = b.min(task.value + chunk.value, end)
            b.call(kernel, buffers, params, task.value, following)
            task.set(following)
            working.stop_if(following >= end)
            spent = b.call(pace.look, state)
            working.stop_if(spent < 0)
            chunk.set(next_chunk(b, chunk.value, spent))
        b.give(task.value)
    return b


def _write_walk(module: Module, stamp: Stamp | None = None) -> Function:
    """Write (table, times, watch) -> DONE, PAUSED or the failing step: walk the steps from where the table stands."""
    pace = write_pace(module)
    ways = _Ways(write_pool(module, pace), _write_alone(module, pace), pace)
    with module.function("driver_walk", _WORDS, _WORDS, I64, returns=I64) as b:
        table = b.addresses[0]
        flushes, control = table.load(_FLUSH).ne(0), b.variable(b.const(I64, 0))
        with b.when(flushes):
            control.set(read_control(b))
            write_control(b, control.value | flush_bits(b.target))
        state, pool = table.at(_PACE), table.load_pointer(_POOL, I64)
        in_main_thread = b.intrinsic("pthread_self", I64, []).eq(b.atomic_load(pool.at(MAIN_THREAD)))
        looks = b.variable(begin_pace(b, state, b.arguments[0], in_main_thread))
        shared = b.variable(table.load(_THREADS) > 1)
        with b.when(shared.value):
            shared.set(b.call(ways.pool.take, pool))
        entries, last = table.at(table.load(_STEPS)), table.load(_LAST)
        step, task, done = b.variable(table.load(_STEP)), b.variable(table.load(_TASK)), b.variable(b.const(I64, 0))
        result = b.variable(b.const(I64, DONE))
        with b.repeat() as stepping:
            stepping.stop_if(step.value >= last)
            entry = entries.at(step.value * _STEP_WORDS)
            may_be_long = (entry.load(_TASKS) > FIRST_CHUNK) | (done.value & _SHORT_STEPS).eq(_SHORT_STEPS)
            with b.when(looks.value & may_be_long), b.when(b.call(pace.look, state) < 0):
                result.set(b.const(I64, PAUSED))
            stepping.stop_if(result.value.ne(DONE))
            _run_step(b, table, entry, ways, task, looks.value, shared.value)
            b.branch(
                b.atomic_load(table.at(_REPORT)).ne(0),
                lambda: result.set(step.value),
                lambda: result.set(b.select(task.value < entry.load(_TASKS), b.const(I64, PAUSED), DONE)),
            )
            stepping.stop_if(result.value.ne(DONE))
            done.add(1)
            step.add(1)
            task.set(b.const(I64, 0))
            if stamp is not None:
                stamp(b, step.value)
            step.add(table.load(_SKIP))
            table.store(0, _SKIP)
        with b.when(shared.value):
            b.call(ways.pool.leave, pool)
        table.store(step.value, _STEP)
        table.store(task.value, _TASK)
        with b.when(flushes):
            write_control(b, control.value)
        b.give(result.value)
    return b


def _run_step(b: Function, table: Pointer, entry: Pointer, ways: _Ways, task: Variable, looks: Register, shared: Register) -> None:
    """Run the tasks of a step from `task` on, which is then the first one that was not done."""
    kernel, buffers, params = (entry.load_pointer(place, I64) for place in (_KERNEL, _BUFFERS, _PARAMS))
    tasks, together = entry.load(_TASKS), entry.load(_TOGETHER)
    state, pool, threads = table.at(_PACE), table.load_pointer(_POOL, I64), table.load(_THREADS)

    def share() -> None:
        pace = b.select(looks, state.to(I64), 0)
        with b.repeat() as rounds:
            end = b.min((task.value // together + 1) * together, tasks)
            task.set(b.call(ways.pool.run_region, pool, threads, kernel, buffers, params, task.value, end, pace.to(PTR)))
            rounds.stop_if((task.value < end) | (end >= tasks))
            spent = b.variable(b.const(I64, 0))
            with b.when(looks):
                spent.set(b.call(ways.pace.look, state))
            rounds.stop_if(spent.value < 0)

    def work() -> None:
        b.branch(
            looks & (tasks - task.value > FIRST_CHUNK),
            lambda: task.set(b.call(ways.alone, state, kernel, buffers, params, task.value, tasks)),
            lambda: finish(),
        )

    def finish() -> None:
        b.call(kernel, buffers, params, task.value, tasks)
        task.set(tasks)

    with b.when(tasks > 0):  # a kernel may read before its loop over tasks, and a step without tasks has no buffers
        b.branch(shared & (tasks > 1) & (together > 1), share, work)


def _relocate(b: Function, table: Pointer) -> None:
    """Fill in the pointers: the relocations end where the steps begin."""
    count = table.load(_RELOCATIONS)
    first = table.at(table.load(_STEPS) - count * 3)
    with b.loop(0, count) as number:
        relocation = first.at(number * 3)
        table.store(table.load(relocation.load(1)) + relocation.load(2), relocation.load(0))
