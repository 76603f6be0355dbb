"""Elements chosen and placed by indices, and the order of elements."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.computed import replaced
from sardonyx.formats.tflite.operator import Operator, imports
from sardonyx.formats.tflite.quantize import scaled
from sardonyx.ir import Value

__all__ = ["gather", "scatter_nd"]

_NARROW = (DataType.INT4, DataType.INT2)
_SEGMENTS = {
    "UNSORTED_SEGMENT_MAX": "max",
    "UNSORTED_SEGMENT_MIN": "min",
    "UNSORTED_SEGMENT_PROD": "mul",
    "UNSORTED_SEGMENT_SUM": "add",
}


@imports("GATHER")
def gather(op: Operator) -> None:
    """Choose slices along an axis, by indices that share the first axes of the data where the options say so."""
    options = op.options("GatherOptions")
    axis, shared = options.integer("axis"), options.integer("batch_dims")
    if not shared:
        places = op.raw(1) if op.info(1).dtype in (DataType.INT32, DataType.INT64) else op.build.cast(op.raw(1), DataType.INT64)
        op.through(lambda value: op.build.node("Gather", value, places, axis=axis), 1)
        return
    rank, depth = op.rank(0), op.rank(1)
    axis, shared = axis % rank, shared % (depth + 1) if shared < 0 else shared
    if not shared <= axis < rank or shared > depth:
        op.refuse(f"axis {axis} and {shared} shared axes do not go with tensors of rank {rank} and {depth}")
    build = op.build
    indices = build.node("Unsqueeze", build.cast(op.raw(1), DataType.INT64), build.ints(-1))
    between, own = axis - shared, depth - shared
    order = [*range(shared), axis, *range(shared, axis), *range(axis + 1, rank)]
    back = [*range(shared), *range(shared + own, shared + own + between), *range(shared, shared + own)]
    back += range(shared + own + between, rank - 1 + own)

    def choose(value: Value) -> Value:
        chosen = build.node("GatherND", build.transpose(value, order), indices, batch_dims=shared)
        return build.transpose(chosen, back)

    op.through(choose, 1)


@imports("GATHER_ND")
def gather_nd(op: Operator) -> None:
    """Choose slices by lists of indices."""
    indices = op.build.cast(op.raw(1), DataType.INT64)
    op.through(lambda value: op.build.node("GatherND", value, indices), 1)


@imports("EMBEDDING_LOOKUP")
def embedding_lookup(op: Operator) -> None:
    """Choose rows of a table, whose integers may stand for numbers."""
    info, blocks = op.info(1), op.blocks(1)
    if blocks is not None:
        rows, scales = (op.build.node("Gather", part, op.raw(0), axis=0) for part in (_bytes(op, 1, blocks[0]), blocks[1]))
        value = op.build.node("DequantizeLinear", rows, scales, axis=1, block_size=blocks[2])
    elif info.quantization is not None and info.is_quantized and info.quantization.is_per_tensor:
        rows = op.build.node("Gather", _bytes(op, 1, op.raw(1)), op.raw(0), axis=0)
        dtype = DataType.INT8 if info.dtype in _NARROW else info.dtype
        value = scaled(op.build, rows, info.quantization, dtype)
    else:
        value = op.build.node("Gather", op.real(1), op.raw(0), axis=0)
    is_halved = op.output(0).dtype is DataType.FLOAT16 and info.dtype is not DataType.FLOAT16
    op.put(0, op.build.cast(value, DataType.FLOAT16) if is_halved else value)


def _bytes(op: Operator, index: int, value: Value) -> Value:
    """Return integers of an input as bytes where they have fewer bits, which ONNX has no operator to choose from."""
    return op.build.cast(value, DataType.INT8) if op.info(index).dtype in _NARROW else value


@imports("HASHTABLE_LOOKUP")
def hashtable_lookup(op: Operator) -> None:
    """Choose rows of a table by keys; a key that is not there gives zeros, and 0 in the second output."""
    build = op.build
    equal = build.node(
        "Equal", build.node("Unsqueeze", op.raw(0), build.ints(1)), build.node("Unsqueeze", op.raw(1), build.ints(0))
    )
    hits = build.cast(equal, DataType.INT32)
    found = build.node("ReduceMax", hits, build.ints(1), keepdims=0)
    rows = build.node("Gather", op.raw(2), build.node("ArgMax", hits, axis=1, keepdims=0), axis=0)
    shaped = build.reshape(build.cast(found, DataType.BOOL), (-1,) + (1,) * (op.rank(2) - 1))
    zero = build.constant(np.zeros((), op.info(2).dtype.numpy))
    op.put_raw(0, build.node("Where", shaped, rows, zero))
    if len(op.outputs) > 1:
        op.put_raw(1, build.cast(found, DataType.UINT8))


@imports("EMBEDDING_LOOKUP_SPARSE")
def embedding_lookup_sparse(op: Operator) -> None:
    """Combine rows of a table, with a weight each, for each cell of a sparse tensor of lists of rows."""
    combiner = op.options("EmbeddingLookupSparseOptions").choice("combiner", "SUM MEAN SQRTN")
    build = op.build
    axes = op.rank(4)
    weights = build.node("Unsqueeze", op.raw(3), build.ints(1))
    rows = build.node("Gather", build.reshape(op.raw(4), (op.info(4).shape[0], -1)), op.raw(0), axis=0)
    shape = op.shape(2)
    outer = build.node("Slice", shape, build.ints(0), build.ints(-1))
    places = build.node("Slice", build.cast(op.raw(1), DataType.INT64), build.ints(0), build.ints(-1), build.ints(1))
    width = int(np.prod(op.info(4).shape[1:]))
    zeros = build.node("Expand", build.constant(np.float32(0)), build.node("Concat", outer, build.ints(width), axis=0))
    total = build.node("ScatterND", zeros, places, build.node("Mul", rows, weights), reduction="add")
    if combiner != "SUM":
        ones = build.node("Expand", build.constant(np.float32(0)), build.node("Concat", outer, build.ints(1), axis=0))
        counted = build.node("Mul", weights, weights) if combiner == "SQRTN" else weights
        sums = build.node("ScatterND", ones, places, counted, reduction="add")
        sums = build.node("Sqrt", sums) if combiner == "SQRTN" else sums
        empty = build.node("Equal", sums, build.constant(np.float32(0)))
        total = build.node("Div", total, build.node("Where", empty, build.constant(np.float32(1)), sums))
    rest = build.ints(*op.info(4).shape[1:])
    op.put_raw(0, build.node("Reshape", total, build.node("Concat", outer, rest, axis=0)) if axes != 2 else total)


@imports("SCATTER_ND")
def scatter_nd(op: Operator) -> None:
    """Add updates to places of a tensor of zeros."""
    build = op.build
    zero = build.constant(np.zeros((), op.info(1).dtype.numpy))
    zeros = build.node("Expand", zero, op.shape(2))
    op.put_raw(0, build.node("ScatterND", zeros, build.cast(op.raw(0), DataType.INT64), op.raw(1), reduction="add"))


@imports("SPARSE_TO_DENSE")
def sparse_to_dense(op: Operator) -> None:
    """Put values at places of a tensor that has one number everywhere else."""
    build, rank = op.build, op.output(0).rank
    indices = build.reshape(build.cast(op.raw(0), DataType.INT64), (-1, rank if op.rank(0) == 2 else 1))
    count = build.node("Slice", build.node("Shape", indices), build.ints(0), build.ints(1))
    values = build.node("Expand", op.raw(2), count)
    dense = build.node("Expand", build.reshape(op.raw(3), ()), op.shape(1))
    op.put_raw(0, build.node("ScatterND", dense, indices, values))


@imports("ONE_HOT")
def one_hot(op: Operator) -> None:
    """Write one number at the places of indices along a new axis, and another elsewhere; an index out of range has no place."""
    build = op.build
    indices, depth = build.cast(op.raw(0), DataType.INT64), build.cast(op.raw(1), DataType.INT64)
    depth = build.reshape(depth, ())
    beyond = build.node("Where", build.node("Less", indices, build.constant(np.int64(0))), depth, indices)
    values = build.node("Concat", build.reshape(op.raw(3), (1,)), build.reshape(op.raw(2), (1,)), axis=0)
    op.put_raw(0, build.node("OneHot", beyond, depth, values, axis=op.options("OneHotOptions").integer("axis")))


@imports("SEGMENT_SUM")
def segment_sum(op: Operator) -> None:
    """Add up rows whose ids, which rise, are the same."""
    build = op.build
    ids = build.cast(op.raw(1), DataType.INT64)
    last = build.node("Gather", ids, build.ints(-1))
    op.put_raw(0, _segments(op, op.raw(0), ids, build.node("Add", last, build.ints(1)), "add", 0))


@imports(*_SEGMENTS)
def unsorted_segment(op: Operator) -> None:
    """Combine rows whose ids are the same; rows of ids below 0 count nowhere, and ids without rows get the neutral element."""
    build, places = op.build, op.rank(1)
    reduction = _SEGMENTS[op.code]
    dtype = op.info(0).dtype.numpy
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    neutral = {"add": 0, "mul": 1, "max": limits.min, "min": limits.max}[reduction]
    ids = build.reshape(build.cast(op.raw(1), DataType.INT64), (-1,))
    rows = op.raw(0)
    if places != 1:
        rest = build.node("Shape", rows, start=places)
        rows = build.node("Reshape", rows, build.node("Concat", build.ints(-1), rest, axis=0))
    count = build.reshape(build.cast(op.raw(2), DataType.INT64), (1,))
    ids = build.node("Where", build.node("Less", ids, build.ints(0)), count, ids)
    made = _segments(op, rows, ids, build.node("Add", count, build.ints(1)), reduction, neutral)
    op.put_raw(0, build.node("Slice", made, build.ints(0), count, build.ints(0)))


def _segments(op: Operator, rows: Value, ids: Value, count: Value, reduction: str, neutral: float) -> Value:
    build = op.build
    shape = build.node("Concat", count, build.node("Shape", rows, start=1), axis=0)
    start = build.node("Expand", build.constant(np.array(neutral, op.info(0).dtype.numpy)), shape)
    return build.node("ScatterND", start, build.node("Unsqueeze", ids, build.ints(1)), rows, reduction=reduction)


@imports("TOPK_V2")
def top_k(op: Operator) -> None:
    """Find the greatest elements along the last axis, and their places."""
    count = op.build.reshape(op.build.cast(op.raw(1), DataType.INT64), (1,))
    values, places = op.build.nodes("TopK", op.raw(0), count, outputs=2, axis=-1)
    op.put_raw(0, values)
    op.put_raw(1, op.build.cast(places, op.output(1).dtype))


@imports("UNIQUE")
def unique(op: Operator) -> None:
    """Find distinct elements in order of occurrence, and where each element lies among them."""
    values, _, places, _ = op.build.nodes("Unique", op.raw(0), outputs=4, sorted=0)
    op.put_raw(0, values)
    op.put_raw(1, op.build.cast(places, op.output(1).dtype))


@imports("WHERE")
def where(op: Operator) -> None:
    """Find the places of elements that are true, or not 0, as rows."""
    value = op.raw(0)
    if op.rank(0) == 0:
        value = op.build.reshape(value, (1,))
    found = op.build.transpose(op.build.node("NonZero", value), (1, 0))
    if op.rank(0) == 0:
        found = op.build.node("Slice", found, op.build.ints(0), op.build.ints(0), op.build.ints(1))
    op.put_raw(0, found)


@imports("REVERSE_SEQUENCE")
def reverse_sequence(op: Operator) -> None:
    """Reverse the first elements of each sequence, as many as it has."""
    options, build, rank = op.options("ReverseSequenceOptions"), op.build, op.rank(0)
    time, batch = options.integer("seq_dim"), options.integer("batch_dim")
    if time == batch or not (0 <= time < rank and 0 <= batch < rank):
        op.refuse(f"axes {time} and {batch} are no two of a tensor of rank {rank}")
    lengths = build.cast(op.raw(1), DataType.INT64)
    order = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
    value = build.node("ReverseSequence", build.transpose(op.raw(0), order), lengths, batch_axis=0, time_axis=1)
    op.put_raw(0, build.transpose(value, np.argsort(order).tolist()))


@imports("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(op: Operator) -> None:
    """Write a tensor into another, from a place on that is kept such that all of it is within."""
    build, whole, part = op.build, op.info(0), op.info(1)
    if whole.rank != part.rank:
        op.refuse(f"a tensor of rank {part.rank} does not lie within one of rank {whole.rank}")
    if -1 in (*whole.signature, *part.signature):
        op.put_raw(0, replaced(build, op.raw(0), op.raw(1), op.shape(2)))
        return
    cut = [axis for axis in range(whole.rank) if part.shape[axis] != whole.shape[axis]]
    count = cut[-1] + 1 if cut else 0
    if any(inner > outer for inner, outer in zip(part.shape, whole.shape, strict=True)):
        op.refuse(f"a tensor of shape {list(part.shape)} does not lie within {list(whole.shape)}")
    if count == 0:
        op.put_raw(0, build.node("Identity", op.raw(1)))
        return
    limits = [outer - inner for inner, outer in zip(part.shape[:count], whole.shape[:count], strict=True)]
    start = build.node("Slice", op.shape(2), build.ints(0), build.ints(count))
    start = build.node("Max", build.node("Min", start, build.ints(*limits)), build.ints(0))
    op.check_count(math.prod(part.shape[:count]) * count)
    grid = np.stack(np.meshgrid(*(np.arange(size) for size in part.shape[:count]), indexing="ij"), axis=-1).astype(np.int64)
    op.put_raw(0, build.node("ScatterND", op.raw(0), build.node("Add", build.constant(grid), start), op.raw(1)))


@imports("BUCKETIZE")
def bucketize(op: Operator) -> None:
    """Count the boundaries that are not above each element."""
    build = op.build
    bounds = build.constant(op.options("BucketizeOptions").numbers("boundaries").astype(np.float64))
    value = build.node("Unsqueeze", build.cast(op.raw(0), DataType.DOUBLE), build.ints(-1))
    below = build.cast(build.node("GreaterOrEqual", value, bounds), DataType.INT32)
    op.put_raw(0, build.node("ReduceSum", below, build.ints(-1), keepdims=0))


@imports("MATRIX_DIAG")
def matrix_diag(op: Operator) -> None:
    """Make matrices with diagonals (…, N)."""
    size = op.output(0).shape[-1]
    op.check_count(size * size)
    mask, zero = op.build.constant(np.eye(size, dtype=bool)), op.build.constant(np.zeros((), op.info(0).dtype.numpy))
    op.put_raw(0, op.build.node("Where", mask, op.build.node("Unsqueeze", op.raw(0), op.build.ints(-1)), zero))


@imports("MATRIX_SET_DIAG")
def matrix_set_diag(op: Operator) -> None:
    """Write diagonals (…, min(M, N)) into matrices (…, M, N)."""
    build, rank = op.build, op.rank(0)
    rows, columns = op.info(0).shape[-2:]
    op.check_count(rows * columns)
    diagonal = op.raw(1)
    if rows < columns:
        pads = build.ints(*([0] * (rank - 1)), *([0] * (rank - 2)), columns - rows)
        diagonal = build.node("Pad", diagonal, pads)
    mask = build.constant(np.eye(rows, columns, dtype=bool))
    op.put_raw(0, build.node("Where", mask, build.node("Unsqueeze", diagonal, build.ints(-2)), op.raw(0)))


@imports("DENSIFY")
def densify(op: Operator) -> None:
    """Make a sparse constant dense, which it is since it was read."""
    op.put_raw(0, op.raw(0))


@imports("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
def random(op: Operator) -> None:
    """Draw numbers in [0, 1), or of the normal distribution, for a shape."""
    options = op.options("RandomOptions")
    name = "RandomUniformLike" if op.code == "RANDOM_UNIFORM" else "RandomNormalLike"
    seeds = options.integer("seed"), options.integer("seed2")
    seed = float((seeds[0] * 31 + seeds[1]) % (1 << 20)) if any(seeds) else None
    zeros = op.build.node("Expand", op.build.constant(np.float32(0)), op.shape(0))
    op.put_raw(0, op.build.node(name, zeros, dtype=int(op.output(0).dtype), seed=seed))


@imports("MULTINOMIAL")
def multinomial(op: Operator) -> None:
    """Draw classes by the logarithms of their probabilities."""
    options = op.options("RandomOptions")
    seeds = options.integer("seed"), options.integer("seed2")
    seed = float((seeds[0] * 31 + seeds[1]) % (1 << 20)) if any(seeds) else None
    value = op.build.node("Multinomial", op.raw(0), dtype=int(DataType.INT64), sample_size=op.number(1), seed=seed)
    op.put_raw(0, op.build.cast(value, op.output(0).dtype))
