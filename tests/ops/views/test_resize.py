"""The view of Resize and Upsample."""

from __future__ import annotations

import numpy as np
import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.inputs import COMPUTED, constants
from sardonyx.ops.views.resize import Resize


def test_scales_were_attributes() -> None:
    """Of height and width in Upsample-1, of every axis in Upsample-7."""
    assert Resize.of(node("Upsample", 1, height_scale=2.0, width_scale=3.0)).scales == (1.0, 1.0, 2.0, 3.0)
    view = Resize.of(node("Upsample", 7, scales=[1.0, 2.0]))
    assert (view.scales, view.scales_input, view.is_by_origin) == ((1.0, 2.0), None, True)


@pytest.mark.parametrize(("op_type", "version", "index"), [("Upsample", 9, 1), ("Resize", 10, 1), ("Resize", 11, 2)])
def test_scales_are_an_input(op_type: str, version: int, index: int) -> None:
    """The second one before Resize-11, the third since."""
    given = node(op_type, version, [*["x"] * index, np.array([0.1, 2], np.float64)])
    view = Resize.of(given, constants(given))
    assert (view.scales_input, view.scales) == (index, (float(np.float32(0.1)), 2.0))
    computed = node(op_type, version, ["x"] * 3)
    assert Resize.of(computed, constants(computed)).scales is COMPUTED


def test_sizes_may_stand_in_for_scales() -> None:
    """An empty input counts as left out."""
    given = node("Resize", 13, ["x", None, np.zeros(0, np.float32), [3, 4]])
    view = Resize.of(given, constants(given))
    assert (view.scales, view.sizes) == (None, (3, 4))


def test_the_nearest_element_of_a_tie_is_the_lower_one() -> None:
    """The default of `nearest_mode` is round_prefer_floor, that of the coordinates half_pixel."""
    view = Resize.of(node("Resize", 11))
    assert (view.rounding, view.coordinates, view.mode, view.is_by_origin) == ("round_prefer_floor", "half_pixel", "nearest", False)


def test_before_11_elements_lie_at_the_origin_of_their_cells() -> None:
    """Coordinates are asymmetric, whatever attributes say that came later."""
    assert Resize.of(node("Resize", 10)).coordinates == "asymmetric"


def test_bilinear_is_linear() -> None:
    """As Upsample-1 calls it."""
    assert Resize.of(node("Upsample", 7, scales=[1.0], mode="bilinear")).mode == "linear"


def test_nearest_moves_elements() -> None:
    """Where nothing is extrapolated."""
    assert Resize.of(node("Resize", 11)).only_moves
    assert not Resize.of(node("Resize", 11, mode="linear")).only_moves
    assert not Resize.of(node("Resize", 11, coordinate_transformation_mode="tf_crop_and_resize")).only_moves


def test_axes_are_all_by_default() -> None:
    """Or those that are named, counted from the front."""
    assert Resize.of(node("Resize", 18)).places(3) == (0, 1, 2)
    assert Resize.of(node("Resize", 18, axes=[-1, 0])).places(3) == (2, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "area"),
        ("coordinate_transformation_mode", "centre"),
        ("nearest_mode", "round"),
        ("keep_aspect_ratio_policy", "shrink"),
    ],
)
def test_unknown_modes_are_refused(name: str, value: str) -> None:
    """The message lists what there is."""
    with pytest.raises(InvalidGraph, match=f"{name}='{value}', expected one of "):
        Resize.of(node("Resize", 19, **{name: value}))


@pytest.mark.parametrize("version", [1, 7])
def test_missing_scales_are_refused(version: int) -> None:
    """Where they are attributes."""
    with pytest.raises(InvalidGraph, match="the scales are missing"):
        Resize.of(node("Upsample", version))
