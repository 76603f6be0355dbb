"""Resize and Upsample: axes resampled one after the other, two neighbouring ones at a time where that saves a pass over memory."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sardonyx.codegen.emit.module import float_word
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.kernels.resize import CUBIC, LINEAR, NEAREST, ResizeParams, TableWords, write_resize, write_table
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.operands import check_moved, constant_of, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import moved_type

TASK_ELEMENTS = 1 << 14
"""Elements of one task."""

_TAPS = {"nearest": NEAREST, "linear": LINEAR, "bilinear": LINEAR, "cubic": CUBIC}


@dataclasses.dataclass(frozen=True, slots=True)
class _Lengths:
    """One axis with its sizes known."""

    size: int
    output: int
    scale: float


def _half_pixel(axis: _Lengths) -> TableWords:
    return TableWords(axis.size, axis.output, shift=0.5, divisor=float(np.float32(axis.scale)), back=0.5)


def _half_pixel_symmetric(axis: _Lengths) -> TableWords:
    adjustment = np.float32(axis.output) / (np.float32(axis.scale) * np.float32(max(axis.size, 1)))
    offset = float(np.float32(axis.size / 2) * (np.float32(1) - adjustment))
    return dataclasses.replace(_half_pixel(axis), offset=offset)


def _pytorch_half_pixel(axis: _Lengths) -> TableWords:
    return _half_pixel(axis) if axis.output > 1 else TableWords(axis.size, axis.output, factor=0.0)


def _align_corners(axis: _Lengths) -> TableWords:
    if axis.output <= 1:
        return TableWords(axis.size, axis.output, factor=0.0)
    divisor = float(np.float32(axis.scale * axis.size - 1))
    return TableWords(axis.size, axis.output, factor=float(np.float32(axis.size - 1)), divisor=divisor)


def _asymmetric(axis: _Lengths) -> TableWords:
    return TableWords(axis.size, axis.output, divisor=float(np.float32(axis.scale)))


def _tf_half_pixel_for_nn(axis: _Lengths) -> TableWords:
    return TableWords(axis.size, axis.output, shift=0.5, divisor=float(np.float32(axis.scale)))


_COORDINATES: Mapping[str, Callable[[_Lengths], TableWords]] = {
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_half_pixel_for_nn": _tf_half_pixel_for_nn,
}
"""coordinate_transformation_mode -> coordinates in the input, in float32 (ONNX Resize-19; the last of Resize-11)."""

_KEEPS_SAME_SIZE = ("asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
"""The modes under which an axis that keeps its size keeps its elements."""

_ROUNDINGS = {"floor": (0.0, False), "ceil": (0.0, True), "round_prefer_floor": (-0.5, True), "round_prefer_ceil": (0.5, False)}
"""nearest_mode -> what is added to a coordinate, and whether the sum is rounded up."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Axis:
    """One axis that is resized."""

    place: int
    """Which of the dimensions it is."""
    output: Dim
    """Its length in the result."""
    scale: float | None
    """The scale that the node gives; None for the quotient of the lengths."""


def _by_origin(node: Node) -> bool:
    """Whether element i of the output lies at i / scale and all else is left open, as before Resize-11."""
    return node.op_type == "Upsample" or node.version < 11


def _mode_of(node: Node) -> str:
    return "asymmetric" if _by_origin(node) else str(node.get("coordinate_transformation_mode", "half_pixel"))


def _scales_of(node: Node) -> list[float] | None:
    """The scales of the axes that the node names, None where it gives sizes."""
    if "scales" in node.attributes:
        return [float(scale) for scale in node.get("scales")]
    found = constant_of(node.input(1 if _by_origin(node) else 2))
    return None if found is None or not found.size else [float(scale) for scale in found.astype(np.float32).ravel()]


def _axes_of(node: Node) -> list[_Axis] | None:
    """The axes that change, in order; None where what a node says does not fit."""
    shape, wide = shape_of(node.inputs[0]), shape_of(node.output)
    named = [axis % len(shape) for axis in node.get("axes", range(len(shape)))]
    scales = _scales_of(node)
    if scales is not None and (len(scales) != len(named) or not all(0.0 < scale < math.inf for scale in scales)):
        return None
    if len(set(named)) < len(named):
        return None
    axes = []
    for number, place in enumerate(named):
        scale = None if scales is None else scales[number]
        keeps = wide[place] == shape[place] if scale is None else scale == 1.0
        if not keeps or _mode_of(node) not in _KEEPS_SAME_SIZE:
            axes.append(_Axis(place, wide[place], scale))
    return sorted(axes, key=lambda axis: axis.place)


def _check(node: Node) -> str | None:
    data, result = node.inputs[0], node.output
    if data is None or data.shape is None or result.shape is None or len(data.shape) != len(result.shape):
        return "its shape is not known"
    if node.op_type == "Upsample" and node.version < 7:
        return "Upsample before version 7"
    reason = check_moved(node) or _check_modes(node)
    if reason is not None:
        return reason
    if _scales_of(node) is None and (_by_origin(node) or node.input(3) is None):
        return "its scales are computed"
    sizes = None if _by_origin(node) else node.input(3)
    if _scales_of(node) is not None and sizes is not None and sizes.shape != (0,):
        return "it has scales and sizes"
    return "its scales do not fit its axes" if _axes_of(node) is None else None


def _check_modes(node: Node) -> str | None:
    mode = node.get("mode", "nearest")
    if mode not in _TAPS or _mode_of(node) not in _COORDINATES or node.get("nearest_mode", "floor") not in _ROUNDINGS:
        return f"mode {mode}, {_mode_of(node)}, {node.get('nearest_mode', '')}"
    if mode != "nearest" and node.output.dtype is not DataType.FLOAT:
        return f"{mode} of elements of type {node.output.dtype}"
    if node.get("antialias", 0) or node.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "antialias or keep_aspect_ratio_policy is set"
    return None


@lowers("Resize", "Upsample", check=_check)
def resize(low: Lowering, group: Group) -> None:
    """Resample axis after axis; where none changes the result is a view."""
    node = group.anchor
    axes = _axes_of(node)
    if axes is None:
        raise TypeError("the check lets only scales that fit through")
    data = low.of(node.inputs[0])
    passes = _passes(axes, data.shape, _TAPS[node.get("mode", "nearest")])
    if not passes:
        low.view(node.output, data)
        return
    for number, taken in enumerate(passes):
        shape = tuple({axis.place: axis.output for axis in taken}.get(place, dim) for place, dim in enumerate(data.shape))
        result = low.result(node.output) if number == len(passes) - 1 else low.temporary(data.dtype, shape)
        _resample(low, group, data, result, taken)
        data = result


def _passes(axes: Sequence[_Axis], shape: Shape, taps: int) -> list[list[_Axis]]:
    """Which axes are resampled together: neighbours, but not where blending would gather each element more than once."""
    passes: list[list[_Axis]] = []
    for axis in axes:
        last = passes[-1] if passes else []
        along = product(shape[axis.place + 1 :]) == 1 and taps != NEAREST
        if len(last) == 1 and last[0].place + 1 == axis.place and not along:
            last.append(axis)
        else:
            passes.append([axis])
    return passes


def _resample(low: Lowering, group: Group, data: Buffer, result: Buffer, axes: Sequence[_Axis]) -> None:
    """Add the steps that make the tables of `axes` and resample by them."""
    node = group.anchor
    taps = _TAPS[node.get("mode", "nearest")]
    tables = [buffer for axis in axes for buffer in _table(low, group, data.shape[axis.place], axis, taps)]
    before, after = data.shape[: axes[0].place], data.shape[axes[-1].place + 1 :]
    element, single, count = _element(data, taps), product(after) == 1, len(axes)
    symbol = f"resize_{element}_{taps}_{count}{'_single' if single else ''}_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_resize(module, name, element, taps, count, single=single))

    lengths, outputs = tuple(data.shape[axis.place] for axis in axes), tuple(axis.output for axis in axes)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        inner = sizes.product(after)
        block = max(TASK_ELEMENTS // max(inner, 1), 1)
        params = ResizeParams(sizes.product(before), sizes.shape(lengths), sizes.shape(outputs), inner, block)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, result, *tables], writes=[1], plan=plan)


def _element(data: Buffer, taps: int) -> Type:
    kind = moved_type(data.dtype) if taps == NEAREST else F32
    if kind is None:
        raise TypeError("the check lets only types that kernels move through")
    return kind


def _table(low: Lowering, group: Group, size: Dim, axis: _Axis, taps: int) -> list[Buffer]:
    """Add the step that makes the table of one axis."""
    buffers = [low.temporary(DataType.INT32, (taps, axis.output))]
    if taps != NEAREST:
        buffers.append(low.temporary(DataType.FLOAT, (taps, axis.output)))
    symbol = low.kernel(f"resize_table_{taps}_{low.target.isa}", lambda module, name: write_table(module, name, taps))
    node = group.anchor

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        words = _words(node, sizes(size), sizes(axis.output), axis.scale)
        return [word if isinstance(word, int) else float_word(word) for word in words.words()], 1

    low.step(group, symbol, buffers, writes=range(len(buffers)), plan=plan)
    return buffers


def _words(node: Node, size: int, output: int, scale: float | None) -> TableWords:
    if not output:
        return TableWords(size, output)
    if not size:
        raise InvalidArgument(f"an axis of {node.op_type} is empty and cannot grow to {output} elements")
    scale = output / max(size, 1) if scale is None else scale
    words = _COORDINATES[_mode_of(node)](_Lengths(size, output, scale))
    rounding = ("ceil" if scale < 1 else "floor") if _by_origin(node) else node.get("nearest_mode", "round_prefer_floor")
    bias, upwards = _ROUNDINGS[rounding]
    inside_only, coefficient = bool(node.get("exclude_outside", 0)), float(node.get("cubic_coeff_a", -0.75))
    return dataclasses.replace(words, bias=bias, upwards=upwards, coefficient=coefficient, inside_only=inside_only)
