"""The custom operators of MediaPipe's models: pools with places, convolutions with biases, images read anywhere, landmarks.

Source: MediaPipe's custom operators for TensorFlow Lite.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.formats.flat.flexible import FlexValue
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.operator import ACTIVATION, Operator, imports
from sardonyx.formats.tflite.operators.conv import pads_of
from sardonyx.formats.tflite.operators.custom_options import custom_options, real_option, structure, whole_option, whole_options
from sardonyx.ir import Value

__all__ = ["landmark_matrix", "max_pool_with_places", "max_unpool", "resample", "transform_image", "transform_landmarks"]

_POOL = "padding stride_width stride_height filter_width filter_height activation"
_SAME = 1
_PLACE = 0.1
"""Added to the number of a place, which is a float that is cut to an integer later."""


def _image_sizes(op: Operator, index: int = 0) -> tuple[int, int, int]:
    """Return height, width and channels of images, which must be known."""
    shape = op.info(index).signature
    if len(shape) != 4 or min(shape[1:]) < 1:
        op.unsupported(f"images {list(shape)}, whose height, width and channels must be known when the model is read")
    return shape[1], shape[2], shape[3]


def _pool(op: Operator) -> tuple[dict[str, int], tuple[int, int], tuple[int, int]]:
    """Return the options of a pool, its window and its strides."""
    found = structure(op, _POOL)
    windows, strides = (found["filter_height"], found["filter_width"]), (found["stride_height"], found["stride_width"])
    if min(*windows, *strides) < 1 or max(*windows, *strides) > 1 << 15:
        op.refuse(f"windows {list(windows)} with strides {list(strides)}; expected numbers from 1 on")
    return found, windows, strides


@imports("MaxPoolingWithArgmax2D")
def max_pool_with_places(op: Operator) -> None:
    """Compute the greatest of each window of images (N, H, W, C), and the number of its place in the window."""
    (height, width, _), (found, windows, strides) = _image_sizes(op), _pool(op)
    pads = pads_of((height, width), windows, strides) if found["padding"] == _SAME else (0, 0, 0, 0)
    build = op.build
    values, places = build.nodes("MaxPool", op.image(0), outputs=2, kernel_shape=windows, strides=strides, pads=pads)
    rows, columns = (
        (size + before + behind - window) // stride + 1
        for size, before, behind, window, stride in zip((height, width), pads[:2], pads[2:], windows, strides, strict=True)
    )
    if rows < 1 or columns < 1:
        op.refuse(f"windows {list(windows)} do not fit into images of {height} x {width}")
    y, x = np.arange(rows) * strides[0] - pads[0], np.arange(columns) * strides[1] - pads[1]
    flat = build.node("Mod", places, build.constant(np.int64(height * width)))
    row = build.node("Div", flat, build.constant(np.int64(width)))
    inside = build.node("Add", build.node("Mul", row, build.constant(np.int64(windows[1] - width))), flat)
    number = build.node("Sub", inside, build.constant(np.add.outer(y * windows[1], x).astype(np.int64)))
    op.put_image(0, op.activate(values, _activation(op, found["activation"])))
    op.put_image(1, build.node("Add", build.cast(number, DataType.FLOAT), build.constant(np.float32(_PLACE))))


def _activation(op: Operator, number: int) -> str:
    names = ACTIVATION.split()
    if not 0 <= number < len(names):
        op.refuse(f"its activation is {number}; expected 0 to {len(names) - 1}")
    return names[number]


@imports("MaxUnpooling2D")
def max_unpool(op: Operator) -> None:
    """Put elements of images (N, H, W, C) at places in windows of images of zeros; places outside of these count for nothing."""
    (height, width, channels), (_, windows, strides) = _image_sizes(op), _pool(op)
    build, sizes = op.build, (height * windows[0], width * windows[1])
    op.check_count(height * width * channels)
    count = sizes[0] * sizes[1] * channels
    befores = [
        max((size - 1) * stride + window - whole, 0) // 2
        for size, stride, window, whole in zip((height, width), strides, windows, sizes, strict=True)
    ]
    place = build.cast(op.raw(1), DataType.INT64)
    across = build.constant(np.int64(windows[1]))
    offsets = (build.node("Div", place, across), build.node("Mod", place, across, fmod=1))
    starts = [np.arange(size) * stride - before for size, stride, before in zip((height, width), strides, befores, strict=True)]
    y = build.node("Add", offsets[0], build.constant(starts[0].reshape(-1, 1, 1).astype(np.int64)))
    x = build.node("Add", offsets[1], build.constant(starts[1].reshape(-1, 1).astype(np.int64)))
    is_inside = build.node(
        "And", _between(build, y, np.int64(0), np.int64(sizes[0] - 1)), _between(build, x, np.int64(0), np.int64(sizes[1] - 1))
    )
    pixel = build.node("Add", build.node("Mul", y, build.constant(np.int64(sizes[1]))), x)
    flat = build.node("Add", build.node("Mul", pixel, build.constant(np.int64(channels))), build.constant(np.arange(channels)))
    target = build.node("Where", is_inside, flat, build.constant(np.int64(count)))
    batch = build.node("Shape", op.raw(0), start=0, end=1)
    empty = build.node(
        "Expand", build.constant(np.zeros((1, 1), np.float32)), build.node("Concat", batch, build.ints(count + 1), axis=0)
    )
    rows = build.ints(0, height * width * channels)
    written = build.node(
        "ScatterElements", empty, build.node("Reshape", target, rows), build.node("Reshape", op.real(0), rows), axis=1
    )
    kept = build.node("Slice", written, build.ints(0), build.ints(count), build.ints(1))
    op.put(0, build.reshape(kept, (0, *sizes, channels)))


def _between(build: GraphBuilder, value: Value, first: np.generic, last: np.generic) -> Value:
    low = build.node("GreaterOrEqual", value, build.constant(first))
    return build.node("And", low, build.node("LessOrEqual", value, build.constant(last)))


@imports("Convolution2DTransposeBias")
def transpose_conv_bias(op: Operator) -> None:
    """Compute the gradient of a convolution by filters (M, kernel H, kernel W, C), and add a bias."""
    found, (height, width, _) = structure(op, "padding stride_width stride_height"), _image_sizes(op)
    strides, filters = (found["stride_height"], found["stride_width"]), op.info(1)
    if min(strides) < 1 or filters.rank != 4 or op.info(2).rank != 1:
        op.refuse(f"strides {list(strides)}, filters {list(filters.shape)} and biases {list(op.info(2).shape)}")
    totals = [0, 0]
    if found["padding"] == _SAME:
        sizes = zip((height, width), filters.shape[1:3], strides, strict=True)
        totals = [max(window - (size - 1) % stride - 1, 0) for size, window, stride in sizes]
    pads = (*(total // 2 for total in totals), *(total - total // 2 for total in totals))
    weights = op.build.transpose(op.real(1), (3, 0, 1, 2))
    op.put_image(0, op.build.node("ConvTranspose", op.image(0), weights, op.real(2), strides=strides, pads=pads))


@imports("TransformTensor", "TransformTensorBilinear")
def transform_image(op: Operator) -> None:
    """Read an image (1, H, W, C) at places that a matrix makes of the pixels of the result; zeros outside of it.

    The second version counts from the middles of pixels.
    """
    (height, width, channels), made = _image_sizes(op), op.output(0).shape
    if len(made) != 4 or min(made) < 1 or op.info(0).shape[0] != 1 or custom_options(op).get("mode", "bilinear") != "bilinear":
        op.unsupported(
            f"images {list(op.info(0).shape)} to {list(made)}, which must be one of a known size, read by two pixels each way"
        )
    build = op.build
    op.check_count(made[1] * made[2])
    numbers = _numbers(build, op.real(1), 8)
    if op.code.endswith("Bilinear"):
        half = build.constant(np.float32(0.5))
        for row in (0, 4):
            sum_ = build.node("Add", build.node("Mul", numbers[row], half), build.node("Mul", numbers[row + 1], half))
            numbers[row + 3] = build.node("Add", numbers[row + 3], build.node("Sub", sum_, half))
    across = build.constant(np.tile(np.arange(made[2], dtype=np.float32), made[1]))
    down = build.constant(np.repeat(np.arange(made[1], dtype=np.float32), made[2]))
    places = []
    for row in (0, 4):
        product = build.node("Add", build.node("Mul", numbers[row], across), build.node("Mul", numbers[row + 1], down))
        places.append(build.node("Add", product, numbers[row + 3]))
    x, y = places
    read = _read_between(build, build.reshape(op.real(0), (-1, channels)), (height, width), x, y)
    limits = [_between(build, place, np.float32(0), np.float32(size - 1)) for place, size in ((x, width), (y, height))]
    is_inside = build.node("Unsqueeze", build.node("And", *limits), build.ints(1))
    op.put(0, build.reshape(build.node("Where", is_inside, read, build.constant(np.float32(0))), made))


@imports("Resampler")
def resample(op: Operator) -> None:
    """Read images (N, H, W, C) at places (N, H, W, 2), x before y; pixels outside are zeros."""
    (height, width, channels), (batch, *_) = _image_sizes(op), op.info(0).signature
    if batch < 1 or op.info(1).shape != (batch, height, width, 2):
        op.unsupported(f"images {list(op.info(0).signature)} at places {list(op.info(1).shape)}; expected (N, H, W, 2), all known")
    build = op.build
    op.check_count(batch * height * width)
    pairs = build.reshape(op.real(1), (-1, 2))
    x, y = (build.node("Gather", pairs, build.constant(np.int64(place)), axis=1) for place in (0, 1))
    first = np.repeat(np.arange(batch) * height * width, height * width)
    read = _read_between(build, build.reshape(op.real(0), (-1, channels)), (height, width), x, y, first)
    op.put(0, build.reshape(read, (batch, height, width, channels)))


def _read_between(
    build: GraphBuilder, pixels: Value, sizes: tuple[int, int], x: Value, y: Value, first: Array | None = None
) -> Value:
    """Return images (places, C), read between pixels (N x H x W, C) at places x and y; `first` is where a place's image begins."""
    height, width = sizes
    one, zero = build.constant(np.float32(1)), build.constant(np.float32(0))
    corners = [build.node("Floor", place) for place in (x, y)]
    parts = [build.node("Sub", place, corner) for place, corner in zip((x, y), corners, strict=True)]
    total: Value | None = None
    for down in (0, 1):
        for across in (0, 1):
            found = [
                build.node("Add", corner, one) if step else corner for corner, step in zip(corners, (across, down), strict=True)
            ]
            shares = [part if step else build.node("Sub", one, part) for part, step in zip(parts, (across, down), strict=True)]
            is_inside = build.node(
                "And",
                _between(build, found[0], np.float32(0), np.float32(width - 1)),
                _between(build, found[1], np.float32(0), np.float32(height - 1)),
            )
            column, row = (build.cast(build.node("Where", is_inside, place, zero), DataType.INT64) for place in found)
            index = build.node("Add", build.node("Mul", row, build.constant(np.int64(width))), column)
            if first is not None:
                index = build.node("Add", index, build.constant(first.astype(np.int64)))
            share = build.node("Where", is_inside, build.node("Mul", *shares), zero)
            term = build.node("Mul", build.node("Gather", pixels, index, axis=0), build.node("Unsqueeze", share, build.ints(1)))
            total = term if total is None else build.node("Add", total, term)
    assert total is not None
    return total


def _numbers(build: GraphBuilder, value: Value, count: int) -> list[Value]:
    """Return the first elements of a tensor as scalars."""
    flat = build.reshape(value, (-1,))
    return [build.node("Gather", flat, build.constant(np.int64(place)), axis=0) for place in range(count)]


@imports("TransformLandmarks")
def transform_landmarks(op: Operator) -> None:
    """Multiply points by the first two rows of a matrix (4, 4); a third number of each stays what it is.

    Points lie in the channels of an image (1, H, W, count x dimensions), or one on each row of (1, count, dimensions).
    """
    build, info, given = op.build, op.info(0), custom_options(op)
    dimensions = whole_option(op, given, "dimensions", 3) if info.rank == 4 else info.shape[-1] if info.rank == 3 else 0
    if dimensions not in (2, 3) or info.shape[-1] % dimensions:
        op.refuse(f"points {list(info.shape)} of {dimensions} numbers; expected two or three")
    scale = real_option(op, given, "scale", 1.0) if info.rank == 4 else 1.0
    flat = build.reshape(op.real(1), (-1,))
    turn = build.reshape(build.node("Gather", flat, build.ints(0, 4, 1, 5), axis=0), (2, 2))
    shift = build.node("Mul", build.node("Gather", flat, build.ints(3, 7), axis=0), build.constant(np.float32(scale)))
    points = build.reshape(op.real(0), (-1, dimensions))
    plane = build.node("Slice", points, build.ints(0), build.ints(2), build.ints(1))
    moved = build.node("Add", build.node("MatMul", plane, turn), shift)
    if dimensions == 3:
        rest = build.node("Slice", points, build.ints(2), build.ints(3), build.ints(1))
        moved = build.node("Concat", moved, rest, axis=1)
    op.put(0, build.node("Reshape", moved, build.node("Shape", op.raw(0))))


@imports("Landmarks2TransformMatrix")
def landmark_matrix(op: Operator) -> None:
    """Compute the matrix (1, 4, 4) that maps the pixels of a crop around landmarks to those of the image.

    The crop lies along the line between two landmarks, and around all of a subset; the second version is that of inputs of rank
    three.
    """
    build, given = op.build, custom_options(op)
    is_first = op.rank(0) == 4
    subset = whole_options(op, given, "subset" if is_first else "subset_idxs")
    ends = [whole_option(op, given, f"{side}_rotation_idx") for side in ("left", "right")]
    count = math.prod(op.info(0).shape) // 3 if -1 not in op.info(0).signature else 0
    if not subset or max(*subset, *ends) >= count:
        op.refuse(f"landmarks {[*subset, *ends]} of {count}")
    points = build.reshape(op.real(0), (-1, 3))
    left, right = (_numbers(build, build.node("Gather", points, build.constant(np.int64(end)), axis=0), 2) for end in ends)
    rise, run = (build.node("Sub", right[axis], left[axis]) for axis in (1, 0))
    if is_first:
        angle = build.node("Neg", build.node("Atan", build.node("Div", rise, run)))
    else:
        target = build.constant(np.float32(real_option(op, given, "target_rotation_radians")))
        angle = build.node("Sub", target, op.own("Atan2", rise, run))
    turn = build.node("Cos", angle), build.node("Sin", angle)
    chosen = build.node("Gather", points, build.ints(*subset), axis=0)
    x, y = (build.node("Gather", chosen, build.constant(np.int64(axis)), axis=1) for axis in (0, 1))
    (width, height), middle = _box(build, x, y, turn)
    if is_first:
        _put_relative_matrix(op, given, turn, (width, height), middle)
    else:
        _put_pixel_matrix(op, given, turn, (width, height), middle)


_Pair = tuple[Value, Value]


def _box(build: GraphBuilder, x: Value, y: Value, turn: _Pair) -> tuple[_Pair, _Pair]:
    """Return the size of the box around points that are turned, and its middle, turned back."""
    cosine, sine = turn
    turned = (
        build.node("Sub", build.node("Mul", x, cosine), build.node("Mul", y, sine)),
        build.node("Add", build.node("Mul", x, sine), build.node("Mul", y, cosine)),
    )
    most = [build.node("ReduceMax", axis, keepdims=0) for axis in turned]
    least = [build.node("ReduceMin", axis, keepdims=0) for axis in turned]
    half = build.constant(np.float32(0.5))
    a, b = (build.node("Mul", build.node("Add", high, low), half) for high, low in zip(most, least, strict=True))
    back = (
        build.node("Add", build.node("Mul", a, cosine), build.node("Mul", b, sine)),
        build.node("Sub", build.node("Mul", b, cosine), build.node("Mul", a, sine)),
    )
    width, height = (build.node("Sub", high, low) for high, low in zip(most, least, strict=True))
    return (width, height), back


def _scaled(build: GraphBuilder, value: Value, factor: float, shift: float = 0.0) -> Value:
    scaled = build.node("Mul", value, build.constant(np.float32(factor)))
    return build.node("Add", scaled, build.constant(np.float32(shift))) if shift else scaled


def _put_relative_matrix(op: Operator, given: dict[str, FlexValue], turn: _Pair, box: _Pair, middle: _Pair) -> None:
    """Make the matrix of the first version, between places from -1 to 1 in both images."""
    build = op.build
    span = whole_option(op, given, "landmarks_range")
    source, target = (whole_options(op, given, name) for name in ("input_hw", "output_hw"))
    if whole_option(op, given, "dimensions") != 3 or span < 1 or len(source) != 2 or len(target) != 2 or min(*source, *target) < 1:
        op.refuse(f"sizes {source} and {target}, a range of {span}; expected landmarks of three numbers, sizes from 1 on")
    if min(target) < 2:
        op.refuse(f"its crop has {target} pixels; expected two or more each way")
    factor = real_option(op, given, "bbox_size_multiplier") / span
    sizes = [_scaled(build, size, factor) for size in box]
    shifts = [_scaled(build, place, 2 / span, -1.0) for place in middle]
    _put_matrix(
        op,
        turn,
        sizes,
        shifts,
        [2 / (target[1] - 1), 2 / (target[0] - 1)],
        [1.0, 1.0],
        [(source[1] - 1) / 2, (source[0] - 1) / 2],
        1.0,
    )


def _put_pixel_matrix(op: Operator, given: dict[str, FlexValue], turn: _Pair, box: _Pair, middle: _Pair) -> None:
    """Make the matrix of the second version, between pixels."""
    build = op.build
    target = [whole_option(op, given, f"output_{side}") for side in ("width", "height")]
    if min(target) < 1:
        op.refuse(f"its crop has {target} pixels; expected one or more each way")
    scales = [real_option(op, given, f"scale_{axis}") for axis in "xy"]
    sizes = [_scaled(build, size, scale / pixels) for size, scale, pixels in zip(box, scales, target, strict=True)]
    _put_matrix(op, turn, sizes, list(middle), [1.0, 1.0], [pixels / 2 for pixels in target], [1.0, 1.0], 0.0)


def _put_matrix(
    op: Operator,
    turn: _Pair,
    sizes: list[Value],
    shifts: list[Value],
    steps: list[float],
    centers: list[float],
    factors: list[float],
    border: float,
) -> None:
    """Make the output of a turn back and of sizes.

    Pixels are `steps` apart, less `centers`; what comes out is `border` more, times `factors`.
    """
    build, (cosine, sine), rows = op.build, turn, []
    turned = ((cosine, sine), (build.node("Neg", sine), cosine))
    zero, one = (build.constant(np.zeros(1, np.float32) + number) for number in (0, 1))
    for row, shift, factor in zip(turned, shifts, factors, strict=True):
        parts = [build.node("Mul", part, size) for part, size in zip(row, sizes, strict=True)]
        center = build.node("Add", *(_scaled(build, part, place) for part, place in zip(parts, centers, strict=True)))
        moved = _scaled(build, _scaled(build, build.node("Sub", shift, center), 1.0, border), factor)
        numbers = [_scaled(build, part, step * factor) for part, step in zip(parts, steps, strict=True)]
        rows += [*(build.reshape(number, (1,)) for number in numbers), zero, build.reshape(moved, (1,))]
    flat = build.node("Concat", *rows, zero, zero, one, zero, zero, zero, zero, one, axis=0)
    op.put(0, build.reshape(flat, (1, 4, 4)))
