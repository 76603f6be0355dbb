"""Offsets in an arena."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sardonyx.arena import ALIGNMENT, Lifetime, place, place_apart


def test_tensors_that_do_not_live_together_share_bytes() -> None:
    """A chain of equal tensors needs two places, whatever its length."""
    offsets, total = place([Lifetime(1000, index, index + 1) for index in range(10)])
    assert total == 2 * 1024
    assert set(offsets) == {0, 1024}


def test_nothing_needs_nothing() -> None:
    """An empty plan has no arena."""
    assert place([]) == ([], 0)


def test_a_tensor_goes_into_the_smallest_gap_that_holds_it() -> None:
    """Best fit: gaps of 512 and of 128 bytes are free at step 5, and 60 bytes go into the smaller."""
    placed = [Lifetime(640, 0, 9), Lifetime(512, 0, 4), Lifetime(256, 0, 9), Lifetime(128, 0, 4), Lifetime(64, 0, 9)]
    offsets, _ = place([*placed, Lifetime(60, 5, 9)])
    assert offsets[5] == offsets[3]


@given(
    st.lists(
        st.builds(
            lambda size, first, length: Lifetime(size, first, first + length),
            st.integers(0, 5000),
            st.integers(0, 20),
            st.integers(0, 10),
        ),
        max_size=40,
    )
)
def test_no_two_living_tensors_overlap(lifetimes: list[Lifetime]) -> None:
    """Tensors that live at the same time have disjoint, aligned places inside the arena."""
    offsets, total = place(lifetimes)
    for index, (at, one) in enumerate(zip(offsets, lifetimes, strict=True)):
        assert at % ALIGNMENT == 0
        assert at + one.size_bytes <= total or one.size_bytes == 0
        for other_at, other in zip(offsets[:index], lifetimes[:index], strict=True):
            together = one.first <= other.last and other.first <= one.last
            assert not together or at + one.size_bytes <= other_at or other_at + other.size_bytes <= at


def test_what_must_be_apart_does_not_overlap_and_the_rest_may() -> None:
    """Three tensors, of which the first and the last must not share bytes: two places are enough."""
    offsets, total = place_apart([100, 100, 100], [0b100, 0b000, 0b001])
    assert offsets[0] != offsets[2]
    assert total == 2 * 128
    assert place_apart([], []) == ([], 0)


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=12), st.randoms())
def test_no_two_that_must_be_apart_overlap(sizes: list[int], draw: Any) -> None:
    """Whatever the sizes, and whichever pairs must be apart."""
    apart = [0] * len(sizes)
    for left in range(len(sizes)):
        for right in range(left):
            if draw.random() < 0.5:
                apart[left] |= 1 << right
                apart[right] |= 1 << left
    offsets, total = place_apart(sizes, apart)
    assert all(offset % ALIGNMENT == 0 and offset + size <= total for offset, size in zip(offsets, sizes, strict=True))
    for left, mask in enumerate(apart):
        for right in range(left):
            if mask >> right & 1:
                assert offsets[left] + sizes[left] <= offsets[right] or offsets[right] + sizes[right] <= offsets[left]
