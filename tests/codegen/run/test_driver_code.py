"""What is written of the driver; its runs are tested in test_driver and test_timed_driver."""

from __future__ import annotations

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.run import driver
from sardonyx.codegen.run.driver_code import write_driver, write_timed_driver
from sardonyx.codegen.target import host_target


def test_the_functions_of_the_driver_are_those_by_which_a_known_one_is_found() -> None:
    """A driver from the cache has no text that would tell them."""
    module = Module(host_target())
    write_driver(module)
    assert sorted(module.exports) == sorted(driver._EXPORTS)


def test_a_driver_that_is_timed_notes_the_time_before_and_after_steps() -> None:
    """Once before the first one, once behind each."""
    module, noted = Module(host_target()), []
    write_timed_driver(module, lambda b, number: noted.append(number))
    assert noted[0] != 0  # the walk's, behind a step
    assert noted[1:] == [0]
