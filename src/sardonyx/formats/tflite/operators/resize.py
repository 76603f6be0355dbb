"""Images in other sizes, blocks of pixels as batches, and norms over channels."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.computed import dilated, to_batch, to_space
from sardonyx.formats.tflite.operator import Operator, imports
from sardonyx.ir import Value

__all__ = ["batch_to_space", "resize", "space_to_batch"]


@imports("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(op: Operator) -> None:
    """Resize images (N, H, W, C) to the heights and widths of the second input."""
    is_linear = op.code == "RESIZE_BILINEAR"
    options = op.options("ResizeBilinearOptions" if is_linear else "ResizeNearestNeighborOptions")
    corners, centers = options.flag("align_corners"), options.flag("half_pixel_centers")
    if op.rank(0) != 4:
        op.refuse(f"it resizes a tensor of rank {op.rank(0)}; expected 4")
    places = "align_corners" if corners else "half_pixel" if centers else "asymmetric"
    nearest = None if is_linear else "round_prefer_ceil" if corners or centers else "floor"
    mode = "linear" if is_linear else "nearest"
    build = op.build
    if is_linear and op.info(0).dtype in _FIXED_POINT and not _is_exact(op, corners=corners, centers=centers):
        op.put_raw(0, _in_fixed_point(op, corners=corners, centers=centers))
        return
    same = not is_linear and op.info(0).same_scale(op.output(0))
    value = build.first(op.raw(0), 4) if same else op.image(0)
    sizes, info = op.maybe_constant(1), op.info(0)
    given = [] if sizes is None else sizes.reshape(-1).tolist()
    if given and -1 not in (info.signature[0], info.signature[3]):
        value = build.node(
            "Resize",
            value,
            None,
            None,
            build.ints(info.shape[0], info.shape[3], *given),
            mode=mode,
            nearest_mode=nearest,
            coordinate_transformation_mode=places,
        )
    elif (
        given
        and not corners
        and -1 not in info.signature[1:3]
        and not any(b % a for a, b in zip(info.shape[1:3], given, strict=True))
    ):
        scales = build.constant(np.array([1, 1, given[0] / info.shape[1], given[1] / info.shape[2]], np.float32))
        value = build.node("Resize", value, None, scales, mode=mode, nearest_mode=nearest, coordinate_transformation_mode=places)
    else:
        shape = build.node("Concat", build.node("Shape", value, start=0, end=2), op.shape(1), axis=0)
        value = build.node(
            "Resize", value, None, None, shape, mode=mode, nearest_mode=nearest, coordinate_transformation_mode=places
        )
    if same:
        op.put_raw(0, build.last(value, 4))
    else:
        op.put_image(0, value)


_FIXED_POINT = (DataType.INT8, DataType.INT16)
"""The types that LiteRT resizes with places and weights of 10 bits behind the point, which differ by many steps where these do not
suffice."""
_ONE = 1 << 10


def _is_exact(op: Operator, *, corners: bool, centers: bool) -> bool:
    """Return whether 10 bits hold the places exactly, by which a pixel of the result comes from two of the image."""
    sizes, info = op.maybe_constant(1), op.info(0)
    if sizes is None or -1 in info.signature[1:3]:
        return False
    for old, new in zip(info.shape[1:3], map(int, sizes.reshape(-1)), strict=True):
        above, below = (old - 1, new - 1) if corners and new > 1 else (old, new)
        if new < 1 or _ONE * above % below or (centers and _ONE * above // below % 2):
            return False
    return True


def _in_fixed_point(op: Operator, *, corners: bool, centers: bool) -> Value:
    """Return what LiteRT's reference kernel makes of integers: the same places, weights and rounding."""
    build, wide = op.build, DataType.INT32 if op.info(0).dtype is DataType.INT8 else DataType.INT64
    value, new = build.cast(op.raw(0), wide), op.shape(1)
    old = build.node("Shape", op.raw(0), start=1, end=3)
    for axis in (0, 1):
        sizes = (build.node("Gather", each, build.ints(axis)) for each in (old, new))
        first, second, weights = _neighbours(build, *sizes, corners=corners, centers=centers)
        weights = build.node("Unsqueeze", build.cast(weights, wide), build.ints(*range(1, 3 - axis)))
        rest = build.node("Sub", build.constant(np.array(_ONE, wide.numpy)), weights)
        one, other = (build.node("Gather", value, places, axis=1 + axis) for places in (first, second))
        value = build.node("Add", build.node("Mul", one, rest), build.node("Mul", other, weights))
    half, whole = (build.constant(np.array(number, wide.numpy)) for number in (_ONE * _ONE // 2, _ONE * _ONE))
    is_negative = build.node("Less", value, build.constant(np.array(0, wide.numpy)))
    rounded = build.node("Add", value, build.node("Where", is_negative, build.node("Neg", half), half))
    return build.cast(build.node("Div", rounded, whole), op.info(0).dtype)


def _neighbours(build: GraphBuilder, old: Value, new: Value, *, corners: bool, centers: bool) -> tuple[Value, Value, Value]:
    """Return for each place of an axis the two that it lies between, and the weight of the second in units of `_ONE`.

    Args:
        build: makes the nodes; division rounds towards zero.
        old: the size of the axis, one number.
        new: its size afterwards.
        corners: whether the first and the last place stay where they are.
        centers: whether places are in the middle of pixels.
    """
    one, two, unit = build.ints(1), build.ints(2), build.ints(_ONE)

    def step_of(above: Value, below: Value) -> Value:
        half = build.node("Div", below, two)
        return build.node("Div", build.node("Add", build.node("Mul", unit, above), half), build.node("Max", below, one))

    step = step_of(old, new)
    if corners:
        inner = step_of(build.node("Sub", old, one), build.node("Sub", new, one))
        step = build.node("Where", build.node("Greater", new, one), inner, step)
    count = build.node("Squeeze", new)
    zero = build.constant(np.array(0, np.int64))
    places = build.node("Mul", build.node("Range", zero, count, build.constant(np.array(1, np.int64))), step)
    if centers:
        places = build.node("Add", places, build.node("Sub", build.node("Div", step, two), build.ints(_ONE // 2)))
    first = build.node("Max", build.node("Div", places, unit), build.ints(0))
    second = build.node("Div", build.node("Add", places, build.ints(_ONE - 1)), unit)
    second = build.node("Min", second, build.node("Sub", old, one))
    return first, second, build.node("Sub", places, build.node("Mul", first, unit))


@imports("SPACE_TO_BATCH_ND")
def space_to_batch(op: Operator) -> None:
    """Pad the axes behind the first, and move blocks of them into it."""
    build, info = op.build, op.info(0)
    point = int(info.quantization.zero_points[0]) if info.quantization is not None and info.is_quantized else 0
    fill = build.constant(np.array(point, info.dtype.numpy))
    if _is_computed(op):
        given = op.shape(1), build.cast(op.raw(2), DataType.INT64)
        op.put_raw(0, to_batch(build, op.raw(0), *given, fill, op.rank(0), _blocks_count(op)))
        return
    blocks, pads = op.constant(1).reshape(-1).tolist(), op.constant(2).reshape(-1, 2).tolist()
    count = _blocks_count(op)
    if count != len(pads) or min(blocks, default=1) < 1:
        op.refuse(f"blocks {blocks} and borders {pads} do not go together")
    sizes = [size + before + behind for size, (before, behind) in zip(info.shape[1 : count + 1], pads, strict=True)]
    if any(size % block for size, block in zip(sizes, blocks, strict=True)):
        op.refuse(f"axes of {sizes} elements are not cut into blocks of {blocks}")
    rest = info.shape[count + 1 :]
    value = op.raw(0)
    if any(map(any, pads)):
        befores, behinds = [before for before, _ in pads], [behind for _, behind in pads]
        around = build.ints(0, *befores, *([0] * len(rest)), 0, *behinds, *([0] * len(rest)))
        value = build.node("Pad", value, around, fill)
    inner = [part for size, block in zip(sizes, blocks, strict=True) for part in (size // block, block)]
    value = build.reshape(value, (-1, *inner, *rest))
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, 2 * count + 1 + len(rest))]
    value = build.transpose(value, order)
    op.put_raw(0, build.reshape(value, (-1, *(size // block for size, block in zip(sizes, blocks, strict=True)), *rest)))


@imports("BATCH_TO_SPACE_ND")
def batch_to_space(op: Operator) -> None:
    """Move blocks from the first axis into those behind it, and crop these."""
    build, info = op.build, op.info(0)
    if _is_computed(op):
        given = op.shape(1), build.cast(op.raw(2), DataType.INT64)
        op.put_raw(0, to_space(build, op.raw(0), *given, op.rank(0), _blocks_count(op)))
        return
    blocks, crops = op.constant(1).reshape(-1).tolist(), op.constant(2).reshape(-1, 2).tolist()
    count = _blocks_count(op)
    if count != len(crops) or min(blocks, default=1) < 1:
        op.refuse(f"blocks {blocks} and borders {crops} do not go together")
    inner, rest = info.shape[1 : count + 1], info.shape[count + 1 :]
    value = build.reshape(op.raw(0), (*blocks, -1, *inner, *rest))
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    value = build.transpose(value, [*order, *range(2 * count + 1, 2 * count + 1 + len(rest))])
    sizes = [size * block for size, block in zip(inner, blocks, strict=True)]
    value = build.reshape(value, (-1, *sizes, *rest))
    if any(map(any, crops)):
        ends = [size - behind for size, (_, behind) in zip(sizes, crops, strict=True)]
        starts = [before for before, _ in crops]
        value = build.node("Slice", value, build.ints(*starts), build.ints(*ends), build.ints(*range(1, count + 1)))
    op.put_raw(0, value)


def _is_computed(op: Operator) -> bool:
    """Return whether the run decides about blocks or their borders, or about sizes behind the first one."""
    return -1 in op.info(0).signature[1:] or op.maybe_constant(1) is None or op.maybe_constant(2) is None


def _blocks_count(op: Operator) -> int:
    """Return how many axes are cut into blocks, or made of them."""
    info, rank = op.info(1), op.rank(0)
    if info.rank != 1 or not info.shape[0] < rank:
        op.refuse(f"blocks of shape {list(info.shape)} do not go with a tensor of rank {rank}")
    return info.shape[0]


@imports("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(op: Operator) -> None:
    """Divide by a power of a bias and of squares of neighbouring channels."""
    options = op.options("LocalResponseNormalizationOptions")
    size = 2 * options.integer("radius") + 1
    if size < 1:
        op.refuse(f"its radius is {options.integer('radius')}; expected 0 or more")
    value = op.build.node(
        "LRN",
        op.image(0),
        size=size,
        alpha=options.real("alpha") * size,
        beta=options.real("beta"),
        bias=options.real("bias"),
    )
    op.put_image(0, value)


@imports("L2_NORMALIZATION")
def l2_normalization(op: Operator) -> None:
    """Divide by the root of the sum of squares along the last axis, which counts as 1e-6 at least."""
    build, value = op.build, op.real(0)
    norm = build.node("Sqrt", build.node("ReduceSum", build.node("Mul", value, value), build.ints(-1), keepdims=1))
    norm = build.node("Max", norm, build.constant(np.float32(1e-6)))
    value = build.node("Div", value, norm)
    op.put(0, op.activate(value, op.options("L2NormOptions").choice("fused_activation_function", "NONE RELU RELU_N1_TO_1 RELU6")))


@imports("DILATE")
def dilate(op: Operator) -> None:
    """Put elements of a number between the elements of each axis."""
    build, info = op.build, op.info(0)
    if op.maybe_constant(1) is None or -1 in info.signature:
        op.put_raw(0, dilated(build, op.raw(0), op.shape(1), build.reshape(op.raw(2), ()), op.rank(0)))
        return
    steps = op.constant(1).reshape(-1).tolist()
    if len(steps) != info.rank or min(steps, default=1) < 1:
        op.refuse(f"steps {steps} do not go with a tensor of shape {list(info.shape)}")
    value, sizes = op.raw(0), list(info.shape)
    made = tuple((size - 1) * step + 1 if size else 0 for size, step in zip(sizes, steps, strict=True))
    if made != op.output(0).shape:
        op.refuse(f"steps {steps} make {list(made)} of {sizes}, and the output has shape {list(op.output(0).shape)}")
    fill = build.reshape(op.raw(2), ())
    for axis, step in enumerate(steps):
        if step == 1 or sizes[axis] < 2:
            continue
        length = (sizes[axis] - 1) * step + 1
        value = build.reshape(value, [*sizes[: axis + 1], 1, *sizes[axis + 1 :]])
        rank = len(sizes) + 1
        behind = [0] * rank + [step - 1 if place == axis + 1 else 0 for place in range(rank)]
        value = build.node("Pad", value, build.ints(*behind), fill)
        sizes[axis] *= step
        value = build.reshape(value, sizes)
        value = build.node("Slice", value, build.ints(0), build.ints(length), build.ints(axis))
        sizes[axis] = length
    op.put_raw(0, value)
