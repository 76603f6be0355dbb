"""Step tables of a binding."""

from __future__ import annotations

from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.step_table import StepTable
from sardonyx.codegen.target import host_target
from sardonyx.providers.cpu.library import driver_for
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.tables import Tables


def _tables() -> Tables:
    runner: Driver = driver_for(host_target())
    return Tables(StepTable([], 2), runner, [], Sizes({}), {})


def test_runs_at_the_same_time_have_a_table_each() -> None:
    """What one gave back the next one takes."""
    tables = _tables()
    first, second = tables.take(), tables.take()
    assert first.table.address != second.table.address
    tables.give_back(first)
    assert tables.take() is first


def test_its_size_is_that_of_all_copies() -> None:
    """Which lie idle."""
    tables = _tables()
    alone = tables.size_bytes
    taken = [tables.take() for _ in range(3)]
    for entry in taken:
        tables.give_back(entry)
    assert tables.size_bytes == 3 * alone


def test_a_copy_is_the_callers() -> None:
    """No run takes it."""
    tables = _tables()
    copy = tables.copy()
    assert tables.take().table.address != copy.address
