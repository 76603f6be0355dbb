"""The native side of the driver: the walk over the steps of a table, and where it pauses.

The driver fills in the pointers, then calls kernel after kernel; a step of more than one task is shared with the thread pool.
Between steps and between tasks it may pause, as `pace` says: the call then returns PAUSED, Python handles its signals and decides
whether the run goes on, and another call goes on with the next task.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import I64, PTR
from sardonyx.codegen.emit.values import Operand, Pointer, Register
from sardonyx.codegen.run import step_table as words
from sardonyx.codegen.run.control_word import flush_bits, read_control, write_control
from sardonyx.codegen.run.pace import FIRST_CHUNK, Pace, begin_pace, next_chunk, write_pace
from sardonyx.codegen.run.pool_code import PoolCode, write_pool
from sardonyx.codegen.run.pool_words import MAIN_THREAD
from sardonyx.codegen.run.step_table import DONE, PAUSED, STATUS
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["Stamp", "write_driver", "write_timed_driver"]

Stamp = Callable[[Function, Operand], None]
"""Writes code that notes the time: for number 0 before the first step, for number i + 1 after step i."""

_WORDS = Address(I64, unique=False)
_SHORT_STEPS = 3
"""Of steps with few tasks, how many run from one look at the clock to the next, less one; a power of 2, less one."""


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
    table.store(0, words.REPORT)
    table.store(0, words.SKIP)
    table.store(table.load(words.FIRST), words.STEP)
    table.store(0, words.TASK)


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
        flushes, control = table.load(words.FLUSH).ne(0), b.variable(b.const(I64, 0))
        with b.when(flushes):
            control.set(read_control(b))
            write_control(b, control.value | flush_bits(b.target))
        state, pool = table.at(words.PACE), table.load_pointer(words.POOL, I64)
        in_main_thread = b.intrinsic("pthread_self", I64, []).eq(b.atomic_load(pool.at(MAIN_THREAD)))
        looks = b.variable(begin_pace(b, state, b.arguments[0], in_main_thread))
        shared = b.variable(table.load(words.THREADS) > 1)
        with b.when(shared.value):
            shared.set(b.call(ways.pool.take, pool))
        entries, last = table.at(table.load(words.STEPS)), table.load(words.LAST)
        step, task, done = b.variable(table.load(words.STEP)), b.variable(table.load(words.TASK)), b.variable(b.const(I64, 0))
        result = b.variable(b.const(I64, DONE))
        with b.repeat() as stepping:
            stepping.stop_if(step.value >= last)
            entry = entries.at(step.value * words.STEP_WORDS)
            may_be_long = (entry.load(words.TASKS) > FIRST_CHUNK) | (done.value & _SHORT_STEPS).eq(_SHORT_STEPS)
            with b.when(looks.value & may_be_long), b.when(b.call(pace.look, state) < 0):
                result.set(b.const(I64, PAUSED))
            stepping.stop_if(result.value.ne(DONE))
            _run_step(b, table, entry, ways, task, looks.value, shared.value)
            b.branch(
                b.atomic_load(table.at(words.REPORT)).ne(0),
                lambda: result.set(step.value),
                lambda: result.set(b.select(task.value < entry.load(words.TASKS), b.const(I64, PAUSED), DONE)),
            )
            stepping.stop_if(result.value.ne(DONE))
            done.add(1)
            step.add(1)
            task.set(b.const(I64, 0))
            if stamp is not None:
                stamp(b, step.value)
            step.add(table.load(words.SKIP))
            table.store(0, words.SKIP)
        with b.when(shared.value):
            b.call(ways.pool.leave, pool)
        table.store(step.value, words.STEP)
        table.store(task.value, words.TASK)
        with b.when(flushes):
            write_control(b, control.value)
        b.give(result.value)
    return b


def _run_step(b: Function, table: Pointer, entry: Pointer, ways: _Ways, task: Variable, looks: Register, shared: Register) -> None:
    """Run the tasks of a step from `task` on, which is then the first one that was not done."""
    kernel, buffers, params = (entry.load_pointer(place, I64) for place in (words.KERNEL, words.BUFFERS, words.PARAMS))
    tasks, together = entry.load(words.TASKS), entry.load(words.TOGETHER)
    state, pool, threads = table.at(words.PACE), table.load_pointer(words.POOL, I64), table.load(words.THREADS)

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
    count = table.load(words.RELOCATIONS)
    first = table.at(table.load(words.STEPS) - count * 3)
    with b.loop(0, count) as number:
        relocation = first.at(number * 3)
        table.store(table.load(relocation.load(1)) + relocation.load(2), relocation.load(0))
