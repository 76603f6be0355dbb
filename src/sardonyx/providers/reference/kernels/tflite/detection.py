"""Operators of sardonyx.tflite that choose boxes by scores and overlaps."""

from __future__ import annotations

import heapq

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.schemas_tflite import DOMAIN
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["detection_post_process", "non_max_suppression_padded"]


@kernel("DetectionPostProcess", domain=DOMAIN)
def detection_post_process(
    call: Call,
    boxes: Array,
    scores: Array,
    anchors: Array,
    *,
    max_detections: int,
    num_classes: int,
    max_classes_per_detection: int = 1,
    detections_per_class: int = 100,
    use_regular_nms: int = 0,
    nms_score_threshold: float,
    nms_iou_threshold: float,
    y_scale: float,
    x_scale: float,
    h_scale: float,
    w_scale: float,
) -> tuple[Array, Array, Array, Array]:
    """Decode boxes (1, N, 4 or more) by anchors (N, 4), and keep the best of those that overlap.

    `scores` are (1, N, classes), perhaps with a background before them. Boxes and anchors are centers and sizes: y, x, height,
    width. Outputs are corners (1, M, 4), classes (1, M), scores (1, M) and their number (1,), zeros behind that.
    Source: TensorFlow Lite's custom operator TFLite_Detection_PostProcess.
    """
    count = anchors.shape[:1]
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape[:2] != (1, *count) or scores.shape[:2] != boxes.shape[:2]:
        raise InvalidArgument(f"boxes {boxes.shape}, scores {scores.shape} and anchors {anchors.shape} do not go together")
    offset = scores.shape[2] - num_classes
    if boxes.shape[2] < 4 or anchors.shape[1:] != (4,) or num_classes < 1 or offset not in (0, 1):
        raise InvalidArgument(f"{num_classes} classes, scores {scores.shape} and boxes {boxes.shape} do not go together")
    rows = max_detections * max(max_classes_per_detection, 1)
    check_output_size((rows, 4), 4)
    corners = _decoded(boxes[0, :, :4], anchors, (y_scale, x_scale, h_scale, w_scale))
    classes = scores[0, :, offset:]
    if use_regular_nms:
        kept = _by_class(corners, classes, max_detections, detections_per_class, nms_score_threshold, nms_iou_threshold)
    else:
        best = classes.max(axis=1, initial=-np.inf)
        chosen = _chosen(corners, best, max_detections, nms_score_threshold, nms_iou_threshold)
        order = np.argsort(-classes[chosen], axis=1, kind="stable")[:, :max_classes_per_detection]
        kept = [(box, int(name)) for box, names in zip(chosen, order, strict=True) for name in names]
    found, names, values = np.zeros((1, rows, 4), np.float32), np.zeros((1, rows), np.float32), np.zeros((1, rows), np.float32)
    for place, (box, name) in enumerate(kept):
        found[0, place], names[0, place], values[0, place] = corners[box], name, classes[box, name]
    return found, names, values, np.array([len(kept)], np.float32)


def _decoded(boxes: Array, anchors: Array, scales: tuple[float, float, float, float]) -> Array:
    wide, base = boxes.astype(np.float64) / np.array(scales, np.float32), anchors.astype(np.float64)
    centers = (wide[:, :2] * base[:, 2:] + base[:, :2]).astype(np.float32)
    with np.errstate(over="ignore"):
        halves = (0.5 * np.exp(wide[:, 2:]) * base[:, 2:]).astype(np.float32)
    return np.concatenate([centers - halves, centers + halves], axis=1)


def _overlaps(corners: Array, box: int) -> Array:
    """Return how much each box overlaps one: the common area by that of both together."""
    low, high = np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])
    areas = np.prod(high - low, axis=1)
    sides = np.maximum(np.minimum(high, high[box]) - np.maximum(low, low[box]), 0)
    common = np.prod(sides, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = common / (areas + areas[box] - common)
    return np.where((areas > 0) & (areas[box] > 0), ratios, 0)


def _chosen(corners: Array, scores: Array, most: int, least_score: float, most_overlap: float) -> list[int]:
    """Return boxes from the best score on, without those that overlap a better one too much."""
    candidates = np.flatnonzero(scores >= np.float32(least_score))
    candidates = candidates[np.argsort(-scores[candidates], kind="stable")]
    chosen: list[int] = []
    while len(candidates) and len(chosen) < most:
        box = int(candidates[0])
        chosen.append(box)
        rest = candidates[1:]
        candidates = rest[~(_overlaps(corners, box)[rest] > np.float32(most_overlap))]
    return chosen


def _by_class(
    corners: Array, classes: Array, most: int, most_per_class: int, least_score: float, most_overlap: float
) -> list[tuple[int, int]]:
    """Return the best boxes of all classes, each with its class, from the best score on."""
    kept: list[tuple[int, int]] = []
    for name in range(classes.shape[1]):
        chosen = _chosen(corners, classes[:, name], min(most_per_class, most), least_score, most_overlap)
        kept += [(box, name) for box in chosen]
        kept.sort(key=lambda pair: -float(classes[pair]))
        del kept[most:]
    return kept


@kernel("NonMaxSuppressionPadded", domain=DOMAIN)
def non_max_suppression_padded(
    call: Call,
    boxes: Array,
    scores: Array,
    most: Array,
    iou_threshold: Array,
    score_threshold: Array,
    sigma: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Choose boxes (N, 4) from the best score on; one that overlaps a better one goes, or has its score lowered by `sigma`.

    Outputs are places (most,), scores (most,) and how many of them count, with zeros behind.
    Source: TensorFlow Lite NON_MAX_SUPPRESSION_V4 and V5.
    """
    given = {"most": most, "iou_threshold": iou_threshold, "score_threshold": score_threshold, "sigma": sigma}
    for name, value in given.items():
        if value is not None and (value.size != 1 or value.dtype.kind not in "iuf" or not np.isfinite(value).all()):
            raise InvalidArgument(f"{name} is {value.dtype}{list(value.shape)}; expected one finite number")
    count, limit, least = int(most.reshape(-1)[0]), float(iou_threshold.reshape(-1)[0]), float(score_threshold.reshape(-1)[0])
    width = 0.0 if sigma is None else float(sigma.reshape(-1)[0])
    if scores.ndim != 1 or boxes.shape != (len(scores), 4) or count < 0 or limit < 0 or width < 0:
        raise InvalidArgument(
            f"boxes {boxes.shape}, scores {scores.shape}, {count} places and limits {limit} and {width} do not go together"
        )
    check_output_size((count,), 4)
    scale = -0.5 / width if width > 0 else 0.0
    queue = [(-float(score), place, 0) for place, score in enumerate(scores) if score > least]
    heapq.heapify(queue)
    chosen: list[int] = []
    found, values = np.zeros(count, np.int32), np.zeros(count, np.float32)
    while queue and len(chosen) < count:
        negative, place, begin = heapq.heappop(queue)
        score = np.float32(-negative)
        overlaps = _overlaps(boxes, place)[chosen[begin:]][::-1]
        if (overlaps >= np.float32(limit)).any():
            continue
        lowered = score * np.float32(np.prod(np.exp(scale * overlaps * overlaps))) if width > 0 else score
        if lowered == score:
            found[len(chosen)], values[len(chosen)] = place, score
            chosen.append(place)
        elif lowered > least:
            heapq.heappush(queue, (-float(lowered), place, len(chosen)))
    return found, values, np.array(len(chosen), np.int32)
