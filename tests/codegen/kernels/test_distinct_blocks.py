"""Distinct elements block by block: what NumPy finds, whatever blocks they are cut into."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I64, Type
from sardonyx.codegen.kernels.distinct import work_bytes
from sardonyx.codegen.kernels.distinct_blocks import MOST_BLOCKS, STATE_WORDS, STEPS, block_of, digits_of, write_step
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Every step for two types."""
    module = Module(target)
    for kind in (F32, I64):
        for name in STEPS:
            write_step(module, f"{name}_{kind}", kind, name)
    engine = Engine(target)
    engine.add(module)
    return engine


def _run(engine: Engine, kind: Type, x: Array, block: int, *, is_sorted: bool) -> tuple[Array, ...]:
    count = x.size
    blocks, digits = -(-count // block), digits_of(kind)
    vectors = [np.zeros(count, np.int64) for _ in range(3)]
    length, work = np.zeros(1, np.int64), np.zeros(count * work_bytes(kind) + 8, np.uint8)
    table, state, totals = np.zeros(blocks * digits * 256, np.int32), np.zeros(STATE_WORDS, np.int64), np.zeros(blocks, np.int64)
    buffers = [x, np.zeros_like(x), *vectors, length, work, table, state, totals]

    def step(name: str, number: int = 0) -> None:
        for task in reversed(range(1 if name == "shared" else blocks)):
            call(engine, f"{name}_{kind}", buffers, [count, block, blocks, number], task, task + 1)

    step("keys")
    step("shared")
    for number in range(digits):
        if number:
            step("recount", number)
        step("spread", number)
    for name in ("groups", "numbers", *(["results"] if is_sorted else ["firsts", "renumber", "renumbered_results", "inverse"])):
        step(name)
    total = int(length[0])
    firsts, inverse, counts = vectors
    return buffers[1][:total], firsts[:total], inverse, counts[:total]


def _expected(x: Array, *, is_sorted: bool) -> tuple[Array, ...]:
    values, firsts, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    if is_sorted:
        return values, firsts, inverse, counts
    order = np.argsort(firsts)
    numbers = np.empty_like(order)
    numbers[order] = np.arange(order.size)
    return values[order], firsts[order], numbers[inverse], counts[order]


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("spread", [1, 5, 300, 1 << 40])
def test_any_blocks_find_the_same(engine: Engine, spread: int, block: int, is_sorted: bool) -> None:
    """In every type, for bytes that are the same in all keys and for those that are not, and with the last block run first."""
    numbers = np.random.default_rng(spread).integers(-spread, spread, 257)
    for kind, x in ((I64, numbers), (F32, numbers.astype(np.float32) / 8)):
        found = _run(engine, kind, x, block, is_sorted=is_sorted)
        for one, other in zip(found, _expected(x, is_sorted=is_sorted), strict=True):
            np.testing.assert_array_equal(one, other)


def test_each_nan_is_another(engine: Engine) -> None:
    """And comes last; zeros of both signs are one."""
    x = np.array([np.nan, -0.0, 1, 0.0, np.nan], np.float32)
    values, firsts, inverse, counts = _run(engine, F32, x, 2, is_sorted=True)
    np.testing.assert_array_equal(values, [-0.0, 1, np.nan, np.nan])
    assert (firsts.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 0, 4], [2, 0, 1, 0, 3], [2, 1, 1, 1])


@pytest.mark.parametrize("count", [1, 1 << 16, (1 << 24) + 1, (1 << 31) - 1])
def test_there_are_few_blocks(count: int) -> None:
    """However many elements there are."""
    assert -(-count // block_of(count)) <= MOST_BLOCKS
