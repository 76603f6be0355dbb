"""Runs of machine code on arrays that are not dense, as the columns of a frame are."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from support.native_runs import learned, only_native, run_in_python
from support.session_models import session

from sardonyx.dtypes import Array

TEXT = """graph(a: float[n, 2], b: int64[n]) -> (p: float[n, 2], q: int64[n]) {
    p = Exp(a)
    q = Add(b, b)
}"""
NOT_DENSE: dict[str, Callable[[Array], Array]] = {
    "transposed": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "reversed": lambda a: a[::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
}


@pytest.mark.parametrize("kind", NOT_DENSE)
def test_what_is_not_dense_is_copied_on_the_way(kind: str) -> None:
    """Sessions that get nothing else learn from it too; the arrays stay as they are, and nobody keeps them."""
    a, b = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3)
    feed = {"a": NOT_DENSE[kind](a), "b": NOT_DENSE[kind](b)}
    before = {name: (sys.getrefcount(value), value.tobytes()) for name, value in feed.items()}
    held = learned(session(TEXT), feed)
    expected = run_in_python(held, None, feed)
    with only_native(held):
        for _ in range(3):
            for found, right in zip(held.run(None, feed), expected, strict=True):
                np.testing.assert_array_equal(found, right)
    assert {name: (sys.getrefcount(value), value.tobytes()) for name, value in feed.items()} == before
