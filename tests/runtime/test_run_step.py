"""Running one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.providers import DeviceMemory

from sardonyx.errors import EPFail
from sardonyx.provider import HOST, Bound
from sardonyx.runtime.plan import CopyStep, ProgramStep
from sardonyx.runtime.run_step import call, copy, run_trivial, shape_of


class _Program:
    makes_outputs = True

    def __init__(self, *results: Any) -> None:
        self._results = results

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return Bound((None,))

    def run(self, bound: Bound, inputs: Any, outputs: Any, scratch: Any) -> Any:
        return self._results


def test_what_a_program_makes_goes_to_its_slots() -> None:
    """The frame holds it afterwards."""
    frame: list[Any] = [1, None]
    run_trivial(ProgramStep(_Program("made"), "part_0", "Odd", HOST, (0,), (1,), ()), frame)
    assert frame == [1, "made"]


def test_too_few_results_name_the_provider() -> None:
    """The error says how many were expected."""
    step = ProgramStep(_Program(), "part_0", "Odd", HOST, (0,), (1,), ())
    with pytest.raises(EPFail, match="Odd returned 0 values for partition part_0, expected 1"):
        call(step, Bound((None,)), [1], [None], None)


def test_a_tensor_goes_to_a_device_and_back() -> None:
    """Two copies make an equal array."""
    device, x = DeviceMemory(), np.float32([1, 2])
    frame: list[Any] = [x, None, None]
    copy(CopyStep(0, 1, HOST, device, "Odd", ()), frame)
    copy(CopyStep(1, 2, device, HOST, "Odd", ()), frame)
    assert frame[2].tolist() == [1, 2]
    assert [shape_of(value) for value in (*frame, "text")] == [(2,), (2,), (2,), None]
