"""The machine code that finds shapes; what it does is tested through sessions (tests/session/test_native_growth.py)."""

from __future__ import annotations

import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.run.python_shapes import write_find, write_take_lane
from sardonyx.codegen.target import available_levels, host_target


@pytest.mark.parametrize("level", available_levels())
def test_functions_are_the_modules_own(level: str) -> None:
    """Only `run` is seen from outside."""
    module = Module(host_target(level))
    find, take = write_find(module), write_take_lane(module)
    assert find.symbol == "python_find"
    assert take.symbol == "python_take_lane"
