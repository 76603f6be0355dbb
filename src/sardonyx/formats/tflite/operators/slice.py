"""Parts of tensors, tensors put together, and borders around them."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.computed import from_last, mirrored, to_last
from sardonyx.formats.tflite.operator import ACTIVATION, Operator, imports
from sardonyx.ir import Value

__all__ = ["concatenation", "slice_", "strided_slice"]

_END = 2**31 - 1


@imports("SLICE")
def slice_(op: Operator) -> None:
    """Cut a box out of a tensor: from a beginning, of a size, which is all that follows where it is -1."""
    begins, sizes = op.maybe_constant(1), op.maybe_constant(2)
    build = op.build
    if begins is not None and sizes is not None:
        pairs = list(zip(begins.reshape(-1).tolist(), sizes.reshape(-1).tolist(), strict=False))
        starts = build.ints(*(begin for begin, _ in pairs))
        ends = build.ints(*(_END if size == -1 else begin + size for begin, size in pairs))
    else:
        starts = op.shape(1)
        wide = op.shape(2)
        ends = build.node("Where", build.node("Equal", wide, build.ints(-1)), build.ints(_END), build.node("Add", starts, wide))
    op.through(lambda value: build.node("Slice", value, starts, ends), 1)
    build.slices[op.value(0)] = op.raw(0), op.raw(1), op.raw(2)


@imports("STRIDED_SLICE")
def strided_slice(op: Operator) -> None:
    """Cut every n-th element of ranges of the axes; masks say which bounds are open, and which axes are new, or go."""
    options = op.options("StridedSliceOptions")
    masks = {name: options.integer(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    given, rank = op.maybe_constant(3), op.rank(0)
    steps = None if given is None else given.reshape(-1).tolist()
    count = max(op.info(3).shape[:1], default=1) if steps is None else len(steps)
    if steps is not None and 0 in steps:
        op.refuse("a step is 0")
    taken = [index for index in range(count) if not masks["new_axis"] >> index & 1 and not masks["ellipsis"] >> index & 1]
    if len(taken) > rank:
        op.refuse(f"it cuts {len(taken)} axes of a tensor of rank {rank}")
    plan = _axes(count, rank, masks)
    axes = [axis for _, axis in plan]
    starts = _starts(op, plan, masks["begin"], steps)
    limits = _limits(op, plan, masks, steps, options.flag("offset"))
    shrunk = [axis for index, axis in plan if masks["shrink_axis"] >> index & 1]
    added = _new_axes(count, rank, masks, shrunk)

    def cut(value: Value) -> Value:
        if plan:
            step = _steps(op, plan, masks["shrink_axis"], steps)
            value = op.build.node("Slice", value, starts, limits, op.build.ints(*axes), step)
        if shrunk:
            value = op.build.node("Squeeze", value, op.build.ints(*shrunk))
        return op.build.node("Unsqueeze", value, op.build.ints(*added)) if added else value

    op.through(cut, 1)


def _axes(count: int, rank: int, masks: dict[str, int]) -> list[tuple[int, int]]:
    """Return for each range that cuts an axis its place in the lists, and the axis."""
    plan, axis = [], 0
    taken = sum(not masks["new_axis"] >> index & 1 and not masks["ellipsis"] >> index & 1 for index in range(count))
    for index in range(count):
        if masks["ellipsis"] >> index & 1:
            axis += rank - taken
        elif not masks["new_axis"] >> index & 1:
            plan.append((index, axis))
            axis += 1
    return plan


def _new_axes(count: int, rank: int, masks: dict[str, int], shrunk: list[int]) -> list[int]:
    """Return where new axes are in the result."""
    added, position, axis = [], 0, 0
    taken = sum(not masks["new_axis"] >> index & 1 and not masks["ellipsis"] >> index & 1 for index in range(count))
    for index in range(count):
        if masks["ellipsis"] >> index & 1:
            position, axis = position + rank - taken, axis + rank - taken
        elif masks["new_axis"] >> index & 1:
            added.append(position)
            position += 1
        else:
            position += axis not in shrunk
            axis += 1
    return added


def _steps(op: Operator, plan: list[tuple[int, int]], shrunk: int, steps: list[int] | None) -> Value:
    """Return the steps of the ranges, 1 on axes that go."""
    build, single = op.build, [bool(shrunk >> place & 1) for place, _ in plan]
    if steps is not None:
        return build.ints(*(1 if alone else steps[place] for alone, (place, _) in zip(single, plan, strict=True)))
    return build.node("Where", build.constant(np.array(single)), build.ints(1), _chosen(op, 3, plan))


def _chosen(op: Operator, index: int, plan: list[tuple[int, int]]) -> Value:
    """Return the numbers of an input for the axes that are cut."""
    return op.build.node("Gather", op.shape(index), op.build.ints(*(place for place, _ in plan)))


def _opened(op: Operator, plan: list[tuple[int, int]], steps: list[int] | None, backward: int, forward: int) -> Value:
    """Return a bound of ranges that are open there, by the direction of their steps."""
    build = op.build
    if steps is not None:
        return build.ints(*(backward if steps[place] < 0 else forward for place, _ in plan))
    is_backward = build.node("Less", _chosen(op, 3, plan), build.ints(0))
    return build.node("Where", is_backward, build.ints(backward), build.ints(forward))


def _starts(op: Operator, plan: list[tuple[int, int]], mask: int, steps: list[int] | None) -> Value:
    """Return the beginnings of the ranges."""
    build, given = op.build, op.maybe_constant(1)
    if given is not None and steps is not None:
        numbers = given.reshape(-1).tolist()
        return build.ints(*((_END if steps[place] < 0 else 0) if mask >> place & 1 else numbers[place] for place, _ in plan))
    flags, chosen = np.array([bool(mask >> place & 1) for place, _ in plan]), _chosen(op, 1, plan)
    return build.node("Where", build.constant(flags), _opened(op, plan, steps, _END, 0), chosen) if flags.any() else chosen


def _limits(op: Operator, plan: list[tuple[int, int]], masks: dict[str, int], steps: list[int] | None, is_offset: bool) -> Value:
    """Return the ends of the ranges; an axis that goes has a range of one element."""
    build, begins, ends = op.build, op.maybe_constant(1), op.maybe_constant(2)
    single = [bool(masks["shrink_axis"] >> place & 1) for place, _ in plan]
    is_open = [bool(masks["end"] >> place & 1) for place, _ in plan]
    if begins is not None and ends is not None and steps is not None:
        starts, stops = begins.reshape(-1).tolist(), ends.reshape(-1).tolist()
        limits = []
        for n, (place, _) in enumerate(plan):
            start = 0 if masks["begin"] >> place & 1 else starts[place]
            stop = start + stops[place] if is_offset else stops[place]
            opened = -_END if steps[place] < 0 else _END
            limits.append((start + 1 if start != -1 else _END) if single[n] else opened if is_open[n] else stop)
        return build.ints(*limits)
    first, last = _chosen(op, 1, plan), _chosen(op, 2, plan)
    if is_offset:
        last = build.node("Add", first, last)
    after = build.node("Add", first, build.ints(1))
    after = build.node("Where", build.node("Equal", after, build.ints(0)), build.ints(_END), after)
    last = build.node("Where", build.constant(np.array(is_open)), _opened(op, plan, steps, -_END, _END), last)
    return build.node("Where", build.constant(np.array(single)), after, last)


@imports("CONCATENATION")
def concatenation(op: Operator) -> None:
    """Put tensors one behind the other along an axis."""
    options = op.options("ConcatenationOptions")
    axis, activation = options.integer("axis"), options.choice("fused_activation_function", ACTIVATION)

    def join(*values: Value) -> Value:
        return op.build.node("Concat", *values, axis=axis)

    written = _written(op) if axis == 0 and activation == "NONE" else None
    if written is not None:
        op.put_raw(0, written)
    elif activation == "NONE":
        op.through(join, len(op.inputs))
    else:
        op.put(0, op.activate(join(*(op.real(index) for index in range(len(op.inputs)))), activation))


def _written(op: Operator) -> Value | None:
    """Return a tensor one row of which is replaced, where all before it, the row and all behind it are joined; None elsewhere.

    This is how lists of tensors are written in loops. Without it each step copies parts of sizes that only the run shows.
    """
    if len(op.inputs) != 3 or op.info(1).signature[:1] != (1,) or not all(op.info(i).same_scale(op.output(0)) for i in range(3)):
        return None
    before, behind = (op.build.slices.get(op.raw(index)) for index in (0, 2))
    if before is None or behind is None or before[0] is not behind[0]:
        return None
    index, after = _first_of(op, before[2], -1), _first_of(op, behind[1], 0)
    if index is None or not _is_all(op, before[1], 0) or not _is_all(op, behind[2], -1) or not _is_next(op, after, index):
        return None
    place = op.build.cast(op.build.reshape(index, (1, 1)), DataType.INT64)
    return op.build.node("ScatterND", before[0], place, op.raw(1))


def _first_of(op: Operator, value: Value, others: int) -> Value | None:
    """Return the number that a list begins with, where it is joined of that and a constant all of whose elements are `others`."""
    joined = value.producer
    if joined is None or joined.op_type != "Concat" or len(joined.inputs) != 2:
        return None
    first, rest = joined.inputs
    if first is None or rest is None or not _is_all(op, rest, others):
        return None
    shaped = first.producer
    return shaped.inputs[0] if shaped is not None and shaped.op_type == "Reshape" else None


def _is_all(op: Operator, value: Value, number: int) -> bool:
    elements = op.build.array(value)
    return elements is not None and bool((elements == number).all())


def _is_next(op: Operator, value: Value | None, index: Value) -> bool:
    """Return whether a number is one more than another."""
    made = None if value is None else value.producer
    if made is None or made.op_type != "Add" or index not in made.inputs:
        return False
    return any(other is not None and other is not index and _is_all(op, other, 1) for other in made.inputs)


@imports("SPLIT")
def split(op: Operator) -> None:
    """Cut a tensor into equal parts along an axis."""
    _split(op, 1, 0, None)


@imports("SPLIT_V")
def split_v(op: Operator) -> None:
    """Cut a tensor into parts of given lengths along an axis, of which one may be -1."""
    given, build = op.maybe_constant(1), op.build
    size = -1 if op.maybe_constant(2) is None else op.info(0).signature[op.number(2)]
    if given is not None and (size >= 0 or (given != -1).all()):
        known = given.reshape(-1).tolist()
        lengths = build.ints(*(size - sum(known) - 1 if length == -1 else length for length in known))
    else:
        asked = op.shape(1)
        whole = build.node("Gather", build.node("Shape", op.raw(0)), op.shape(2))
        others = build.node("Add", build.node("ReduceSum", asked, build.ints(0)), build.ints(1))
        lengths = build.node("Where", build.node("Equal", asked, build.ints(-1)), build.node("Sub", whole, others), asked)
    _split(op, 0, 2, lengths)


def _split(op: Operator, source: int, along: int, lengths: Value | None) -> None:
    """Cut an input along an axis, which is another one, into parts of these lengths, or equal ones."""
    build, value, count = op.build, op.raw(source), len(op.outputs)
    equal = count if lengths is None else None
    if op.maybe_constant(along) is not None:
        parts = build.nodes("Split", value, lengths, outputs=count, axis=op.number(along), num_outputs=equal)
    else:
        axis, rank = op.shape(along), op.rank(source)
        cut = build.nodes("Split", to_last(build, value, axis, rank), lengths, outputs=count, axis=-1, num_outputs=equal)
        parts = tuple(from_last(build, part, axis, rank) for part in cut)
    for index, part in enumerate(parts):
        op.put_raw(index, part)


@imports("PAD", "PADV2")
def pad(op: Operator) -> None:
    """Put elements around a tensor: zeros, or the third input; the second has how many before and behind each axis."""
    pads = _pads(op)
    info = op.info(0)
    if op.code == "PADV2" and op.has(2):
        fill = op.build.reshape(op.raw(2), ())
    else:
        point = int(info.quantization.zero_points[0]) if info.quantization is not None and info.is_quantized else 0
        fill = op.build.constant(np.array(point, info.dtype.numpy))
    op.put_raw(0, op.build.node("Pad", op.raw(0), pads, fill))


@imports("MIRROR_PAD")
def mirror_pad(op: Operator) -> None:
    """Put the mirror image of a tensor around it, with its own border (SYMMETRIC) or without (REFLECT)."""
    mode = op.options("MirrorPadOptions").choice("mode", "REFLECT SYMMETRIC")
    if mode == "REFLECT":
        op.put_raw(0, op.build.node("Pad", op.raw(0), _pads(op), mode="reflect"))
        return
    value, build = op.raw(0), op.build
    if op.maybe_constant(1) is None:
        op.put_raw(0, mirrored(build, value, build.cast(op.raw(1), DataType.INT64), op.rank(0)))
        return
    for axis, (before, behind) in enumerate(op.constant(1).reshape(-1, 2).tolist()):
        parts = []
        if before:
            parts.append(
                build.node("Slice", value, build.ints(before - 1), build.ints(-_END - 1), build.ints(axis), build.ints(-1))
            )
        parts.append(value)
        if behind:
            parts.append(build.node("Slice", value, build.ints(-1), build.ints(-behind - 1), build.ints(axis), build.ints(-1)))
        value = build.node("Concat", *parts, axis=axis) if len(parts) > 1 else value
    op.put_raw(0, value)


def _pads(op: Operator) -> Value:
    """Return what is put before all axes, then behind them."""
    given = op.maybe_constant(1)
    if given is not None:
        return op.build.ints(*given.reshape(-1, 2).T.reshape(-1).tolist())
    wide = op.build.cast(op.raw(1), DataType.INT64)
    return op.build.reshape(op.build.transpose(wide, (1, 0)), (-1,))


@imports("REVERSE_V2")
def reverse(op: Operator) -> None:
    """Reverse the order of the elements along axes."""
    axes, build, given = op.axes(1), op.build, op.maybe_constant(1)
    if given is not None:
        lists = [build.ints(*[number] * given.size) for number in (-1, -_END - 1)]
    else:
        lists = [build.node("Expand", build.ints(number), build.node("Shape", axes)) for number in (-1, -_END - 1)]
    op.put_raw(0, build.node("Slice", op.raw(0), *lists, axes, lists[0]))
