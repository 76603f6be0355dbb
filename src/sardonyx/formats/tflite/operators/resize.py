"""Images in other sizes, blocks of pixels as batches, and norms over channels."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.computed import dilated, to_batch, to_space
from sardonyx.formats.tflite.operator import Operator, imports

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
