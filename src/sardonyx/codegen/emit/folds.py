"""Ways to make one of many, and the order in which it is done.

Turns of a loop are put together by blocks, and blocks by blocks of blocks, so that the rounding error of a sum does not grow with
its length as one long chain's would:

    turns    0 … 31 | 32 … 63 | …        chains: neighbours of one turn that do not wait for each other
    blocks   0       1          … 31 | 32 …
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.types import U32, U64, Kind, Type
from sardonyx.codegen.emit.values import Number, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["MAX", "MIN", "PRODUCT", "SUM", "Fold", "Folding", "across", "in_turns"]

Written = TypeVar("Written")

_SHUFFLED_BITS = 32
"""Lanes of fewer bits are brought together from two vectors by several instructions."""
_TURNS = 32
"""Turns of one block, and blocks of the next larger one."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A way to make one of many."""

    name: str
    """Its name, for symbols."""
    neutral: Callable[[Type], Number]
    """What changes nothing when combined; the result of folding nothing."""
    combine: Callable[[Function, Register, Register], Register]
    """What has been folded so far, and one more."""


def _least(kind: Type) -> Number:
    if kind.kind is Kind.UNSIGNED:
        return 0
    return -math.inf if kind.is_float else -(1 << (kind.bits - 1))


def _greatest(kind: Type) -> Number:
    if kind.kind is Kind.UNSIGNED:
        return (1 << kind.bits) - 1
    return math.inf if kind.is_float else (1 << (kind.bits - 1)) - 1


def _maximum(b: Function, found: Register, value: Register) -> Register:
    if not value.type.is_float:
        return b.max(found, value)
    return _either(b.select(found > value, found, value), b.select(value > found, value, found))


def _minimum(b: Function, found: Register, value: Register) -> Register:
    if not value.type.is_float:
        return b.min(found, value)
    return _either(b.select(found < value, found, value), b.select(value < found, value, found))


def _either(one: Register, other: Register) -> Register:
    """Return the bits of two registers that are equal, but for the sign of zeros, or of which one is NaN: then they are one's, too.

    Each is one instruction, which gives its second operand where one is NaN, and neither waits for a mask.
    """
    words = U64 if one.type.bits == U64.bits else U32
    return (one.bits_as(words) | other.bits_as(words)).bits_as(one.type.scalar)


SUM = Fold("sum", lambda kind: 0, lambda b, total, value: total + value)
PRODUCT = Fold("prod", lambda kind: 1, lambda b, total, value: total * value)
MAX = Fold("max", _least, _maximum)
"""The greatest; NaN if there is one; of zeros of both signs -0."""
MIN = Fold("min", _greatest, _minimum)
"""The least; NaN if there is one; of zeros of both signs -0."""


def across(b: Function, fold: Fold, vectors: Sequence[Register]) -> list[Register]:
    """Fold the lanes of each vector to one scalar, in the order of `Function.reduce`: several vectors in the same steps.

    After each step a vector holds what is left of twice as many:

        a0 a1 a2 a3   b0 b1 b2 b3   ─►   a0+a2 a1+a3 b0+b2 b1+b3   ─►   a b
    """
    count, left = len(vectors), vectors[0].type.lanes
    if count == 1 or count & (count - 1) or count > left or vectors[0].type.scalar.bits < _SHUFFLED_BITS:
        return [b.reduce(vector, lambda low, high: fold.combine(b, low, high)) for vector in vectors]
    parts = list(vectors)
    while left > 1:
        half = left // 2
        pairs = [(low, high) for low, high in zip(parts[::2], parts[1::2], strict=True)] if len(parts) > 1 else [(parts[0], None)]
        parts, left = [_folded(b, fold, low, high, left) for low, high in pairs], half
    return [parts[0].lane(number) for number in range(count)]


def _folded(b: Function, fold: Fold, low: Register, high: Register | None, left: int) -> Register:
    """Combine the halves of each group of `left` lanes of one or two vectors; the results lie side by side."""
    groups, half = low.type.lanes * (1 if high is None else 2) // left, left // 2
    halves = ([group * left + first + i for group in range(groups) for i in range(half)] for first in (0, half))
    return fold.combine(b, *(low.shuffle(lanes, high) for lanes in halves))


@dataclass(frozen=True, slots=True)
class Folding:
    """Some folds of vectors side by side."""

    b: Function
    """Where to write."""
    fold: Fold
    """How to fold."""
    kind: Type
    """The type of the vectors."""
    width: int
    """How many folds there are."""
    unit: int | Register
    """How far it is from one term to the next."""
    chains: int
    """How many terms of each fold are taken in one turn, each into a chain of its own."""

    def totals(self) -> list[Variable]:
        """Return totals of which nothing has been folded so far."""
        neutral = self.b.const(self.kind, self.fold.neutral(self.kind.scalar))
        return [self.b.variable(neutral) for _ in range(self.width)]

    def take(self, totals: Sequence[Variable], terms: Sequence[Register]) -> None:
        """Combine what has been folded with a term each."""
        for total, value in zip(totals, terms, strict=True):
            total.set(self.fold.combine(self.b, total.value, value))

    def take_range(
        self,
        totals: Sequence[Variable],
        begin: Register,
        end: Register,
        terms: Callable[[Register], Sequence[Register]],
        depth: int,
    ) -> None:
        """Take the terms at begin, begin + unit, … less than `end`, whose number is a multiple of `chains`.

        `depth` says of what to make blocks: of turns (1), or of blocks of turns too (2).
        """
        b, step = self.b, self.unit * self.chains
        size = step * _TURNS**depth
        parts = [self.totals() for _ in range(self.chains if depth == 1 else 1)]
        neutral = b.const(self.kind, self.fold.neutral(self.kind.scalar))
        with b.loop(begin, end, size) as first:
            for part in itertools.chain(*parts):
                part.set(neutral)
            last = b.min(first + size, end)
            if depth == 1:
                with b.loop(first, last, step) as i:
                    for chain, part_totals in enumerate(parts):
                        self.take(part_totals, terms(i + chain * self.unit))
            else:
                self.take_range(parts[0], first, last, terms, depth - 1)
            combine = functools.partial(self.fold.combine, b)
            self.take(totals, [functools.reduce(combine, [part.value for part in column]) for column in zip(*parts, strict=True)])


def in_turns(b: Function, writers: Sequence[Callable[[], Written]]) -> list[Written]:
    """Call writers and take an instruction of each in turn, so that the processor sees them side by side.

    What one writes no other may read. Where one writes a loop or a branch, their code stays one after another.
    """
    parts: list[list[str]] = []
    values: list[Written] = []
    for write in writers:
        begin = len(b.lines)
        values.append(write())
        parts.append(b.lines[begin:])
        del b.lines[begin:]
    branched = any(line.endswith(":") for part in parts for line in part)
    order = parts if branched else itertools.zip_longest(*parts)
    b.lines.extend(line for lines in order for line in lines if line is not None)
    return values
