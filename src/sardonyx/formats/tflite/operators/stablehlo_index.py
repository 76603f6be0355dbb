"""STABLEHLO_GATHER, STABLEHLO_SCATTER, STABLEHLO_REDUCE_WINDOW and REDUCE_WINDOW, in terms of GatherND, ScatterND and slices.

An index of the operator has numbers for some axes of the operand, in an order of its own; windows begin there. All sizes must be
known when the model is read. Source: the StableHLO specification of these operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.formats.flat.reader import Table
from sardonyx.formats.tflite.operator import Operator, imports
from sardonyx.formats.tflite.operators.stablehlo import padded
from sardonyx.ir import Value

__all__ = ["gather", "reduce_plain_window", "reduce_window", "scatter"]

_MOST_TAPS = 4096
_REDUCTIONS = {"ADD": "add", "MULTIPLY": "mul", "MUL": "mul", "MAXIMUM": "max", "MINIMUM": "min", "AND": "and", "OR": "or"}
_LOGICAL = {"LOGICAL_AND": "and", "LOGICAL_OR": "or"}


@imports("STABLEHLO_GATHER")
def gather(op: Operator) -> None:
    """Choose windows, each from a place on that is moved such that all of the window is within the operand."""
    options, shape, indices = _options(op, "StablehloGatherOptions"), _sizes(op, 0), _sizes(op, 1)
    offsets, collapsed, mapped, window = (
        _numbers(options, name) for name in ("offset_dims", "collapsed_slice_dims", "start_index_map", "slice_sizes")
    )
    rank, build = len(shape), op.build
    if len(window) != rank or any(not 0 <= size <= most for size, most in zip(window, shape, strict=True)):
        op.refuse(f"windows {window} do not lie within {list(shape)}")
    if not all(0 <= axis < rank for axis in (*collapsed, *mapped)) or any(window[axis] > 1 for axis in collapsed):
        op.refuse(f"axes {collapsed} and {mapped} do not go with windows {window}")
    starts, batch = _starts(op, 1, indices, options.integer("index_vector_dim"), len(mapped))
    fits = sorted(set(offsets)) == offsets and all(0 <= axis < rank + batch for axis in offsets)
    if not fits or len(offsets) + len(set(collapsed)) != rank:
        op.refuse(f"axes {offsets} of the result do not go with windows {window} without axes {collapsed}")
    limits = build.ints(*(shape[axis] - window[axis] for axis in mapped))
    starts = build.node("Max", build.node("Min", starts, limits), build.ints(0))
    partial = [axis for axis in range(rank) if window[axis] != shape[axis] or axis in collapsed]
    count = partial[-1] + 1 if partial else 0
    kept = [axis for axis in range(count) if axis not in collapsed]
    if count == 0:
        op.unsupported("each window is the whole operand")
    places = _places(op, starts, batch, mapped, count, [(axis, window[axis]) for axis in kept])
    made = build.node("GatherND", op.raw(0), places)
    total, others = batch + len(offsets), iter(range(batch))
    order = [batch + offsets.index(axis) if axis in offsets else next(others) for axis in range(total)]
    op.put_raw(0, build.transpose(made, order))


@imports("STABLEHLO_SCATTER")
def scatter(op: Operator) -> None:
    """Combine windows of updates with an operand; what would be outside of it is left out."""
    options, shape, indices, updates = _options(op, "StablehloScatterOptions"), _sizes(op, 0), _sizes(op, 1), _sizes(op, 2)
    windows, inserted, mapped = (
        _numbers(options, name) for name in ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    )
    rank, build = len(shape), op.build
    reduction = _reduction(op, options.integer("update_computation_subgraph_index"))
    if reduction in ("and", "or"):
        op.unsupported(f"updates are combined by {reduction}")
    kept = [axis for axis in range(rank) if axis not in inserted]
    if len(windows) != len(kept) or not all(0 <= axis < len(updates) for axis in windows) or any(a >= rank for a in mapped):
        op.refuse(f"axes {windows} of updates {list(updates)} do not go with an operand {list(shape)} without axes {inserted}")
    starts, batch = _starts(op, 1, indices, options.integer("index_vector_dim"), len(mapped))
    if batch + len(windows) != len(updates) or 0 in (*updates, *shape):
        op.refuse(f"updates {list(updates)} do not go with indices {list(indices)}")
    order = [*(axis for axis in range(len(updates)) if axis not in windows), *windows]
    places = _places(op, starts, batch, mapped, rank, [(axis, updates[place]) for axis, place in zip(kept, windows, strict=True)])
    low = build.node("GreaterOrEqual", places, build.ints(0))
    inside = build.node("And", low, build.node("Less", places, build.ints(*shape)))
    all_inside = build.node("ReduceMin", build.cast(inside, DataType.INT32), build.ints(-1), keepdims=1)
    outside = build.ints(shape[0], *([0] * (rank - 1)))
    places = build.node("Where", build.cast(all_inside, DataType.BOOL), places, outside)
    longer = build.node("Pad", op.raw(0), build.ints(*([0] * rank), 1, *([0] * (rank - 1))))
    changes = build.transpose(op.raw(2), order)
    made = build.node("ScatterND", longer, places, changes, reduction=reduction)
    op.put_raw(0, build.node("Slice", made, build.ints(0), build.ints(shape[0]), build.ints(0)))


@imports("STABLEHLO_REDUCE_WINDOW")
def reduce_window(op: Operator) -> None:
    """Reduce windows of a tensor, whose elements may lie apart, and around which the initial number lies."""
    options, shape = _options(op, "StablehloReduceWindowOptions"), _sizes(op, 0)
    rank = len(shape)
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    windows, *apart = (_numbers(options, name) for name in names)
    strides, inner, dilations = (numbers or [1] * rank for numbers in apart)
    pads = _numbers(options, "padding") or [0] * (2 * rank)
    if len(inner) != rank or min(inner, default=1) < 1 or len(pads) != 2 * rank:
        op.refuse(f"dilations {inner}, pads {pads} of {list(shape)}")
    lows, highs = pads[::2], pads[1::2]
    sizes = [max(low + (size - 1) * base + 1 + high, 0) for size, low, high, base in zip(shape, lows, highs, inner, strict=True)]
    op.check_count(math.prod(sizes))
    start, value = _without_truth(op)
    value = padded(op, value, shape, start, (lows, highs, [base - 1 for base in inner]))
    combine = _reduction(op, options.integer("body_subgraph_index"))
    op.put_raw(0, _windows_of(op, value, start, sizes, combine, (windows, strides, dilations)))


@imports("REDUCE_WINDOW")
def reduce_plain_window(op: Operator) -> None:
    """Reduce windows of a tensor by a function that the options name; sizes, strides and dilations are inputs."""
    options, shape = _options(op, "ReduceWindowOptions"), _sizes(op, 0)
    combine = _FUNCTIONS.get(options.integer("reduce_function"))
    if combine is None:
        op.refuse(f"its function is number {options.integer('reduce_function')}")
    windows = [list(map(int, op.constant(index).reshape(-1))) for index in (2, 3, 4)]
    start, value = _without_truth(op)
    op.put_raw(0, _windows_of(op, value, start, shape, combine, windows))


def _without_truth(op: Operator) -> tuple[Value, Value]:
    """Return the initial number and the tensor, truth values as integers."""
    start, value = op.build.reshape(op.raw(1), ()), op.raw(0)
    if op.info(0).dtype is not DataType.BOOL:
        return start, value
    return op.build.cast(start, DataType.UINT8), op.build.cast(value, DataType.UINT8)


def _windows_of(
    op: Operator, value: Value, start: Value, shape: Sequence[int], combine: str, windows: Sequence[Sequence[int]]
) -> Value:
    """Return windows reduced, in the type of the operator's input, with a number from which each begins.

    Args:
        op: the operator.
        value: what has the windows; truth values as integers.
        start: the number.
        shape: the sizes of `value`.
        combine: how two numbers become one, of `_COMBINED`.
        windows: for each axis the sizes of windows, their strides, and how far their elements are apart.
    """
    rank, build, dtype = len(shape), op.build, op.info(0).dtype
    if any(len(numbers) != rank or min(numbers, default=1) < 1 for numbers in windows):
        op.refuse(f"windows {windows[0]}, strides {windows[1]} and dilations {windows[2]} of {list(shape)}")
    if sum(windows[0]) > _MOST_TAPS:
        op.unsupported(f"windows {windows[0]} have more than {_MOST_TAPS} elements along their axes")
    is_logical = combine in ("and", "or")
    if is_logical and dtype is not DataType.BOOL:
        value, start = (build.cast(build.cast(item, DataType.BOOL), DataType.UINT8) for item in (value, start))
    for axis, (window, stride, dilation) in enumerate(zip(*windows, strict=True)):
        places = max((shape[axis] - (window - 1) * dilation - 1) // stride + 1, 0)
        value = _folded(op, value, axis, [(tap * dilation, stride, places) for tap in range(window)], _COMBINED[combine])
    value = build.node(_COMBINED[combine], value, start)
    return build.cast(value, dtype) if is_logical or dtype is DataType.BOOL else value


_FUNCTIONS = dict(enumerate(("add", "mul", "min", "max", "and", "or"), 1))
"""Number of the options' function -> its name."""
_COMBINED = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min", "and": "Min", "or": "Max"}


def _folded(op: Operator, value: Value, axis: int, taps: Sequence[tuple[int, int, int]], combine: str) -> Value:
    """Return slices along an axis, each (start, step, count), combined."""
    build, made = op.build, None
    for start, step, count in taps:
        stop = start + max((count - 1) * step + 1, 0)
        part = build.node("Slice", value, *(build.ints(number) for number in (start, stop, axis, step)))
        made = part if made is None else build.node(combine, made, part)
    assert made is not None
    return made


def _options(op: Operator, name: str) -> Table:
    found = op.table.union("builtin_options_2")
    if found is None or found.name != name:
        op.refuse(f"its options are {'none' if found is None else found.name}; expected {name}")
    return found


def _numbers(options: Table, name: str) -> list[int]:
    found: list[int] = options.numbers(name).tolist()
    return found


def _sizes(op: Operator, index: int) -> tuple[int, ...]:
    info = op.info(index)
    if info.is_dynamic:
        op.unsupported(f"input {index} has sizes that a run decides about")
    return info.shape


def _starts(op: Operator, index: int, shape: Sequence[int], axis: int, width: int) -> tuple[Value, int]:
    """Return indices as int64 (…, width), and how many axes stand before that."""
    value, rank = op.build.cast(op.raw(index), DataType.INT64), len(shape)
    if not 0 <= axis <= rank or (shape[axis] if axis < rank else 1) != width or width == 0:
        op.refuse(f"indices {list(shape)} have no axis {axis} of {width} numbers")
    if axis == rank:
        return op.build.node("Unsqueeze", value, op.build.ints(-1)), rank
    return op.build.transpose(value, [*(other for other in range(rank) if other != axis), axis]), rank - 1


def _places(
    op: Operator, starts: Value, batch: int, mapped: Sequence[int], count: int, windows: Sequence[tuple[int, int]]
) -> Value:
    """Return the place of each element of each window: (batch…, window…, count), where axes that are not mapped begin at 0."""
    build, width = op.build, len(mapped)
    op.check_count(math.prod(size for _, size in windows) * count)
    grid = _grid(count, windows)
    zero = build.node("Pad", starts, build.ints(*([0] * (2 * batch + 1)), 1))
    columns = build.ints(*(mapped.index(axis) if axis in mapped else width for axis in range(count)))
    first = build.node("Gather", zero, columns, axis=-1)
    if windows:
        first = build.node("Unsqueeze", first, build.ints(*range(batch, batch + len(windows))))
    return build.node("Add", first, build.constant(grid))


def _grid(count: int, windows: Sequence[tuple[int, int]]) -> Array:
    """Return the places within a window, (sizes…, count)."""
    grid = np.zeros((*(size for _, size in windows), count), np.int64)
    for place, (axis, size) in enumerate(windows):
        grid[..., axis] = np.arange(size).reshape([-1 if other == place else 1 for other in range(len(windows))])
    return grid


def _reduction(op: Operator, index: int) -> str:
    """Return how a subgraph combines two numbers: "none" for the second."""
    arguments, outputs = op.program.arguments(index, "inputs", op.table), op.program.arguments(index, "outputs", op.table)
    codes = [op.program.code(table) for table in op.program.subgraphs[index].tables("operators")]
    if not codes and len(arguments) == 2 and len(outputs) == 1 and outputs[0].index == arguments[1].index:
        return "none"
    found = [_LOGICAL.get(code) or _REDUCTIONS.get(code.removeprefix("STABLEHLO_")) for code in codes]
    if len(found) != 1 or found[0] is None:
        op.unsupported(f"subgraph {index} combines numbers by {', '.join(codes) or 'nothing'}")
    return found[0]
