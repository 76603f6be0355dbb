"""Resize and Upsample.

Upsample-1               height_scale and width_scale
Upsample-7               scales
Upsample-9, Resize-10    scales as input 1
Resize-11                region, scales and sizes as inputs 1, 2 and 3, and how coordinates are mapped
"""

from typing import NamedTuple, Self

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator
from sardonyx.ops.views.axes import distinct_axes
from sardonyx.ops.views.inputs import COMPUTED, Computed, Inputs, Integers, listed, no_inputs

__all__ = ["Resize"]

_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}
_COORDINATES = (
    "align_corners",
    "asymmetric",
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)
_ROUNDINGS = ("ceil", "floor", "round_prefer_ceil", "round_prefer_floor")
_POLICIES = ("not_larger", "not_smaller", "stretch")


class Resize(NamedTuple):
    """A resampling on a grid of its own."""

    mode: str
    """nearest, linear or cubic."""
    is_by_origin: bool
    """Whether element i of the output lies at i / scale and the nearest one is below, or above on an axis that shrinks: before
    Resize-11, which has `coordinates` and `rounding` instead."""
    coordinates: str
    """How coordinates are mapped: `coordinate_transformation_mode`."""
    rounding: str
    """Which element is the nearest: `nearest_mode`."""
    cubic_coefficient: float
    """The coefficient a of cubic interpolation."""
    excludes_outside: bool
    """Whether taps outside of the input have no weight."""
    extrapolation: float
    """What is outside of the input under tf_crop_and_resize."""
    antialiases: bool
    """Whether filters are stretched on an axis that shrinks."""
    axes: tuple[int, ...] | None
    """The axes that scales, sizes and region are for, as the node gives them; None for all."""
    policy: str
    """What sizes mean: stretch, not_larger or not_smaller."""
    scales: tuple[float, ...] | Computed | None
    """The scales, in float32; None where sizes decide."""
    sizes: Integers
    """The sizes, None where scales decide."""
    scales_input: int | None
    """The input that holds the scales; None before opset 9, where they are attributes."""

    @classmethod
    def of(cls, node: Operator, inputs: Inputs = no_inputs) -> Self:
        """Read a node whose inputs are as `inputs` says; raises InvalidGraph for an unknown mode."""
        is_by_origin = node.op_type == "Upsample" or node.version < 11
        has_input = node.op_type == "Resize" or node.version >= 9
        scales_input = (1 if is_by_origin else 2) if has_input else None
        found = cls(
            _one_of("mode", node.text("mode", "nearest"), tuple(_MODES)),
            is_by_origin,
            "asymmetric" if is_by_origin else node.text("coordinate_transformation_mode", "half_pixel"),
            "round_prefer_floor" if is_by_origin else node.text("nearest_mode", "round_prefer_floor"),
            node.number("cubic_coeff_a", -0.75),
            node.flag("exclude_outside"),
            node.number("extrapolation_value", 0.0),
            node.flag("antialias"),
            node.integers("axes"),
            _one_of("keep_aspect_ratio_policy", node.text("keep_aspect_ratio_policy", "stretch"), _POLICIES),
            _attribute_scales(node) if scales_input is None else _floats(inputs(scales_input)),
            None if is_by_origin else _integers(inputs(3)),
            scales_input,
        )
        _one_of("coordinate_transformation_mode", found.coordinates, _COORDINATES)
        _one_of("nearest_mode", found.rounding, _ROUNDINGS)
        return found._replace(mode=_MODES[found.mode])

    @property
    def crops(self) -> bool:
        """Whether only a region of the input is resized."""
        return self.coordinates == "tf_crop_and_resize"

    @property
    def only_moves(self) -> bool:
        """Whether every element of the output is one of the input."""
        return self.mode == "nearest" and not self.crops

    def places(self, rank: int) -> tuple[int, ...]:
        """Return the axes counted from the front, in the order of scales and sizes; raises InvalidGraph for one too many."""
        return tuple(range(rank)) if self.axes is None else distinct_axes(self.axes, rank)


def _one_of(name: str, found: str, known: tuple[str, ...]) -> str:
    if found not in known:
        raise InvalidGraph(f"{name}={found!r}, expected one of {', '.join(known)}")
    return found


def _attribute_scales(node: Operator) -> tuple[float, ...]:
    """Return the scales of Upsample-1 and -7; raises InvalidGraph where they are missing."""
    if node.version >= 7:
        scales = node.numbers("scales")
    else:
        height, width = node.number("height_scale"), node.number("width_scale")
        scales = None if height is None or width is None else (1.0, 1.0, height, width)
    if scales is None:
        raise InvalidGraph("the scales are missing")
    return scales


def _floats(found: Array | Computed | None) -> tuple[float, ...] | Computed | None:
    if found is None or found is COMPUTED:
        return found
    if found.dtype.kind not in "fiu":
        raise InvalidGraph(f"scales has elements of type {found.dtype.name}, expected float32")
    return tuple(float(scale) for scale in found.ravel().astype(np.float32).tolist()) or None


def _integers(found: Array | Computed | None) -> Integers:
    if found is None or found is COMPUTED:
        return found
    return listed(found, "sizes") or None
