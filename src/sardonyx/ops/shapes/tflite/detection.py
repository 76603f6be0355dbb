"""Operators of sardonyx.tflite that choose boxes."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import Dim, anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.schemas_tflite import DOMAIN

__all__: list[str] = []


@shape_function("DetectionPostProcess", domain=DOMAIN)
def detection_post_process(
    call: ShapeCall, boxes: Fact, scores: Fact, anchors: Fact, *, max_detections: int, max_classes_per_detection: int = 1
) -> tuple[Fact, Fact, Fact, Fact]:
    """Infer boxes, classes and scores of as many detections as there may be, and their number."""
    count = max_detections * max_classes_per_detection
    single = tensor(DataType.FLOAT, (1, count))
    return tensor(DataType.FLOAT, (1, count, 4)), single, single, tensor(DataType.FLOAT, (1,))


@shape_function("NonMaxSuppressionPadded", domain=DOMAIN)
def non_max_suppression_padded(
    call: ShapeCall, boxes: Fact, scores: Fact, most: Fact, iou_threshold: Fact, score_threshold: Fact, sigma: Fact | None = None
) -> tuple[Fact, Fact, Fact]:
    """Infer as many places and scores as are asked for, and how many of them count."""
    known = None if most.value is None else most.value.reshape(-1).tolist()[0]
    count: Dim = known if isinstance(known, int) else anonymous()
    return tensor(DataType.INT32, (count,)), tensor(DataType.FLOAT, (count,)), tensor(DataType.INT32, ())
