"""Resize and Upsample: axes resampled one after the other, two neighbouring ones at a time where that saves a pass over memory.

Integers of up to 16 bits are blended as floats, which are cut off at the end, or rounded where filters are stretched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument, constant, round_saturated
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I32, Kind, Type
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.images.outside import write_outside
from sardonyx.codegen.kernels.images.stretched import write_stretched, write_stretched_table
from sardonyx.codegen.kernels.resize import CUBIC, LINEAR, NEAREST, ResizeParams, TableWords, write_resize, write_table
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape
from sardonyx.ir.shape import ceil_div, maximum, product
from sardonyx.ops.views.inputs import COMPUTED, Computed, Inputs, constants
from sardonyx.ops.views.resize import Resize
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.images.nearest import resample_nearest, takes_nearest
from sardonyx.providers.cpu.kernels.integer_zeros import map_to
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of, moved_as, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

TASK_ELEMENTS = 1 << 14
"""Elements of one task."""

_MOST_TAPS = 1 << 16
"""How many elements a stretched filter reads at most."""

_TAPS = {"nearest": NEAREST, "linear": LINEAR, "cubic": CUBIC}


@dataclasses.dataclass(frozen=True, slots=True)
class _Lengths:
    """One axis with its sizes known."""

    size: int
    output: int
    scale: float
    start: float = 0.0
    end: float = 1.0


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
    if axis.scale == 1.0:
        return TableWords(axis.size, axis.output)
    divisor = float(np.float32(axis.scale * axis.size - 1))
    return TableWords(axis.size, axis.output, factor=float(np.float32(axis.size - 1)), divisor=divisor)


def _asymmetric(axis: _Lengths) -> TableWords:
    return TableWords(axis.size, axis.output, divisor=float(np.float32(axis.scale)))


def _tf_half_pixel_for_nn(axis: _Lengths) -> TableWords:
    return TableWords(axis.size, axis.output, shift=0.5, divisor=float(np.float32(axis.scale)))


def _tf_crop_and_resize(axis: _Lengths) -> TableWords:
    last, start, end = np.float32(axis.size - 1), np.float32(axis.start), np.float32(axis.end - axis.start)
    if axis.output <= 1:
        return TableWords(axis.size, axis.output, factor=0.0, offset=float(np.float32(0.5 * (axis.start + axis.end)) * last))
    words = TableWords(axis.size, axis.output, factor=float(end), length=float(last), offset=float(start * last))
    return dataclasses.replace(words, divisor=float(np.float32(axis.output - 1)))


_COORDINATES: Mapping[str, Callable[[_Lengths], TableWords]] = {
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_crop_and_resize": _tf_crop_and_resize,
    "tf_half_pixel_for_nn": _tf_half_pixel_for_nn,
}
"""coordinate_transformation_mode -> coordinates in the input, in float32 (ONNX Resize-19; the last of Resize-11)."""

_KEEPS_SAME_SIZE = ("align_corners", "asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
"""The modes under which an axis that keeps its size keeps its elements."""

_ROUNDINGS = {"floor": (0.0, False), "ceil": (0.0, True), "round_prefer_floor": (-0.5, True), "round_prefer_ceil": (0.5, False)}
"""nearest_mode -> what is added to a coordinate, and whether the sum is rounded up."""


@dataclasses.dataclass(frozen=True, slots=True)
class ResizeAxis:
    """One axis that is resized."""

    place: int
    """Which of the dimensions it is."""
    output: Dim
    """Its length in the result."""
    scale: float | None
    """The scale that the node gives; None for the quotient of the lengths."""
    region: tuple[float, float] = (0.0, 1.0)
    """Where what is resized begins and ends, as parts of the axis: for tf_crop_and_resize."""


@dataclasses.dataclass(frozen=True, slots=True)
class ResizeSpec:
    """Axes that are resampled, and how."""

    axes: tuple[ResizeAxis, ...]
    """The axes that change, in order."""
    taps: int
    """How many elements of an axis make one."""
    element: Type
    """The type in which they are moved or blended."""
    coordinates: str
    """Where an element of the result lies in the input: a key of _COORDINATES."""
    rounding: str | None
    """How a coordinate becomes a place: a key of _ROUNDINGS; None for up where the axis shrinks, and down where it grows."""
    coefficient: float
    """Of cubic blending."""
    inside_only: bool
    """Whether elements outside of the input weigh nothing."""
    is_stretched: bool
    """Whether filters are stretched on an axis that shrinks."""
    narrow: Type | None
    """The type of integers that are blended as floats."""
    outside: Array | None
    """The one element that is outside of the input; None where elements there are the nearest ones inside."""


def claim(node: Node) -> ResizeSpec | str:
    """Return how a Resize or Upsample resamples, or why it cannot be compiled."""
    shape, wide, kind = shape_of(node.inputs[0]), shape_of(node.output), moved_as(node)
    view = Resize.of(node, _known(node))
    if len(shape) != len(wide):
        return f"{len(shape)} dimensions become {len(wide)}"
    if isinstance(kind, str):
        return kind
    if view.coordinates not in _COORDINATES:
        return f"coordinates {view.coordinates!r}"
    narrow = element_type(node.output.dtype) if view.mode != "nearest" and node.output.dtype in _NARROW else None
    if view.mode != "nearest" and node.output.dtype is not DataType.FLOAT and (narrow is None or view.crops):
        return f"{view.mode} of elements of type {node.output.dtype}"
    axes = _axes_of(view, shape, wide)
    axes = _regions_of(node, view, axes, shape, wide) if view.crops and not isinstance(axes, str) else axes
    if isinstance(axes, str):
        return axes
    taps, rounding = _TAPS[view.mode], None if view.is_by_origin else view.rounding
    element, dtype = kind if taps == NEAREST else F32, node.output.dtype
    outside = np.full(1, view.extrapolation).astype(dtype.numpy) if view.crops and dtype is not None else None
    stretched = view.antialiases and taps != NEAREST
    blending = (view.cubic_coefficient, view.excludes_outside, stretched)
    return ResizeSpec(axes, taps, element, view.coordinates, rounding, *blending, narrow, outside)


_NARROW = frozenset((DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16))


def _known(node: Node) -> Inputs:
    """Return the inputs of a node, of which those are left out that have no element in any run."""
    known = constants(node)

    def read(index: int) -> Array | Computed | None:
        value = node.input(index)
        return None if value is None or value.shape == (0,) else known(index)

    return read


def _axes_of(view: Resize, shape: Shape, wide: Shape) -> tuple[ResizeAxis, ...] | str:
    """Return the axes that change, in order, or why they are not known."""
    scales, named, keeps_same = view.scales, view.places(len(shape)), view.coordinates in _KEEPS_SAME_SIZE
    if scales is COMPUTED:
        return "its scales are computed"
    if scales is None and view.sizes is None:
        return "it has neither scales nor sizes"
    if scales is not None and view.sizes is not None:
        return "it has scales and sizes"
    if scales is not None and len(scales) != len(named):
        return f"{len(scales)} scales for {len(named)} axes"
    if scales is not None and not all(0.0 < scale < math.inf for scale in scales):
        return f"scales {list(scales)}, expected positive numbers"
    if scales is None and view.policy != "stretch":
        return _axes_in_ratio(view, shape, named)
    axes = []
    for number, place in enumerate(named):
        scale = None if scales is None else scales[number]
        keeps = wide[place] == shape[place] if scale is None else scale == 1.0
        if not keeps or not keeps_same:
            axes.append(ResizeAxis(place, wide[place], scale))
    return tuple(sorted(axes, key=lambda axis: axis.place))


def _axes_in_ratio(view: Resize, shape: Shape, named: Sequence[int]) -> tuple[ResizeAxis, ...] | str:
    """Return the axes resized by one factor: the least or greatest that one of the sizes asks for."""
    before, sizes = [shape[place] for place in named], view.sizes
    known = [size for size in before if isinstance(size, int)]
    if not isinstance(sizes, tuple) or len(known) != len(named) or len(sizes) != len(named):
        return "the ratio of its sizes is known only when it runs"
    ratios = [size / max(1, length) for size, length in zip(sizes, known, strict=True)]
    ratio = min(ratios) if view.policy == "not_larger" else max(ratios)
    axes = [ResizeAxis(place, math.floor(ratio * size + 0.5), ratio) for place, size in zip(named, known, strict=True)]
    return tuple(sorted(axes, key=lambda axis: axis.place))


def _regions_of(node: Node, view: Resize, axes: Sequence[ResizeAxis], shape: Shape, wide: Shape) -> tuple[ResizeAxis, ...] | str:
    """Return the axes with their regions, without those that stay as they are; or why regions are not known."""
    region, named = constant_of(node.input(1)), view.places(len(shape))
    if region is None or region.shape != (2 * len(named),):
        return "its roi is computed, or has no start and end for each axis"
    starts, ends = region[: len(named)].astype(np.float64).tolist(), region[len(named) :].astype(np.float64).tolist()
    found = dict(zip(named, zip(starts, ends, strict=True), strict=True))
    placed = [dataclasses.replace(axis, region=found[axis.place]) for axis in axes]
    return tuple(axis for axis in placed if axis.region != (0.0, 1.0) or shape[axis.place] != wide[axis.place])


@dataclasses.dataclass(frozen=True, slots=True)
class ResizeKernel:
    """Axes resampled by tables."""

    element: Type
    """The type in which elements are moved or blended."""
    taps: int
    """How many elements of an axis make one."""
    count: int
    """How many axes."""
    single: bool
    """Whether there is one element behind them."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"resize_{self.element}_{self.taps}_{self.count}{'_single' if self.single else ''}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_resize(module, symbol, self.element, self.taps, self.count, single=self.single)


@dataclasses.dataclass(frozen=True, slots=True)
class TableKernel:
    """The table of one axis."""

    taps: int
    """How many elements of the axis make one."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"resize_table_{self.taps}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_table(module, symbol, self.taps)


@lowers("Resize", "Upsample", claim=claim)
def resize(low: Lowering, group: Group, spec: ResizeSpec) -> None:
    """Resample axis after axis; where none changes the result is a view."""
    node = group.node
    data = low.of(node.inputs[0])
    passes = [[axis] for axis in spec.axes] if spec.is_stretched else _passes(spec.axes, data.shape, spec.taps)
    if not passes:
        low.view(node.output, data)
        return
    given, kind = data.shape, spec.narrow
    if kind is not None:
        data = map_to(low, "Cast", argument(0, kind).to(F32), [data], low.temporary(DataType.FLOAT, given))
    for number, taken in enumerate(passes):
        shape = tuple({axis.place: axis.output for axis in taken}.get(place, dim) for place, dim in enumerate(data.shape))
        is_last = number == len(passes) - 1 and kind is None
        result = low.result(node.output) if is_last else low.temporary(data.dtype, shape)
        if spec.is_stretched:
            _resample_stretched(low, group, data, result, taken[0], spec)
        else:
            _resample(low, group, data, result, taken, spec)
        data = result
    if kind is not None:
        map_to(low, "Cast", _cut_off(argument(0, F32), kind, rounds=spec.is_stretched), [data], low.result(node.output))
    for axis in spec.axes if spec.outside is not None else ():
        _fill_outside(low, group, data, given[axis.place], axis, spec)


def _cut_off(x: ElementExpr, kind: Type, *, rounds: bool) -> ElementExpr:
    """Return x as an integer: saturated, and what is behind the point left out, or rounded to nearest, ties to even."""
    if rounds:
        return round_saturated(x, constant(0, I32), kind)
    low = -(1 << (kind.bits - 1)) if kind.kind is Kind.SIGNED else 0
    return OPERATORS["clip"](x, float(low), float(low + (1 << kind.bits) - 1)).to(kind)


def _passes(axes: Sequence[ResizeAxis], shape: Shape, taps: int) -> list[list[ResizeAxis]]:
    """Return which axes are resampled together: neighbours, but not where blending would gather each element more than once."""
    passes: list[list[ResizeAxis]] = []
    for axis in axes:
        last = passes[-1] if passes else []
        along = product(shape[axis.place + 1 :]) == 1 and taps != NEAREST
        if len(last) == 1 and last[0].place + 1 == axis.place and not along:
            last.append(axis)
        else:
            passes.append([axis])
    return passes


def _resample(low: Lowering, group: Group, data: Buffer, result: Buffer, axes: Sequence[ResizeAxis], spec: ResizeSpec) -> None:
    """Add the steps that make the tables of `axes` and resample by them."""
    tables = [buffer for axis in axes for buffer in _table(low, group, data.shape[axis.place], axis, spec)]
    before, after = data.shape[: axes[0].place], data.shape[axes[-1].place + 1 :]
    if spec.taps == NEAREST and takes_nearest(low, spec.element, after):
        resample_nearest(low, group, (data, result), [axis.place for axis in axes], tables, spec.element)
        return
    symbol = low.kernel(ResizeKernel(spec.element, spec.taps, len(axes), product(after) == 1))
    lengths, outputs = tuple(data.shape[axis.place] for axis in axes), tuple(axis.output for axis in axes)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        inner = sizes.product(after)
        block = max(TASK_ELEMENTS // max(inner, 1), 1)
        params = ResizeParams(sizes.product(before), sizes.shape(lengths), sizes.shape(outputs), inner, block)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, result, *tables], writes=[1], plan=plan)


def _table(low: Lowering, group: Group, size: Dim, axis: ResizeAxis, spec: ResizeSpec) -> list[Buffer]:
    """Add the step that makes the table of one axis."""
    taps = spec.taps
    buffers = [low.temporary(DataType.INT32, (taps, axis.output))]
    if taps != NEAREST:
        buffers.append(low.temporary(DataType.FLOAT, (taps, axis.output)))
    symbol = low.kernel(TableKernel(taps))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return _words(spec, sizes(size), sizes(axis.output), axis), 1

    low.step(group, symbol, buffers, writes=range(len(buffers)), plan=plan)
    return buffers


@dataclasses.dataclass(frozen=True, slots=True)
class StretchedTableKernel:
    """The table of one axis, for a stretched filter."""

    is_cubic: bool
    """Whether the filter is cubic, or a triangle."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"resize_stretched_table_{'cubic' if self.is_cubic else 'linear'}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_stretched_table(module, symbol, is_cubic=self.is_cubic)


@dataclasses.dataclass(frozen=True, slots=True)
class StretchedKernel:
    """One axis resampled by a stretched filter."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"resize_stretched_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_stretched(module, symbol)


def _resample_stretched(low: Lowering, group: Group, data: Buffer, result: Buffer, axis: ResizeAxis, spec: ResizeSpec) -> None:
    """Add the steps that make the table of one axis and resample by it."""
    reach, size, output = spec.taps // 2, data.shape[axis.place], axis.output
    longest = maximum(ceil_div(size * reach, maximum(output, 1)), reach) if axis.scale is None else _side(reach, axis.scale)
    first = low.temporary(DataType.INT32, (output,))
    weights = low.temporary(DataType.FLOAT, ((longest + 1) * 2, output))
    before, after = data.shape[: axis.place], data.shape[axis.place + 1 :]

    def shrink(sizes: Sizes) -> float:
        scale = sizes(output) / max(sizes(size), 1) if axis.scale is None else axis.scale
        if sizes(output) and scale * _MOST_TAPS < 1:
            raise InvalidArgument(f"scale {scale} of axis {axis.place} is too small to antialias, expected 2^-16 or more")
        return min(1.0, scale) or 1.0

    def plan_table(sizes: Sizes) -> tuple[list[int], int]:
        words = _words(spec, sizes(size), sizes(output), axis)
        return [*words, 2 * _side(reach, shrink(sizes)), float_word(shrink(sizes))], 1

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        outer, inner, outputs = sizes.product(before), sizes.product(after), sizes(output)
        tasks = outer if inner == 1 else outer * outputs
        return [sizes(size), outputs, 2 * _side(reach, shrink(sizes)), inner], tasks if outputs and inner else 0

    table = low.kernel(StretchedTableKernel(spec.taps == CUBIC))
    low.step(group, table, [first, weights], writes=[0, 1], plan=plan_table)
    low.step(group, low.kernel(StretchedKernel()), [data, result, first, weights], writes=[1], plan=plan)


def _side(reach: int, scale: float) -> int:
    return math.ceil(reach / min(1.0, scale))


@dataclasses.dataclass(frozen=True, slots=True)
class OutsideKernel:
    """One element wherever a place is outside of an axis."""

    element: Type
    """The type as which elements are stored."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"resize_outside_{self.element}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_outside(module, symbol, self.element)


def _fill_outside(low: Lowering, group: Group, result: Buffer, size: Dim, axis: ResizeAxis, spec: ResizeSpec) -> None:
    """Add the step that overwrites what was sampled outside of one axis of the input, which had `size` elements."""
    before, after = result.shape[: axis.place], result.shape[axis.place + 1 :]

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        inner = sizes.product(after)
        return [*_words(spec, sizes(size), sizes(axis.output), axis), inner], sizes.product(before) if inner else 0

    number = low.constant(np.zeros(1, np.float32) if spec.outside is None else spec.outside)
    low.step(group, low.kernel(OutsideKernel(spec.element)), [result, number], writes=[0], plan=plan)


def _words(spec: ResizeSpec, size: int, output: int, axis: ResizeAxis) -> list[int]:
    """Return the parameters of the table of one axis."""
    words = _table_words(spec, size, output, axis).words()
    return [word if isinstance(word, int) else float_word(word) for word in words]


def _table_words(spec: ResizeSpec, size: int, output: int, axis: ResizeAxis) -> TableWords:
    if not output:
        return TableWords(size, output)
    if not size:
        raise InvalidArgument(f"an axis is empty and cannot grow to {output} elements")
    scale = output / max(size, 1) if axis.scale is None else axis.scale
    words = _COORDINATES[spec.coordinates](_Lengths(size, output, scale, *axis.region))
    bias, upwards = _ROUNDINGS[spec.rounding or ("ceil" if scale < 1 else "floor")]
    return dataclasses.replace(words, bias=bias, upwards=upwards, coefficient=spec.coefficient, inside_only=spec.inside_only)
