"""Words that are cut, and tiles of widened rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, I32, U8, U32, Type
from sardonyx.codegen.kernels.quantized.pairs import cut_lanes, cut_vector, cut_words, multiply_pairs
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, emulated_target

_PAIRS = [emulated_target("avx2", ["avx2"]), emulated_target("avx512", ["avx512bw"]), emulated_target("portable", ["sse2"])]


def test_first_halves_of_some_words_come_before_the_second_ones() -> None:
    """Two words at a time."""
    words = np.arange(16, dtype=np.uint8)
    cut_words(words, 2)
    assert words.tolist() == [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]


def test_words_stay_whole_where_an_instruction_takes_four_bytes() -> None:
    """Then none are cut together, and nothing is moved."""
    assert cut_lanes(emulated_target("avx2", ["avxvnni"])) == 0
    assert [cut_lanes(target) for target in _PAIRS] == [8, 16, 4]
    words = np.arange(8, dtype=np.uint8)
    cut_words(words, 0)
    assert words.tolist() == list(range(8))


def test_a_vector_is_cut_as_words_are(target: Target) -> None:
    """By the kernel that packs."""
    lanes, module, engine = target.lanes(32), Module(target), Engine(target)
    with module.kernel("cut") as b:
        b.buffer(1, I32).store(cut_vector(b.buffer(0, U32).load(0, lanes)), 0, lanes)
    engine.add(module)
    words = np.arange(lanes * 4, dtype=np.uint8)
    result = np.zeros_like(words)
    call(engine, "cut", [words, result], [])
    cut_words(words, lanes)
    np.testing.assert_array_equal(result, words)


@pytest.mark.parametrize("right", [U8, I8], ids=lambda kind: kind.kind.value)
@pytest.mark.parametrize("pairs", _PAIRS, ids=lambda target: target.isa)
def test_sums_of_extreme_numbers_are_exact(pairs: Target, right: Type) -> None:
    """The ends of the ranges, which sums of 16 bits do not hold; rows may be of either sign."""
    lanes, groups, height = pairs.lanes(32), 3, 2
    module, engine = Module(pairs), Engine(pairs)
    with module.kernel("tile") as b:
        sums = [b.variable(b.const(I32.vector(lanes), 0)) for _ in range(2 * height)]
        rows = [b.buffer(0, U8).at(i * groups * 8) for i in range(height)]
        multiply_pairs(b, rows, b.buffer(1, I32), 2 * lanes, b.param(0), sums, right=right)
        for place, total in enumerate(sums):
            b.buffer(2, I32).store(total.value, place * lanes, lanes)
    engine.add(module)
    low, high = (0, 255) if right == U8 else (-128, 127)
    for end, sign in itertools.product((low, high), (-128, 255)):
        a = np.full((height, groups * 4), sign, np.int16)
        a[1, ::3] = 7
        b = np.full((groups * 4, 2 * lanes), end, np.int16)
        b[1::3, ::2] = 5
        packed = np.ascontiguousarray(b.astype(np.uint8).reshape(groups, 4, 2 * lanes).transpose(0, 2, 1))
        cut_words(packed, lanes)
        result = np.zeros((height, 2 * lanes), np.int32)
        call(engine, "tile", [a, packed, result], [groups])
        np.testing.assert_array_equal(result, a.astype(np.int64) @ b.astype(np.int64))
