"""Operators that rank: the top k, the distinct, and the boxes that survive their neighbours."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np

from sardonyx.cancellation import check_cancelled, checked, checked_blocks
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import as_float, as_int, normalize_axis
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_PARTITION_FROM = 8
"""TopK selects before it sorts where the axis is longer than this many times k."""

_BLOCK = 128
"""How many candidate boxes NonMaxSuppression compares with each other at once."""


def _ascending_keys(data: Array, *, largest: bool) -> Array:
    """Return keys whose ascending order is the order wanted: the data itself, negated (complemented) for the largest first."""
    if data.dtype.kind == "b":
        data = data.astype(np.uint8)
    elif data.dtype.kind not in "iuf" or data.dtype == np.float16:
        data = data.astype(np.float32)
    if not largest:
        return data
    return np.negative(data) if data.dtype.kind == "f" else np.invert(data)


def _first_k(keys: Array, k: int) -> Array:
    """Return positions of the k smallest along the last axis, in order; of equals the lower position comes first, NaN last."""
    length = keys.shape[-1]
    if length <= _PARTITION_FROM * k:
        return np.argsort(keys, axis=-1, kind="stable")[..., :k]
    bound = np.partition(keys, k - 1, axis=-1)[..., k - 1 : k]
    below = keys < bound
    if keys.dtype.kind == "f" and np.isnan(bound).any():
        return np.argsort(keys, axis=-1, kind="stable")[..., :k]
    equal = keys == bound
    missing = k - np.count_nonzero(below, axis=-1, keepdims=True)
    chosen = below | (equal & (np.cumsum(equal, axis=-1) <= missing))
    positions = np.nonzero(chosen)[-1].reshape((*keys.shape[:-1], k))
    order = np.argsort(np.take_along_axis(keys, positions, axis=-1), axis=-1, kind="stable")
    return np.take_along_axis(positions, order, axis=-1)


def _top_k(data: Array, k: int, axis: int, *, largest: bool) -> tuple[Array, Array]:
    if data.ndim == 0:
        raise InvalidArgument("the data is a scalar; expected a tensor of rank 1 or higher")
    at = normalize_axis(axis, data.ndim)
    if not 0 <= k <= data.shape[at]:
        raise InvalidArgument(f"k={k} for axis {at} of data of shape {data.shape}; expected 0 to {data.shape[at]}")
    last = np.moveaxis(data, at, -1)
    if k == 0:
        positions = np.zeros((*last.shape[:-1], 0), np.int64)
    else:
        positions = _first_k(_ascending_keys(last, largest=largest), k)
    values = np.take_along_axis(last, positions, axis=-1)
    return np.moveaxis(values, -1, at), np.moveaxis(positions, -1, at).astype(np.int64, copy=False)


@kernel("TopK")
def top_k_1(_node: Call, data: Array, *, k: int, axis: int = -1) -> tuple[Array, Array]:
    """List the k largest along `axis`, descending, and their positions; equals by position. ONNX TopK-1."""
    return _top_k(data, k, axis, largest=True)


@kernel("TopK", since=10)
def top_k(_node: Call, data: Array, k: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Array, Array]:
    """List the k largest (smallest) along `axis`, in order, and their positions; equals by position. ONNX TopK-10, -11.

    NaN ranks last. `sorted=0` allows any order; this one sorts all the same.
    """
    return _top_k(data, as_int(k, "K"), axis, largest=bool(largest))


def _distinct(rows: Array) -> tuple[Array, Array]:
    """Return for rows (entries, parts): the first position of each distinct row, in ascending order, and each entry's rank."""
    if rows.shape[1] == 1:
        order = np.argsort(rows[:, 0])
    else:
        order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    ordered = rows[order]
    starts = np.ones(len(rows), bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    ranks = np.empty(len(rows), np.int64)
    ranks[order] = np.cumsum(starts) - 1
    firsts = np.minimum.reduceat(order, np.flatnonzero(starts)) if len(rows) else order
    return firsts, ranks


def _text_ranks(texts: Sequence[str]) -> Array:
    """Return the place of each text among the distinct ones in order."""
    distinct = {text for block in checked_blocks(texts) for text in block}
    places = {text: place for place, text in enumerate(checked(_ordered(list(distinct))))}
    return np.fromiter((places[text] for block in checked_blocks(texts) for text in block), np.int64, len(texts))


_SORTED_AT_ONCE = 1 << 15
"""How many texts are sorted between two checks of whether the run is to end."""


def _ordered(texts: Sequence[str]) -> Iterable[str]:
    parts = []
    for start in range(0, len(texts), _SORTED_AT_ONCE):
        check_cancelled()
        parts.append(sorted(texts[start : start + _SORTED_AT_ONCE]))
    return parts[0] if len(parts) == 1 else heapq.merge(*parts)


@kernel("Unique", since=11)
def unique(_node: Call, data: Array, *, axis: int | None = None, sorted: int = 1) -> tuple[Array, Array, Array, Array]:
    """List distinct elements (or slices along `axis`), their first positions, each entry's place among them, and counts.

    Ascending, or in order of first occurrence for sorted=0. NaN differs from itself. ONNX Unique-11.
    """
    at = 0 if axis is None else normalize_axis(axis, data.ndim)
    source = data.reshape(-1) if axis is None else data
    rows = np.moveaxis(source, at, 0).reshape(source.shape[at], -1) if source.size else np.zeros((source.shape[at], 0))
    if rows.dtype.kind not in "biufcO":
        rows = rows.astype(np.float32)
    elif rows.dtype.kind == "O":
        rows = _text_ranks(rows.reshape(-1).tolist()).reshape(rows.shape)
    firsts, ranks = _distinct(rows)
    if not sorted:
        order = np.argsort(firsts)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        firsts, ranks = firsts[order], places[ranks]
    return (
        np.take(source, firsts, axis=at),
        firsts.astype(np.int64, copy=False),
        ranks.astype(np.int64, copy=False),
        np.bincount(ranks, minlength=len(firsts)).astype(np.int64, copy=False),
    )


def _corners(boxes: Array, *, center_point_box: bool) -> Array:
    """Return boxes (N, M, 4) as (N, 4, M): the lower corner, the upper corner, in either order of axes."""
    by_part = np.moveaxis(boxes, -1, 1)
    if center_point_box:
        centre, half = by_part[:, :2], by_part[:, 2:] / np.float32(2)
        return np.concatenate([centre - half, centre + half], axis=1)
    return np.concatenate([np.minimum(by_part[:, :2], by_part[:, 2:]), np.maximum(by_part[:, :2], by_part[:, 2:])], axis=1)


def _overlaps(better: Array, worse: Array, threshold: np.float32) -> Array:
    """Return for corners (4, A) and (4, B): whether each pair shares more than `threshold` of its union; a flat box never does."""
    sides = [np.minimum.outer(better[k + 2], worse[k + 2]) - np.maximum.outer(better[k], worse[k]) for k in range(2)]
    first, second = ((each[2] - each[0]) * (each[3] - each[1]) for each in (better, worse))
    shared = sides[0] * sides[1]
    union = first[:, None] + second - shared
    counts = (sides[0] > 0) & (sides[1] > 0) & (shared > 0) & (union > 0) & (first > 0)[:, None] & (second > 0)
    ratio: Array = np.divide(shared, union, out=np.zeros_like(shared), where=counts)
    return ratio > threshold


def _survivors(corners: Array, order: Array, limit: int, threshold: np.float32) -> Array:
    """Suppress greedily over one class: `order` lists the candidates, best first; those kept remove what they overlap.

    Candidates are met in blocks: the boxes kept so far thin out a block at once, then it thins itself from its pair matrix.
    """
    kept = order[:0]
    for start in range(0, len(order), _BLOCK):
        check_cancelled()
        block = order[start : start + _BLOCK]
        block = block[~_overlaps(corners[:, kept], corners[:, block], threshold).any(axis=0)]
        pairs = np.triu(_overlaps(corners[:, block], corners[:, block], threshold), 1)
        alive = np.ones(len(block), bool)
        for index in np.flatnonzero(pairs.any(axis=1)):
            if alive[index]:
                alive &= ~pairs[index]
        kept = np.concatenate([kept, block[alive]])
        if len(kept) >= limit:
            break
    return kept[:limit]


@kernel("NonMaxSuppression", since=10)
def non_max_suppression(
    _node: Call,
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    *,
    center_point_box: int = 0,
) -> Array:
    """Select per batch and class the best boxes none of which overlaps a better one by more than the IoU threshold.

    Boxes (N, M, 4), scores (N, C, M); int64 (count, 3) of batch, class, box, best first, equals by position. Without a limit
    nothing is selected. ONNX NonMaxSuppression-10, -11.
    """
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape[2] != 4 or (boxes.shape[:2] != (scores.shape[0], scores.shape[2])):
        raise InvalidArgument(f"boxes {boxes.shape} and scores {scores.shape}; expected (N, M, 4) and (N, C, M)")
    limit = 0 if max_output_boxes_per_class is None else as_int(max_output_boxes_per_class, "max_output_boxes_per_class")
    threshold = np.float32(0 if iou_threshold is None else as_float(iou_threshold, "iou_threshold"))
    if not 0 <= threshold <= 1:
        raise InvalidArgument(f"iou_threshold={threshold}; expected a value in [0, 1]")
    least = None if score_threshold is None else np.float32(as_float(score_threshold, "score_threshold"))
    found = [np.zeros((0, 3), np.int64)]
    with np.errstate(all="ignore"):
        corners = _corners(boxes, center_point_box=bool(center_point_box))
        for n, c in np.ndindex(scores.shape[:2]) if limit > 0 else ():
            check_cancelled()
            row = scores[n, c]
            candidates = np.arange(len(row)) if least is None else np.flatnonzero(row > least)
            order = candidates[np.argsort(-row[candidates], kind="stable")]
            boxes_kept = _survivors(corners[n], order, limit, threshold)
            found.append(np.stack([np.full_like(boxes_kept, n), np.full_like(boxes_kept, c), boxes_kept], axis=1))
    return np.concatenate(found)
