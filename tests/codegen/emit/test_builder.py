"""Control flow, variables and vector helpers of a function body."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from support.machines import runnable_machines

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, F32, F64, I8, I32, I64, PTR, U8, Type
from sardonyx.codegen.target import Target

Run = Callable[..., None]


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 67])
def test_a_walk_by_vectors_touches_each_element_once(target: Target, run: Run, n: int) -> None:
    """Whole vectors and tail together cover [0, n) and nothing after it, for every element width."""
    for kind, dtype in [(F32, np.float32), (F64, np.float64), (I8, np.int8)]:
        out = np.zeros(n + 70, dtype)
        module = Module(target)
        with module.kernel("k") as b:
            array = b.buffer(0, kind)
            for i, span in b.vectors(b.begin, b.end, kind):
                array.store(array.load(i, span) + 1, i, span)
        run(module, "k", [out], end=n)
        assert out.tolist() == [1] * n + [0] * 70


@pytest.mark.parametrize(("begin", "end", "step"), [(0, 0, 1), (3, 2, 1), (0, 1, 5), (2, 11, 3), (-4, 5, 4)])
def test_a_loop_counts_like_range(target: Target, run: Run, begin: int, end: int, step: int) -> None:
    """The block runs for each number of range(begin, end, step), never if that is empty."""
    out = np.zeros(2, np.int64)
    module = Module(target)
    with module.kernel("k") as b:
        count, total = b.variable(b.const(I64, 0)), b.variable(b.const(I64, 0))
        with b.loop(b.param(0), b.param(1), b.param(2)) as i:
            count.add(1)
            total.add(i)
        b.buffer(0, I64).store(count.value, 0)
        b.buffer(0, I64).store(total.value, 1)
    run(module, "k", [out], [begin, end, step])
    assert out.tolist() == [len(range(begin, end, step)), sum(range(begin, end, step))]


def test_loops_and_branches_nest(target: Target, run: Run) -> None:
    """A branch in a loop in a loop changes the variable of the outermost block."""
    out = np.zeros(1, np.int64)
    module = Module(target)
    with module.kernel("k") as b:
        total = b.variable(b.const(I64, 0))
        with b.loop(0, 10) as i, b.loop(0, i) as j:
            b.branch((j & 1).eq(0), lambda: total.add(i), lambda: total.add(-1))
            with b.when(j.eq(3)):
                total.add(1000)
        b.buffer(0, I64).store(total.value)
    run(module, "k", [out])
    assert out[0] == sum((i if j % 2 == 0 else -1) + 1000 * (j == 3) for i in range(10) for j in range(i))


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_switch_runs_the_equal_case_or_none(target: Target, run: Run, number: int) -> None:
    """Cases do not fall through."""
    out = np.full(1, -1, np.int64)
    module = Module(target)
    with module.kernel("k") as b, b.switch(b.param(0)) as switch:
        for case in (1, 2):
            with switch.case(case):
                b.buffer(0, I64).store(case * 10)
    run(module, "k", [out], [number])
    assert out[0] == {1: 10, 2: 20}.get(number, -1)


def test_a_repeat_ends_where_it_is_told(target: Target, run: Run) -> None:
    """The block runs until its condition holds; what stands before it has been done."""
    out = np.zeros(1, np.int64)
    module = Module(target)
    with module.kernel("k") as b:
        x = b.variable(b.const(I64, 1))
        with b.repeat() as loop:
            x.set(x.value * 3)
            loop.stop_if(x.value > 100)
        b.buffer(0, I64).store(x.value)
    run(module, "k", [out])
    assert out[0] == 243


def test_functions_are_called_and_return(target: Target, run: Run) -> None:
    """A local function is called by its definition, any function by its address."""
    out = np.zeros(3, np.int64)
    module = Module(target)
    with module.function("twice", I64, returns=I64) as twice:
        with twice.when(twice.arguments[0].eq(7)):
            twice.give(twice.const(I64, -7))
        twice.give(twice.arguments[0] * 2)
    with module.function("apply", PTR, I64, returns=I64, inline=True) as apply:
        callee, number = apply.arguments
        apply.give(apply.call(callee, number, returns=I64) + 1)
    with module.kernel("k") as b:
        result = b.buffer(0, I64)
        result.store(b.call(twice, b.const(I64, 21)), 0)
        result.store(b.call(twice, b.const(I64, 7)), 1)
        result.store(b.call(apply, b.pointer("@twice", I64), b.const(I64, 2)), 2)
    run(module, "k", [out])
    assert out.tolist() == [42, -7, 5]


def test_stack_memory_is_private_to_the_call(target: Target, run: Run) -> None:
    """What is stored on the stack is loaded again."""
    out = np.zeros(4, np.float32)
    module = Module(target)
    with module.kernel("k") as b:
        scratch = b.stack(F32, 16, align=64)
        with b.loop(0, 4) as i:
            scratch.store(i.to(F32) * 2, i)
        b.buffer(0, F32).store(scratch.load(0, 4, align=64))
    run(module, "k", [out])
    assert out.tolist() == [0, 2, 4, 6]


def test_lanes_are_folded_in_a_fixed_order(target: Target, run: Run) -> None:
    """Sum, maximum and minimum over lanes; a mask asks whether any lane holds."""
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32)
    out, found = np.zeros(3, np.float32), np.zeros(2, np.bool)
    module = Module(target)
    with module.kernel("k") as b:
        vector, result, flags = b.buffer(0, F32).load(0, 8), b.buffer(1, F32), b.buffer(2, BOOL)
        for place, fold in enumerate((b.sum_lanes, b.max_lanes, b.min_lanes)):
            result.store(fold(vector), place)
        flags.store(b.any_lane(vector > 8), 0)
        flags.store(b.any_lane(vector > 9), 1)
    run(module, "k", [x, out, found])
    assert out.tolist() == [31, 9, 1]
    assert found.tolist() == [True, False]


def test_vectors_are_joined_and_interleaved(target: Target, run: Run) -> None:
    """Join puts one after the other, interleave takes turns."""
    out = np.zeros((2, 8), np.int32)
    module = Module(target)
    with module.kernel("k") as b:
        low, high = b.iota(I32, 4), b.iota(I32, 4) + 10
        b.buffer(0, I32).store(b.join(low, high))
        b.buffer(0, I32).store(b.interleave(low, high), 8)
    run(module, "k", [out])
    assert out.tolist() == [[0, 1, 2, 3, 10, 11, 12, 13], [0, 10, 1, 11, 2, 12, 3, 13]]


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32, 64])
def test_a_tail_mask_holds_for_the_first_lanes(target: Target, run: Run, lanes: int) -> None:
    """Exactly `remaining` lanes hold, from none to all."""
    for remaining in {0, 1, lanes // 2, lanes - 1, lanes}:
        out = np.zeros(lanes, np.bool)
        module = Module(target)
        with module.kernel("k") as b:
            b.buffer(0, BOOL).store(b.tail_mask(b.param(0), lanes), 0, lanes)
        run(module, "k", [out], [remaining])
        assert out.tolist() == [True] * remaining + [False] * (lanes - remaining)


def test_choices_take_the_second_operand_when_unordered(target: Target, run: Run) -> None:
    """Minimum and maximum are single instructions and so prefer their right side for NaN and for zeros."""
    x, out = np.array([np.nan, 1.0, 2.0], np.float32), np.zeros(4, np.float32)
    module = Module(target)
    with module.kernel("k") as b:
        nan, one, two = (b.buffer(0, F32).load(place) for place in range(3))
        for place, value in enumerate((b.min(one, two), b.max(one, two), b.max(nan, one), b.select(nan > one, 5, two))):
            b.buffer(1, F32).store(value, place)
    run(module, "k", [x, out])
    assert out.tolist() == [1, 2, 1, 2]


def test_numbers_have_their_functions(target: Target, run: Run) -> None:
    """fma, sqrt, abs and NaN tests work on scalars and vectors."""
    x, out = np.array([-4.0, 9.0, np.nan, 16.0], np.float32), np.zeros((4, 4), np.float32)
    module = Module(target)
    with module.kernel("k") as b:
        vector, result = b.buffer(0, F32).load(0, 4), b.buffer(1, F32)
        floor = b.call_math("floor", vector / 5)
        for row, value in enumerate((b.fma(vector, 2, 1), b.abs(vector), b.is_nan(vector).to(F32), floor)):
            result.store(value, row * 4)
    run(module, "k", [x, out])
    np.testing.assert_array_equal(out, [[-7, 19, np.nan, 33], [4, 9, np.nan, 16], [0, 0, 1, 0], [-1, 1, np.nan, 3]])


def test_atomics_lose_no_update(target: Target, run: Run) -> None:
    """Two threads that add, and that compare and exchange, reach the full sum."""
    counts = np.zeros(2, np.int64)
    module = Module(target)
    with module.kernel("k") as b:
        plain, swapped = b.buffer(0, I64), b.buffer(0, I64).at(1)
        with b.loop(0, 10_000):
            b.atomic_add(plain, 1)
            with b.repeat() as attempt:
                old = b.atomic_load(swapped, "acquire")
                attempt.stop_if(b.compare_exchange(swapped, old, old + 1))
                b.pause()
        b.fence()
        b.prefetch(plain)
    threads = [threading.Thread(target=run, args=(module, "k", [counts])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.tolist() == [20_000, 20_000]


def test_unsigned_bytes_wrap(target: Target, run: Run) -> None:
    """Arithmetic on bytes keeps their width."""
    out = np.array([250], np.uint8)
    module = Module(target)
    with module.kernel("k") as b:
        array = b.buffer(0, U8)
        array.store(array.load() + 10)
    run(module, "k", [out])
    assert out[0] == 4


@pytest.mark.parametrize(("kind", "dtype"), [(F32, np.float32), (F64, np.float64)])
@pytest.mark.parametrize("machine", runnable_machines())
def test_round_even_is_exact_with_and_without_an_instruction(run: Run, machine: str, kind: Type, dtype: type) -> None:
    """Ties go to even, signs of zeros stay, and numbers without a fraction, infinities and NaN are left alone."""
    large = 2.0**52 if dtype is np.float64 else 2.0**23
    sizes = [
        0,
        0.5,
        1.5,
        2.5,
        0.49999997,
        1e-40,
        7.3,
        large / 2 - 0.5,
        large - 0.5,
        large - 1,
        large,
        large + 1,
        1e30,
        np.inf,
        np.nan,
    ]
    x = np.array([*sizes, *(-size for size in sizes)], dtype)
    out = np.zeros_like(x)
    module = Module(runnable_machines()[machine])
    with module.kernel("k") as b:
        for i, span in b.vectors(0, x.size, kind):
            b.buffer(1, kind).store(b.round_even(b.buffer(0, kind).load(i, span)), i, span)
    run(module, "k", [x, out])
    np.testing.assert_array_equal(out, np.rint(x))
    np.testing.assert_array_equal(np.signbit(out), np.signbit(x))
