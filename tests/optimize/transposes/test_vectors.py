"""Transposes through operators with a number for each dimension."""

from __future__ import annotations

import pytest
from support.transposing import operators, pushed

BACK = "y = Transpose(a) {perm = [0, 3, 1, 2]}"


@pytest.mark.parametrize(
    "step",
    [
        "Pad(t, pads)",
        "Pad(t, two, zero, axes)",
        "Slice(t, one, two_, axis)",
        "Slice(t, starts, ends)",
        "Tile(t, repeats)",
        "Expand(t, shape)",
        'Resize(t, _, scales) {mode = "nearest"}',
        'Resize(t, _, _, sizes) {mode = "nearest"}',
        'Resize(t, _, _, pair) {mode = "nearest", axes = [1, 2]}',
    ],
)
def test_two_transposes_around_an_operator_vanish(step: str) -> None:
    """The numbers are reordered, axes renamed."""
    constants = """
    pads: int64[8] = [0, 1, 0, 2, 0, 0, 3, 0]
    two: int64[2] = [1, 2]
    zero: float[] = 0.0
    axes: int64[1] = [-1]
    one: int64[1] = [1]
    two_: int64[1] = [2]
    axis: int64[1] = [-1]
    starts: int64[3] = [0, 1, 1]
    ends: int64[3] = [2, 3, 3]
    repeats: int64[4] = [1, 2, 3, 1]
    shape: int64[4] = [2, 4, 6, 3]
    scales: float[4] = [1, 2, 3, 1]
    sizes: int64[4] = [2, 8, 6, 3]
    pair: int64[2] = [8, 12]
    """
    assert operators(pushed(f"{constants}\n a = {step}\n {BACK}")) == [step.split("(")[0]]


def test_numbers_that_are_computed_are_gathered() -> None:
    """Tile with repeats that a feed gives."""
    held = pushed(f"a = Tile(t, repeats)\n {BACK}", inputs="x: float[2, 3, 4, 6], repeats: int64[4]")
    assert operators(held) == ["Gather", "Tile"]


@pytest.mark.parametrize("attributes", ["", " {start = 1}", " {start = -3, end = -1}"])
def test_a_shape_is_reordered(attributes: str) -> None:
    """The transpose goes: its numbers alone are reordered, and cut where they were."""
    assert operators(pushed(f"y = Shape(t){attributes}")) == ["Shape", "Gather"]


def test_what_grows_stays_where_no_transpose_waits() -> None:
    """A transpose behind would move more than the one in front."""
    held = pushed('s: float[4] = [1, 2, 2, 1]\n y = Resize(t, _, s) {mode = "nearest"}')
    assert operators(held) == ["Transpose", "Resize"]


def test_an_old_upsample_reorders_its_attribute() -> None:
    """Scales were an attribute before opset 9."""
    assert operators(pushed(f"a = Upsample(t) {{scales = [1.0, 2.0, 2.0, 1.0]}}\n {BACK}", opset=7)) == ["Upsample"]


def test_an_old_pad_reorders_its_attribute() -> None:
    """Pads were an attribute before opset 11."""
    assert operators(pushed(f"a = Pad(t) {{pads = [0, 1, 0, 0, 0, 1, 2, 0]}}\n {BACK}", opset=9)) == ["Pad"]
