"""Random numbers that repeat."""

from __future__ import annotations

from sardonyx.codegen.run.random_source import random_source
from sardonyx.forks import without_fork

__all__ = ["set_seed"]


def set_seed(seed: int) -> None:
    """Make nodes that draw random numbers without a seed of their own repeat them from here on, in the whole process.

    The same numbers come again if the same nodes run in the same order. Nodes with the attribute `seed` are not touched: they draw
    the same numbers at every run.

    Any integer is a seed, also a negative one.

    Raises:
        TypeError: `seed` is no integer.
    """
    with without_fork():
        from sardonyx.providers.reference.kernels import random  # NumPy's kernels are not loaded before a session needs them

    random.set_seed(seed)
    random_source.restart(int(seed) % 2**64)
