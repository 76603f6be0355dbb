"""What Circle adds to TensorFlow Lite: norms, rotary positions, GRU, binary-coded weights, attention.

Sources: the public Circle schema; ONE's luci-interpreter for the inputs of GRU and the halves that ROPE rotates; its
onert for ATTENTION.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.formats.tflite.operator import ACTIVATION, Operator, imports
from sardonyx.ir import Tensor, TensorType, Value

__all__ = ["instance_norm", "rms_norm", "rope"]


@imports("INSTANCE_NORM")
def instance_norm(op: Operator) -> None:
    """Normalize each channel of each image (N, H, W, C) by its mean and variance, then scale and shift it."""
    options, rank = op.options("InstanceNormOptions"), op.rank(0)
    value = op.build.node("InstanceNormalization", op.image(0), _channels(op, 1), _channels(op, 2), epsilon=options.real("epsilon"))
    op.put_image(0, op.activate(value, options.choice("fused_activation_function", ACTIVATION)), rank)


def _channels(op: Operator, index: int) -> Value:
    """Return numbers of channels, of which one may serve all."""
    channels, info = op.info(0).shape[-1], op.info(index)
    value = op.build.reshape(op.real(index), (-1,))
    if int(np.prod(info.shape)) == channels:
        return value
    return op.build.node("Expand", value, op.build.ints(channels))


@imports("RMS_NORM")
def rms_norm(op: Operator) -> None:
    """Divide by the root of the mean square along the last axis, and scale."""
    options, build, value = op.options("RmsNormOptions"), op.build, op.real(0)
    mean = build.node("ReduceMean", build.node("Mul", value, value), build.ints(-1), keepdims=1)
    root = build.node("Sqrt", build.node("Add", mean, build.constant(np.float32(options.real("epsilon")))))
    made = build.node("Div", value, root)
    op.put(0, build.node("Mul", made, op.real(1)) if op.has(1) else made)


@imports("ROPE")
def rope(op: Operator) -> None:
    """Rotate pairs of features by angles, whose sines and cosines are given: halves of the features, or neighbours."""
    build, value, size = op.build, op.real(0), op.info(0).shape[-1]
    mode = op.options("RoPEOptions").choice("mode", "GPT_NEOX GPT_J")
    sines, cosines = op.real(1), op.real(2)
    if size % 2:
        op.refuse(f"its last axis has {size} features; expected an even number")
    last, middle = build.ints(-1), build.ints(size // 2)
    if mode == "GPT_NEOX":
        left = build.node("Slice", value, build.ints(0), middle, last)
        right = build.node("Slice", value, middle, build.ints(size), last)
        rotated = build.node("Concat", build.node("Neg", right), left, axis=-1)
    else:
        even = build.node("Slice", value, build.ints(0), build.ints(size), last, build.ints(2))
        odd = build.node("Slice", value, build.ints(1), build.ints(size), last, build.ints(2))
        pairs = [build.node("Unsqueeze", part, last) for part in (build.node("Neg", odd), even)]
        rotated = build.node("Reshape", build.node("Concat", *pairs, axis=-1), build.node("Shape", value))
    op.put(0, build.node("Add", build.node("Mul", value, cosines), build.node("Mul", rotated, sines)))


@imports("GRU")
def gru(op: Operator) -> None:
    """Run a GRU over sequences (time, batch, …): inputs are weights and biases of the hidden state, then those of the input.

    The gates are in the order update, reset, candidate; the candidate's hidden part is reset behind its bias.
    """
    options, build = op.options("GRUOptions"), op.build
    weights, inputs = op.real(1), op.real(3)
    size = op.info(1).shape[-1]
    value = op.real(0) if options.flag("time_major") else build.transpose(op.real(0), (1, 0, 2))
    biases = build.node("Concat", *(build.reshape(op.real(index), (-1,)) for index in (4, 2)), axis=0)
    one = build.ints(0)
    made, last = build.nodes(
        "GRU",
        value,
        build.node("Unsqueeze", inputs, one),
        build.node("Unsqueeze", weights, one),
        build.node("Unsqueeze", biases, one),
        None,
        build.node("Unsqueeze", op.real(5), one),
        outputs=2,
        hidden_size=size,
        linear_before_reset=1,
    )
    if not options.flag("return_sequences"):
        op.put(0, build.node("Squeeze", last, one))
        return
    made = build.node("Squeeze", made, build.ints(1))
    op.put(0, made if options.flag("time_major") else build.transpose(made, (1, 0, 2)))


@imports("BCQ_FULLY_CONNECTED")
def bcq_fully_connected(op: Operator) -> None:
    """Multiply columns (K, batch) by binary-coded weights (rows, K), and add a bias to each row."""
    options, build = op.options("BCQFullyConnectedOptions"), op.build
    weights = _decoded(op, 1, 2, 4, options.integer("weights_hidden_size"))
    value = build.node("MatMul", build.initializer(Tensor.from_array(weights)), op.real(0))
    if op.has(3):
        value = build.node("Add", value, build.reshape(op.real(3), (-1, 1)))
    op.put(0, op.activate(value, options.choice("fused_activation_function", ACTIVATION)))


@imports("BCQ_GATHER")
def bcq_gather(op: Operator) -> None:
    """Choose rows of binary-coded weights."""
    options = op.options("BCQGatherOptions")
    rows = _decoded(op, 0, 1, 3, options.integer("input_hidden_size"))
    table = op.build.initializer(Tensor.from_array(rows))
    op.put(0, op.build.node("Gather", table, op.raw(2), axis=options.integer("axis")))


def _decoded(op: Operator, scales_index: int, codes_index: int, clusters_index: int, width: int) -> Array:
    """Return weights that are sums of scaled signs.

    A cluster (bits, rows) says that so many rows follow of so many signs each; 32 signs are a word, from the lowest bit on. Each
    row has, for each of its bits, words for its elements and a scale.
    """
    scales = op.constant(scales_index).reshape(-1).astype(np.float32)
    words = np.ascontiguousarray(op.constant(codes_index).reshape(-1)).view(np.uint32)
    clusters = op.constant(clusters_index).reshape(-1, 2).tolist()
    per_row = -(-width // 32)
    if width < 1 or any(min(pair) < 0 for pair in clusters):
        op.refuse(f"clusters {clusters} of rows of {width} elements are none")
    needed = sum(bits * rows for bits, rows in clusters)
    if needed != len(scales) or needed * per_row != len(words):
        op.refuse(
            f"clusters {clusters} need {needed} scales and {needed * per_row} words; there are {len(scales)} and {len(words)}"
        )
    parts, scale_start, word_start = [], 0, 0
    for bits, rows in clusters:
        count = bits * rows
        packed = words[word_start : word_start + count * per_row].view(np.uint8)
        codes = np.unpackbits(packed, bitorder="little").reshape(bits, rows, per_row * 32)
        signs = codes[:, :, :width].astype(np.float32) * 2 - 1
        parts.append((signs * scales[scale_start : scale_start + count].reshape(bits, rows, 1)).sum(axis=0))
        scale_start, word_start = scale_start + count, word_start + count * per_row
    return np.concatenate(parts).astype(np.float32) if parts else np.zeros((0, width), np.float32)


@imports("ATTENTION")
def attention(op: Operator) -> None:
    """Attend from one token (1, 1, D) to those before it, whose keys and values are in caches (1, positions, heads, D / heads).

    Inputs are the token, weights (D, D) of queries, keys, values and the result, cosines and sines that turn halves of queries and
    keys, a mask that is added to the scores of as many positions as it has, both caches, and the token's position. onert writes the
    token's key and value into the memory of the caches. Here a cache that is a variable is assigned; of any other the next one is
    an output more, called after it, which the caller feeds in the next run.
    """
    build, width = op.build, op.info(0).shape[-1]
    heads, size = _cache_sizes(op, width)
    position = build.reshape(build.cast(op.raw(10), DataType.INT64), (1,))
    queries, keys, values = (build.node("MatMul", op.real(0), build.transpose(op.real(index), (1, 0))) for index in (1, 2, 3))
    queries, keys = (_turned(op, build.reshape(value, (1, 1, heads, size)), size) for value in (queries, keys))
    place = build.node("Concat", build.ints(0), position, axis=0)
    rows = {8: build.reshape(keys, (1, heads, size)), 9: build.reshape(values, (1, heads, size))}
    known = {index: build.node("ScatterND", op.real(index), build.reshape(place, (1, 2)), row) for index, row in rows.items()}
    for index, cache in known.items():
        _hand_on(op, index, cache)
    mask = build.reshape(op.real(7), (1, 1, 1, -1))
    count = build.node("Slice", build.node("Shape", mask), build.ints(3), build.ints(4), build.ints(0))
    past = {index: build.node("Slice", cache, build.ints(0), count, build.ints(1)) for index, cache in known.items()}
    scores = build.node("MatMul", build.transpose(queries, (0, 2, 1, 3)), build.transpose(past[8], (0, 2, 3, 1)))
    scaled = build.node("Mul", scores, build.constant(np.float32(1 / np.sqrt(size))))
    weights = build.node("Softmax", build.node("Add", scaled, mask), axis=-1)
    made = build.node("MatMul", weights, build.transpose(past[9], (0, 2, 1, 3)))
    op.put(0, build.node("MatMul", build.reshape(made, (1, 1, width)), build.transpose(op.real(4), (1, 0))))


def _cache_sizes(op: Operator, width: int) -> tuple[int, int]:
    """Return the number of heads and the size of one; refuses what is not one token with two caches that go with it."""
    missing = [name for index, name in ((5, "cosines"), (6, "sines"), (7, "mask"), (10, "position")) if not op.has(index)]
    if missing:
        op.refuse(f"it has no {', '.join(missing)}; expected all of its inputs")
    token, *caches = (list(op.info(index).shape) for index in (0, 8, 9))
    if token != [1, 1, width] or not op.variables.is_main:
        op.unsupported(f"attention of {token} is not supported; one token (1, 1, D) in the main subgraph is, as in onert")
    positions, heads, size = caches[0][1:] if len(caches[0]) == 4 else (0, 0, 0)
    if caches != [[1, positions, heads, size]] * 2 or positions < 1 or heads * size != width or size % 2:
        op.refuse(f"its caches are {caches}; expected two of (1, positions, heads, an even size), {width} for all heads together")
    return heads, size


def _turned(op: Operator, value: Value, size: int) -> Value:
    """Return rows (1, 1, heads, size) with their halves turned."""
    build, last, middle = op.build, op.build.ints(-1), op.build.ints(size // 2)
    cosines, sines = (build.reshape(op.real(index), (1, 1, 1, size)) for index in (5, 6))
    left, right = (build.node("Slice", value, *ends, last) for ends in ((build.ints(0), middle), (middle, build.ints(size))))
    turned = build.node("Concat", build.node("Neg", right), left, axis=-1)
    return build.node("Add", build.node("Mul", value, cosines), build.node("Mul", turned, sines))


def _hand_on(op: Operator, index: int, cache: Value) -> None:
    if op.info(index).is_variable:
        op.assign(index, cache)
        return
    made = op.build.node("Identity", cache)
    made.name = op.build.name(f"{op.info(index).name or f'cache_{index}'}:next")
    made.type = TensorType(DataType.FLOAT, op.info(index).shape)
    op.variables.hand_on(made)
