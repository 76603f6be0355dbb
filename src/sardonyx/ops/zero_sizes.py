"""Whether sizes that follow from other shapes may be 0 where a Reshape reads them, and where they are broadcast.

    x[3, m] ─ Reshape to [m, -1]        (m, 3), but (3, 0) where m is 0, which copies the size of the input
    x[m] + y[n]                         max(m, n), but 0 where one of them is 0 and the other 1

Builds take such sizes for others than 0, as those of all but empty tensors are; what runs them refuses 0 (SizesNotInferred).
A build for runs with such a 0 infers nothing from sizes that a Reshape reads.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

__all__ = ["may_be_zero", "with_zero_sizes"]

_MAY_BE_ZERO = contextvars.ContextVar("may_be_zero", default=False)


def may_be_zero() -> bool:
    """Return whether this thread builds a model for runs in which such sizes may be 0."""
    return _MAY_BE_ZERO.get()


@contextlib.contextmanager
def with_zero_sizes(is_so: bool) -> Iterator[None]:
    """Let inference of this thread take, or not take, such sizes for others than 0 within the block."""
    token = _MAY_BE_ZERO.set(is_so)
    try:
        yield
    finally:
        _MAY_BE_ZERO.reset(token)
