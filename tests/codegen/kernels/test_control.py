"""Kernels that decide which step follows."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.kernels.control import FULL, READ, SLICE, TOO_MANY, WRITE, write_branch, write_enter, write_jump, write_next
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import DONE, STATUS, Buffer, KernelCall, StepTable
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

ANY = (1 << 63) - 1


@pytest.fixture(name="kernels")
def _kernels(target: Target) -> Engine:
    """The kernels, and `add`: the second buffer is the first one plus the parameter."""
    module = Module(target)
    for name, write in (("jump", write_jump), ("branch", write_branch), ("enter", write_enter), ("next", write_next)):
        write(module, name)
    with module.kernel("add") as b:
        b.buffer(1, I64).store(b.buffer(0, I64).load() + b.param(0))
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.fixture(name="driver")
def _driver(target: Target) -> Driver:
    return Driver(target)


def _run(driver: Driver, steps: list[KernelCall], *arrays: Array) -> int:
    table = StepTable(steps, len(arrays))
    table.set_bases([array.ctypes.data for array in arrays])
    return driver.run(table)


def test_a_jump_skips_steps(kernels: Engine, driver: Driver) -> None:
    """As many as its parameter says."""
    x = np.zeros(1, np.int64)
    add = KernelCall(kernels.address("add"), [Buffer(1), Buffer(1)], [1])
    steps = [KernelCall(kernels.address("jump"), [Buffer(STATUS)], [2]), add, add, add]
    assert _run(driver, steps, x) == DONE
    assert x.tolist() == [1]


@pytest.mark.parametrize("byte", [0, 1, 255])
def test_a_branch_asks_a_byte(kernels: Engine, driver: Driver, byte: int) -> None:
    """It skips where that is 0."""
    x = np.zeros(1, np.int64)
    add = KernelCall(kernels.address("add"), [Buffer(1), Buffer(1)], [1])
    steps = [KernelCall(kernels.address("branch"), [Buffer(STATUS), Buffer(2)], [1]), add, add]
    assert _run(driver, steps, x, np.array([byte], np.uint8)) == DONE
    assert x.tolist() == [1 if byte == 0 else 2]


class _Sums:
    """A loop whose body adds 2 to a carried value, and keeps slices of the sum."""

    def __init__(self, kernels: Engine, *, is_exact: bool, capacity: int = 0, most: int = ANY, slices: int = 8) -> None:
        self.x, self.y, self.spare = (np.array([number]) for number in (5, -1, -1))
        self.slices, self.counter = np.full(slices, -1), np.array([7])
        self.trips, self.first, self.condition = np.array([0]), np.array([1], np.uint8), np.array([1], np.uint8)
        add = kernels.address("add")
        x, y, spare, slices_, counter, trips, first, condition = (Buffer(base) for base in range(1, 9))
        moves = [(-4, READ, 0), (-3, WRITE, 0), (-2, WRITE, 0), (-1, SLICE, 0, 0, 8)]
        words = [word for move in moves for word in (*move, 0, 0, 0)[:6]]
        self.steps = [
            KernelCall(kernels.address("enter"), [Buffer(STATUS), counter], [2]),
            KernelCall(add, [x, y], [2]),
            KernelCall(add, [y, slices_], [0]),
            KernelCall(
                kernels.address("next"),
                [Buffer(STATUS), counter, trips, first, condition, x, y, spare],
                [-3, len(moves), most, int(is_exact), capacity, 0, 1, 8, *words],
            ),
        ]

    def table(self, trips: int) -> StepTable:
        """The steps for a number of iterations."""
        self.trips[0] = trips
        arrays = [self.x, self.y, self.spare, self.slices, self.counter, self.trips, self.first, self.condition]
        made = StepTable(self.steps, len(arrays))
        made.set_bases([array.ctypes.data for array in arrays])
        return made


@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize("trips", [-1, 0, 1, 2, 3, 6])
def test_the_last_value_is_in_the_output(kernels: Engine, driver: Driver, trips: int, is_exact: bool) -> None:
    """However many iterations there are; the first one is not written to, and a table runs again as before."""
    sums = _Sums(kernels, is_exact=is_exact)
    table, count = sums.table(trips), max(trips, 0)
    for _ in range(2):
        sums.slices[:] = -1
        assert driver.run(table) == DONE
        assert (sums.x.item(), sums.y.item(), sums.counter.item()) == (5, 5 + 2 * count, count)
        assert sums.slices.tolist() == [*range(7, 7 + 2 * count, 2), *[-1] * (8 - count)]


def test_a_false_condition_ends_the_loop(kernels: Engine, driver: Driver) -> None:
    """The first one prevents it; that of the body is heard after an iteration."""
    sums = _Sums(kernels, is_exact=False)
    sums.condition[0] = 0
    assert driver.run(sums.table(6)) == DONE
    assert (sums.y.item(), sums.counter.item()) == (7, 1)
    sums.first[0] = 0
    assert driver.run(sums.table(6)) == DONE
    assert (sums.y.item(), sums.counter.item()) == (5, 0)


def test_too_many_iterations_are_reported(kernels: Engine, driver: Driver) -> None:
    """One more than are allowed is not begun."""
    sums = _Sums(kernels, is_exact=False, most=3)
    assert driver.run(sums.table(3)) == DONE
    table = sums.table(4)
    assert (driver.run(table), table.status) == (3, TOO_MANY)


@pytest.mark.parametrize(("trips", "full"), [(3, []), (4, [[7, 9, 11]]), (7, [[7, 9, 11], [13, 15, 17]])])
def test_where_slices_have_no_room_left_the_caller_is_asked(
    kernels: Engine, driver: Driver, trips: int, full: list[list[int]]
) -> None:
    """He finds the slices so far; the next ones lie at the beginning again."""
    sums = _Sums(kernels, is_exact=False, capacity=3, slices=3)
    table = sums.table(trips)
    found: list[list[int]] = []

    def asked() -> None:
        assert table.status == FULL
        found.append(sums.slices.tolist())

    assert driver.prepare(table)(0, None, asked) == DONE
    assert found == full
    assert sums.slices[(trips - 1) % 3] == sums.y == 5 + 2 * trips
