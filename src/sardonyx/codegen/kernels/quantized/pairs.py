"""Products of 8-bit integers on processors that multiply pairs of 16 bits, and not four bytes: AVX2 without VNNI, SSE2.

Numbers of A are widened to 16 bits once, those of B in each load. A vector of words, each with four rows of one column (as panels
and filters are packed), is therefore cut into two halves that are loaded one after the other:

    words                rows 4g … 4g + 3 of column 0, then of column 1 …
    cut, `lanes` words   rows 4g, 4g + 1 of each column    rows 4g + 2, 4g + 3 of each column

A widened row has its numbers in order, up to a whole group of four: two words of 32 bits for each group. No product and no sum of
two leaves 32 bits, whatever the signs (`emit.dots.PAIRS`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.dots import dot_pairs, has_pairs
from sardonyx.codegen.emit.types import I8, I16, I32, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.tiles import Ahead
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

__all__ = ["cut_lanes", "cut_vector", "cut_words", "multiply_pairs"]


def cut_lanes(target: Target) -> int:
    """Return how many words are cut together on the target: those of a vector, or 0 where words stay whole."""
    return target.lanes(32) if has_pairs(target) else 0


def cut_words(words: Array, lanes: int) -> None:
    """Cut each `lanes` words of int32 or bytes, in place; 0 leaves all as it is.

    Args:
        words: contiguous, a multiple of `lanes` words.
        lanes: as `cut_lanes`.
    """
    if lanes:
        halves = words.reshape(-1).view(np.uint16)
        halves.reshape(-1, 2, lanes)[...] = halves.reshape(-1, lanes, 2).transpose(0, 2, 1).copy()


def cut_vector(word: Register) -> Register:
    """Return a vector of words as it is stored: cut."""
    lanes = word.type.lanes
    halves = word.bits_as(I16.vector(2 * lanes))
    return halves.shuffle([2 * lane + half for half in range(2) for lane in range(lanes)]).bits_as(I32.vector(lanes))


def multiply_pairs(
    b: Function,
    rows: Sequence[Pointer],
    words: Pointer,
    width: int,
    groups: Register,
    sums: Sequence[Variable],
    *,
    right: Type = I8,
    ahead: Ahead | None = None,
) -> None:
    """Add `groups` steps of four rows of K to the sums of one tile: sums[i, j] += rows[i] . panel[j].

    Args:
        b: the function to write into.
        rows: the address of each widened row of A.
        words: the panel's first group of words, cut.
        width: words from one group to the next.
        groups: how many steps.
        sums: the accumulators, int32 vectors, row by row.
        right: U8 or I8, the numbers of B.
        ahead: what to fetch in the meantime.
    """
    lanes, vectors = sums[0].type.lanes, len(sums) // len(rows)
    numbers = words.of(right)
    with b.loop(0, groups) as group:
        for line in range(0 if ahead is None else ahead.lines):
            if ahead is not None:
                b.prefetch(ahead.address.at(group * ahead.stride + line * lanes), locality=2)
        for half in range(2):
            places = [group * (4 * width) + (4 * j + 2 * half) * lanes for j in range(vectors)]
            columns = [numbers.load(place, 2 * lanes).to(I16).bits_as(I32.vector(lanes)) for place in places]
            for i, row in enumerate(rows):
                factor = row.of(I32).load(group * 2 + half).splat(lanes)
                for j, column in enumerate(columns):
                    total = sums[i * vectors + j]
                    total.set(dot_pairs(b, total.value, factor, column))
