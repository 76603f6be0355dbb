"""The native side of the thread pool: how callers share the tasks of a step with workers, and how workers wait.

A run that may be interrupted asks between its own chunks whether it is (`pace`). It then closes the region: it counts the ticket
up to the end, waits for the chunks that were taken, and returns the first task that nobody took, where it can go on later.

Workers spin for a new generation, longer while a run is on, then sleep on the generation in the kernel (futex). The thread that
runs a step takes chunks like the others. Only one run has the pool at a time; whoever finds it taken works alone.

A system may wake a thread on the processor of its waker though others are idle (Linux does in virtual machines: a processor that
has halted looks taken), and moves it milliseconds later. So a sleeping worker is woken while the caller's processor is forbidden
to it, which is undone at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import BOOL, I32, I64, PTR, U32, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.run.control_word import read_control, write_control
from sardonyx.codegen.run.pace import FIRST_CHUNK, Pace, next_chunk
from sardonyx.codegen.run.pool_words import (
    ACTIVE,
    APART,
    ASLEEP,
    CHUNK,
    CONTROL,
    DONE,
    KERNEL,
    OWNER,
    SLEEPERS,
    STOP,
    TASKS,
    TICKET,
    WORKERS,
)
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["PoolCode", "write_pool"]

_SPINS_IDLE, _SPINS_ACTIVE, _SPINS_YIELD = 2_000, 40_000, 4_000
_CHUNKS_PER_THREAD, _TAIL_CHUNKS_PER_THREAD = 4, 2
"""How finely tasks are shared: each thread has at least so many chunks of all of them, and so many of those that are left."""
_FUTEX_CALL = {"x86_64": 202, "aarch64": 98, "arm64": 98}
_GETTID_CALL = {"x86_64": 186, "aarch64": 178, "arm64": 178}
_FUTEX_WAIT, _FUTEX_WAKE = 128 + 9, 128 + 10  # of memory that no other process sees, for some of the sleepers (a set of 32 bits)
_ALL = (1 << 32) - 1
_PROCESSORS = 1024  # of C's cpu_set_t


@dataclass(frozen=True, slots=True)
class PoolCode:
    """The functions of a module that work on a pool; the address of the pool is their first argument."""

    run_region: Function
    """(pool, threads, kernel, buffers, params, begin, end, pace) -> first task that was not done, `end` where all were.

    Runs tasks on the caller and the workers; `pace` is null where nothing may interrupt them.
    """
    take: Function
    """(pool) -> bool: take the pool for a run, if nobody has it."""
    leave: Function
    """(pool): give the pool back."""


def write_pool(module: Module, pace: Pace) -> PoolCode:
    """Write the native side of the pool; exports `pool_worker` (pool, index) and `pool_stop` (pool) -> bool."""
    take_chunk = _write_take_chunk(module)
    drain, publish = _write_drain(module, take_chunk), _write_publish(module, _write_wake_apart(module))
    take, leave = _write_take(module), _write_leave(module)
    _write_worker(module, drain)
    _write_stop(module, take, publish)
    paced = _write_paced_drain(module, take_chunk, _write_close(module), pace)
    return PoolCode(_write_run_region(module, drain, paced, publish), take, leave)


def _write_take_chunk(module: Module) -> Function:
    """Write (pool, generation) -> how many tasks it did: a chunk; 0 where none was left, -1 where another thread was faster."""
    with module.function("pool_take_chunk", Address(I64, unique=False), I64, returns=I64) as b:
        pool, generation = b.addresses[0], b.arguments[0]
        kernel, buffers, params, begin, tasks, chunk, workers = (b.atomic_load(pool.at(place)) for place in range(KERNEL, CONTROL))
        ticket = b.atomic_load(pool.at(TICKET), "acquire")
        first = ticket & 0xFFFFFFFF
        with b.when((ticket >> 32).ne(generation) | (first >= tasks)):
            b.give(b.const(I64, 0))
        fair = b.max((tasks - first) // ((workers + 1) * _TAIL_CHUNKS_PER_THREAD), b.const(I64, 1))
        count = b.min(chunk, fair)
        with b.when(b.compare_exchange(pool.at(TICKET), ticket, ticket + count)):
            b.call(kernel.to(PTR), buffers.to(PTR), params.to(PTR), begin + first, begin + first + count)
            b.atomic_add(pool.at(DONE), count, "release")
            b.give(count)
        b.give(b.const(I64, -1))
    return b


def _write_drain(module: Module, take_chunk: Function) -> Function:
    """Take chunks of generation `generation` until there are no more."""
    with module.function("pool_drain", Address(I64, unique=False), I64) as b, b.repeat() as taking:
        taking.stop_if(b.call(take_chunk, b.addresses[0], b.arguments[0]).eq(0))
    return b


def _write_paced_drain(module: Module, take_chunk: Function, close: Function, pace: Pace) -> Function:
    """Take chunks, as large as the clock allows, until there are no more or the run pauses; returns how many tasks were taken."""
    with module.function("pool_drain_paced", Address(I64, unique=False), I64, I64, Address(I64, unique=False), returns=I64) as b:
        pool, state = b.addresses
        generation, most = b.arguments
        taken = b.variable(b.atomic_load(pool.at(TASKS)))
        with b.repeat() as taking:
            done = b.call(take_chunk, pool, generation)
            taking.stop_if(done.eq(0))
            with b.when(done > 0):
                spent = b.call(pace.look, state)
                chunk = pool.at(CHUNK)
                b.branch(
                    spent < 0,
                    lambda: taken.set(b.call(close, pool)),
                    lambda: b.atomic_store(chunk, b.min(next_chunk(b, b.atomic_load(chunk), spent), most)),
                )
        b.give(taken.value)
    return b


def _write_close(module: Module) -> Function:
    """Write (pool) -> how many tasks of the region were taken: from now on nobody takes another."""
    with module.function("pool_close", Address(I64, unique=False), returns=I64) as b:
        pool = b.addresses[0]
        tasks = b.atomic_load(pool.at(TASKS))
        first = b.variable(b.const(I64, 0))
        with b.repeat() as closing:
            ticket = b.atomic_load(pool.at(TICKET))
            first.set(b.min(ticket & 0xFFFFFFFF, tasks))
            closing.stop_if(b.compare_exchange(pool.at(TICKET), ticket, ticket - first.value + tasks))
        b.give(first.value)
    return b


def _write_publish(module: Module, wake_apart: Function) -> Function:
    """Open the next generation and wake up to `sleepers` workers. The ticket is odd before: the arguments have been written."""
    with module.function("pool_publish", Address(I64, unique=False), I64) as b:
        pool, wanted = b.addresses[0], b.arguments[0]
        generation = (b.atomic_load(pool.at(TICKET)) >> 32) + 1
        b.atomic_store(pool.at(TICKET), generation << 32, "seq_cst")
        asleep = b.atomic_load(pool.at(SLEEPERS), "seq_cst")
        with b.when((asleep > 0) & (wanted > 0)):
            b.call(wake_apart, pool, wanted)
    return b


def _write_wake_apart(module: Module) -> Function:
    """Write (pool, wanted): wake up to `wanted` workers, on other processors than the caller's where they may run on others."""
    with module.function("pool_wake_apart", Address(I64, unique=False), I64) as b:
        pool, wanted = b.addresses[0], b.arguments[0]
        rest = b.variable(wanted)
        if _number(b.target, _GETTID_CALL) is not None:
            allowed, others = b.stack(I64, _PROCESSORS // 64), b.stack(I64, _PROCESSORS // 64)
            size, here = b.const(I64, _PROCESSORS // 8), b.intrinsic("sched_getcpu", I32, []).to(I64)
            with b.loop(0, b.min(wanted, b.const(I64, APART))) as index:
                thread = b.atomic_load(pool.at(index + ASLEEP)).to(I32)
                with (
                    b.when(thread.ne(0) & (here >= 0)),
                    b.when(_affinity(b, "get", thread, size, allowed)),
                    b.when(_leave_out(b, allowed, here, others).ne(0)),
                    b.when(_affinity(b, "set", thread, size, others)),
                ):
                    _wake(b, pool, b.const(I64, 1), b.const(I64, 1) << (index & 31))
                    _affinity(b, "set", thread, size, allowed)
                    rest.add(-1)
        _wake(b, pool, rest.value, b.const(I64, _ALL))
    return b


def _affinity(b: Function, verb: str, thread: Register, size: Register, processors: Pointer) -> Register:
    """Get or set the processors on which a thread may run; returns whether that succeeded."""
    return b.intrinsic(f"sched_{verb}affinity", I32, [thread, size, processors]).eq(0)


def _leave_out(b: Function, allowed: Pointer, here: Register, others: Pointer) -> Register:
    """Write the processors of `allowed` without `here` to `others`; returns 0 where none is left."""
    left = b.variable(b.const(I64, 0))
    with b.loop(0, _PROCESSORS // 64) as part:
        bit = b.select((here >> 6).eq(part), b.const(I64, 1) << (here & 63), 0)
        rest = allowed.load(part) & ~bit
        others.store(rest, part)
        left.set(left.value | rest)
    return left.value


def _write_worker(module: Module, drain: Function) -> None:
    """Write a worker's loop: wait for a generation, help with it, until it is stopped. The first one is whichever is there."""
    with module.function("pool_worker", Address(I64, unique=False), I64, export=True) as b:
        pool, index = b.addresses[0], b.arguments[0]
        seen = b.variable(b.const(I64, -1))
        gettid = _number(b.target, _GETTID_CALL)
        thread = b.const(I64, 0) if gettid is None else _system_call(b, [b.const(I64, gettid), *_zeros(b, 6)])
        with b.repeat() as living:
            _wait_for_generation(b, pool, seen.value, index, thread)
            seen.set(b.atomic_load(pool.at(TICKET), "acquire") >> 32)
            living.stop_if(b.atomic_load(pool.at(STOP), "acquire").ne(0))
            with b.when((seen.value & 1).eq(0) & (index < b.atomic_load(pool.at(WORKERS)))):
                write_control(b, b.atomic_load(pool.at(CONTROL)))
                b.call(drain, pool, seen.value)


def _wait_for_generation(b: Function, pool: Pointer, seen: Register, index: Register, thread: Register) -> None:
    """Let worker `index` spin, then sleep, until there is an even generation other than `seen`."""
    spins = b.variable(b.const(I64, 0))
    with b.repeat() as waiting:
        generation = b.atomic_load(pool.at(TICKET), "acquire") >> 32
        waiting.stop_if(generation.ne(seen) & (generation & 1).eq(0))
        b.pause()
        spins.add(1)
        active = b.atomic_load(pool.at(ACTIVE)).ne(0)
        with b.when(spins.value > b.select(active, b.const(I64, _SPINS_ACTIVE), _SPINS_IDLE)):
            b.atomic_add(pool.at(SLEEPERS), 1, "seq_cst")
            with b.when(index < APART):
                b.atomic_store(pool.at(index + ASLEEP), thread, "seq_cst")
            _sleep(b, pool, seen, index)
            with b.when(index < APART):
                b.atomic_store(pool.at(index + ASLEEP), 0)
            b.atomic_add(pool.at(SLEEPERS), -1, "seq_cst")
            spins.set(0)


def _write_run_region(module: Module, drain: Function, paced: Function, publish: Function) -> Function:
    pointer = Address(I64, unique=False)
    with module.function("pool_run", pointer, I64, PTR, PTR, PTR, I64, I64, pointer, returns=I64) as b:
        pool, state = b.addresses
        threads, kernel, buffers, params, begin, end = b.arguments
        tasks, parts = end - begin, threads * _CHUNKS_PER_THREAD
        most = (tasks + parts - 1) // parts
        is_paced = state.to(I64).ne(0)
        chunk = b.select(is_paced, b.min(most, b.const(I64, FIRST_CHUNK)), most)
        generation = b.atomic_load(pool.at(TICKET)) >> 32
        b.atomic_store(pool.at(TICKET), (generation + 1) << 32, "seq_cst")
        b.fence()
        words = [kernel.to(I64), buffers.to(I64), params.to(I64), begin, tasks, chunk, threads - 1, read_control(b)]
        for place, word in enumerate(words, KERNEL):
            b.atomic_store(pool.at(place), word)
        b.atomic_store(pool.at(DONE), 0)
        b.call(publish, pool, b.min(threads - 1, (tasks - 1) // chunk))
        taken = b.variable(tasks)
        b.branch(
            is_paced,
            lambda: taken.set(b.call(paced, pool, generation + 2, most, state)),
            lambda: b.call(drain, pool, generation + 2),
        )
        _wait_for_others(b, pool, taken.value)
        b.give(begin + taken.value)
    return b


def _wait_for_others(b: Function, pool: Pointer, tasks: Register) -> None:
    """Wait until all tasks that were taken are done; where a worker has lost its processor, let it have this one."""
    spins = b.variable(b.const(I64, 0))
    with b.repeat() as waiting:
        waiting.stop_if(b.atomic_load(pool.at(DONE), "acquire").eq(tasks))
        b.pause()
        spins.add(1)
        with b.when(spins.value > _SPINS_YIELD):
            b.intrinsic("sched_yield", I32, [])


def _write_take(module: Module) -> Function:
    with module.function("pool_take", Address(I64, unique=False), returns=BOOL) as b:
        pool = b.addresses[0]
        with b.when(b.compare_exchange(pool.at(OWNER), 0, b.const(I64, 1))):
            b.atomic_store(pool.at(ACTIVE), 1)
            b.give(b.const(BOOL, True))
        b.give(b.const(BOOL, False))
    return b


def _write_leave(module: Module) -> Function:
    with module.function("pool_leave", Address(I64, unique=False)) as b:
        pool = b.addresses[0]
        b.atomic_store(pool.at(ACTIVE), 0)
        b.atomic_store(pool.at(OWNER), 0, "release")
    return b


def _write_stop(module: Module, take: Function, publish: Function) -> None:
    """Stop the workers, unless a run has the pool; returns whether they were notified."""
    with module.function("pool_stop", Address(I64, unique=False), returns=I32, export=True) as b:
        pool = b.addresses[0]
        with b.when(~b.call(take, pool)):
            b.give(b.const(I32, 0))
        b.atomic_store(pool.at(STOP), 1, "release")
        generation = b.atomic_load(pool.at(TICKET)) >> 32
        b.atomic_store(pool.at(TICKET), (generation + 1) << 32, "seq_cst")
        b.call(publish, pool, b.const(I64, 1 << 20))
        b.give(b.const(I32, 1))


def _sleep(b: Function, pool: Pointer, seen: Register, index: Register) -> None:
    """Let worker `index` sleep while the generation is `seen`, or a moment where the system has no futex."""
    call = _number(b.target, _FUTEX_CALL)
    if call is None:
        b.intrinsic("usleep", I32, [b.const(I32, 100)])
        return
    seen, bit = seen.to(U32).to(I64), b.const(I64, 1) << (index & 31)
    _system_call(b, [b.const(I64, call), _generation(pool), b.const(I64, _FUTEX_WAIT), seen, *_zeros(b, 2), bit])


def _wake(b: Function, pool: Pointer, count: Register, bits: Register) -> None:
    """Wake up to `count` workers of those whose index modulo 32 is one of `bits`."""
    call = _number(b.target, _FUTEX_CALL)
    if call is not None:
        _system_call(b, [b.const(I64, call), _generation(pool), b.const(I64, _FUTEX_WAKE), count, *_zeros(b, 2), bits])


def _number(target: Target, calls: dict[str, int]) -> int | None:
    """Return the number of a system call on Linux."""
    return calls.get(target.triple.partition("-")[0]) if "linux" in target.triple else None


def _generation(pool: Pointer) -> Register:
    """Return the address of the upper half of the ticket, on machines with the lower half first."""
    return pool.of(I32).at(2 * TICKET + 1).to(I64)


def _zeros(b: Function, count: int) -> list[Register]:
    return [b.const(I64, 0)] * count


def _system_call(b: Function, arguments: Sequence[Register]) -> Register:
    kinds: list[Type] = [argument.type for argument in arguments]
    b.declarations["syscall"] = "declare i64 @syscall(i64, ...)"
    listed = ", ".join(f"{kind} {argument.ref}" for kind, argument in zip(kinds, arguments, strict=True))
    return b.value(f"call i64 (i64, ...) @syscall({listed})", I64)
