"""Random choices that can be repeated and made smaller: each is a number, and a list of numbers says what is drawn.

draw = Draw.seeded(7)            draws at random, and notes what it drew in draw.choices
Draw(draw.choices)               draws the same again
Draw(draw.choices[:3])           draws zeros after the third choice: the simplest option each time
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["Draw", "shrink"]

T = TypeVar("T")


class Draw:
    """A source of choices."""

    def __init__(self, choices: Sequence[int], generator: random.Random | None = None) -> None:
        """Draw these choices, and then what `generator` gives; zeros without one."""
        self.choices: list[int] = []
        self._given = list(choices)
        self._generator = generator

    @staticmethod
    def seeded(seed: int) -> Draw:
        """A source that draws at random, always the same for a seed."""
        return Draw([], random.Random(seed))

    def below(self, count: int) -> int:
        """A number of [0, count)."""
        place = len(self.choices)
        if place < len(self._given):
            number = self._given[place] % count
        else:
            number = 0 if self._generator is None else self._generator.randrange(count)
        self.choices.append(number)
        return number

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, of which the first counts as the simplest."""
        return options[self.below(len(options))]

    def chance(self, of: int) -> bool:
        """True once in `of` times; False is the simpler."""
        return self.below(of) == of - 1


def shrink(choices: Sequence[int], fails: Callable[[Sequence[int]], bool], *, tries: int = 400) -> list[int]:
    """Smaller choices for which `fails` still holds: shorter ones, and smaller numbers, one change after the other."""
    best = list(choices)
    left = tries
    while True:
        for candidate in _smaller(best):
            if left == 0:
                return best
            left -= 1
            if fails(candidate):
                best = candidate
                break
        else:
            return best


def _smaller(choices: Sequence[int]) -> Iterator[list[int]]:
    length = len(choices)
    for cut in (length // 2, length // 4, length // 8, 1):
        if cut and choices:
            yield list(choices[:-cut])
    for place, number in enumerate(choices):
        if number:
            yield [*choices[:place], *choices[place + 1 :]]
            yield [*choices[:place], 0, *choices[place + 1 :]]
            if number > 1:
                yield [*choices[:place], number - 1, *choices[place + 1 :]]
