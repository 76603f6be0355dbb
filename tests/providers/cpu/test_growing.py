"""Recorded bindings as instructions: whether they hold for other sizes, and what words they give."""

from __future__ import annotations

import dataclasses as plain
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest

from sardonyx.ir import Dim
from sardonyx.ir.shape import maximum, symbol
from sardonyx.native_program import NativeGrowth
from sardonyx.providers.cpu.growing import growth_of
from sardonyx.providers.cpu.placed import ArenaPlaces, Planned
from sardonyx.providers.cpu.recorded import RecordedSizes, Recorder
from sardonyx.providers.cpu.recording import Recording

N, B = symbol("n"), symbol("b")


def _recording(inputs: Sequence[Dim], results: Sequence[Dim], outputs: Sequence[Dim]) -> Recording:
    """Return what is recorded at n = 20 with b = 3, of results that words 100, 101, … of the table are, and a place has."""
    recorder = Recorder()
    sizes: Any = RecordedSizes({"n": 20, "b": 3}, ["n"], recorder)
    numbers = [sizes(dim) for dim in results]
    replay = recorder.function(numbers)
    words = np.arange(len(numbers)) + 100, np.arange(len(numbers))
    dims = [sizes(dim) for dim in inputs], [[sizes(dim) for dim in outputs]]
    base: Any = Planned(_places(80), cast(Any, None), {}, [])
    pointers = np.array([101, 205]), np.array([0, 0])
    return Recording(base, ("n",), {"b": 3}, replay, words, [0], pointers, (), recorder.operations, numbers, dims)


def _places(most: int, offset: int = 64) -> ArenaPlaces:
    return ArenaPlaces([0], [most], [offset], most)


def _computed(growth: NativeGrowth | None, inputs: Sequence[int]) -> tuple[dict[int, int], list[list[int]]] | None:
    """Return the words of the table and the sizes of outputs for sizes of inputs; None where a condition does not hold."""
    assert growth is not None
    signs: dict[str, Callable[[int, int], int]] = {
        "+": lambda a, b: a + b,
        "*": lambda a, b: a * b,
        "//": lambda a, b: a // b,
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
    }
    registers = [*inputs, *growth.constants]
    for sign, left, right in growth.instructions:
        registers.append(signs[sign](registers[left], registers[right]))
        if sign in ("==", "!=", "<", "<=") and not registers[-1]:
            return None
    return {word: registers[place] for place, word in growth.writes}, [[registers[r] for r in dims] for dims in growth.output_dims]


def test_words_and_outputs_are_computed_of_the_sizes_of_inputs() -> None:
    """By what was recorded."""
    growth = growth_of(_recording([B, N, 7], [N * 4, N // 3 + B], [B, N + 1]), _places(400))
    assert _computed(growth, [3, 41, 7]) == ({100: 164, 101: 16}, [[3, 42]])


def test_words_that_point_into_the_arena_move_with_its_places() -> None:
    """By as much as these; the others stay."""
    growth = growth_of(_recording([N], [N * 4, N + 5], []), _places(400, offset=96))
    assert _computed(growth, [30]) == ({100: 120, 101: 35 + 32}, [[]])


@pytest.mark.parametrize("sizes", [[2, 41, 7, 42], [3, 41, 8, 42], [3, 41, 7, 41]])
def test_other_sizes_of_inputs_than_were_recorded_do_not_hold(sizes: list[int]) -> None:
    """A symbol that stayed, a constant, and what a symbol that changes decides."""
    growth = growth_of(_recording([B, N, 7, N + 1], [N * 4], []), _places(400))
    assert _computed(growth, [3, 41, 7, 42]) is not None
    assert _computed(growth, sizes) is None


def test_a_symbol_has_one_size() -> None:
    """In all inputs."""
    growth = growth_of(_recording([N, N], [N * 4], []), _places(400))
    assert _computed(growth, [30, 30]) is not None
    assert _computed(growth, [30, 31]) is None


def test_temporaries_have_the_space_that_they_need() -> None:
    """The place in the arena is that of the first number."""
    growth = growth_of(_recording([N], [N * 4], []), _places(100))
    assert _computed(growth, [25]) == ({100: 100}, [[]])
    assert _computed(growth, [26]) is None


def test_comparisons_turn_out_as_they_did() -> None:
    """Those that held, and those that did not."""
    growth = growth_of(_recording([N], [maximum(N, 15), maximum(N, 30) + N], []), _places(400))
    assert _computed(growth, [16]) == ({100: 16, 101: 46}, [[]])
    assert _computed(growth, [14]) is None
    assert _computed(growth, [31]) is None


def test_what_no_input_shows_or_plans_must_be_asked_for_takes_python() -> None:
    """As do outputs whose sizes are not recorded."""
    assert growth_of(_recording([N + 1], [N], []), _places(400)) is None
    recording = _recording([N], [N], [])
    assert growth_of(recording, _places(400)) is not None
    assert growth_of(plain.replace(recording, asked=(3,)), _places(400)) is None
    assert growth_of(plain.replace(recording, dims=None), _places(400)) is None
