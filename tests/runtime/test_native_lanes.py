"""Step tables for runs at a time, and how their words follow the shapes of a session's inputs."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from sardonyx.codegen.run.python_words import GROWTH, LANE, LANES
from sardonyx.codegen.run.replay import OPERATIONS
from sardonyx.native_program import NativeCall, NativeGrowth
from sardonyx.provider import Bound
from sardonyx.runtime.native_lanes import GrowthWords, Lanes


class _Program:
    """A program that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def native_call(self, bound: Bound) -> NativeCall:
        self.calls += 1
        return NativeCall(1, 100 + self.calls, 3, None)


class _Step(NamedTuple):
    inputs: tuple[int, ...]


class _Only(NamedTuple):
    step: _Step
    results: tuple[int, ...]


def test_a_lane_is_added_where_all_are_taken() -> None:
    """Up to their number."""
    program = _Program()
    lanes = Lanes(program, Bound((), 64))
    assert lanes.add()
    assert lanes.add()
    assert program.calls == 1
    assert not lanes.are_taken
    for count in range(1, LANES + 3):
        lanes.words[len(LANE) * min(count - 1, LANES - 1) + LANE.index("taken")] = 1
        assert lanes.are_taken
        assert lanes.add()
        assert program.calls == min(count + 1, LANES)
    assert lanes.scratch_bytes == 64 * LANES
    assert lanes.words[len(LANE) * 2 + LANE.index("table")] == 103


def test_registers_of_a_program_become_those_of_a_session() -> None:
    """The program reads the third input and then the first; the second must have the shape that it had."""
    growth = NativeGrowth(0, None, [5, 6], [("+", 0, 3), ("<", 2, 5), ("*", 4, 1)], [(7, 30), (0, 31)], [[7, 1], [3]])
    only: Any = _Only(_Step((2, 0)), (1, 0))
    made = GrowthWords.of(growth, ((7,), (8, 9), (10, 11)), only)
    words = dict(zip(GROWTH, made, strict=True))

    def at(name: str, count: int) -> list[int]:
        return list((ctypes.c_int64 * count).from_address(words[name]))

    assert at("registers", 9) == [7, 8, 9, 10, 11, 5, 6, 8, 9]
    assert words["first"] == 9
    code = np.array(at("instructions", 3 * words["instruction_count"])).reshape(-1, 3).tolist()
    signs = [OPERATIONS[sign] for sign, _, _ in code]
    assert signs == ["+", "<", "*", "==", "=="]
    assert [places for _, *places in code] == [[3, 5], [0, 9], [6, 4], [1, 7], [2, 8]]
    assert at("writes", 4) == [11, 30, 3, 31]
    assert at("dims", words["dim_count"]) == [5, 11, 4]
