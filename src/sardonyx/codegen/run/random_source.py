"""The random numbers of the process that compiled kernels draw from: two words, as `codegen.kernels.signal.random` has them."""

from __future__ import annotations

import os

import numpy as np

from sardonyx.forks import renew_in_child

__all__ = ["RandomSource", "random_source"]


class RandomSource:
    """A seed, and how many streams were taken. Any number of kernels may take some at a time."""

    def __init__(self) -> None:
        """Begin with a seed that nobody chose."""
        self._words = np.array([_chosen_by_chance(), 0], np.uint64)
        self.address = int(self._words.ctypes.data)
        """Where the two words are, for as long as the process lives."""
        self._is_seeded = False

    def restart(self, seed: int) -> None:
        """Begin anew from a seed of 64 bits."""
        self._words[:] = seed, 0
        self._is_seeded = True

    def after_fork(self) -> None:
        """Draw other numbers than the parent, unless the seed was given."""
        if not self._is_seeded:
            self._words[0] = _chosen_by_chance()


def _chosen_by_chance() -> int:
    return int.from_bytes(os.urandom(8), "little")


random_source = RandomSource()
"""The one of the process."""
renew_in_child(random_source)
