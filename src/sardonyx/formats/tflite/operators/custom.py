"""Custom operators: those that are built in, and those of users, which have the domain `tflite`.

The options of a custom operator are a map of names to values, which become attributes of its node; what is no such map is the
attribute `custom_options`, a tensor of bytes. Outputs have the types that the file gives them, and the
shapes where nothing is open.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.formats.flat.flexible import FlexValue
from sardonyx.formats.tflite.operator import Operator, imports
from sardonyx.formats.tflite.operators.custom_options import custom_options, real_option, whole_option
from sardonyx.ir import Attribute, AttributeKind, Node, Tensor, TensorType, Value

__all__ = ["CUSTOM_DOMAIN", "custom"]

CUSTOM_DOMAIN = "tflite"
"""The domain of custom operators."""


@imports("CUSTOM")
def custom(op: Operator) -> None:
    """Apply an operator of a user."""
    attributes = {name: found for name, value in custom_options(op).items() if (found := _attribute(value)) is not None}
    outputs = [Value(op.build.name(info.name or f"{op.code}_{index}")) for index, info in enumerate(op.outputs)]
    for value, info in zip(outputs, op.outputs, strict=True):
        value.type = TensorType(info.dtype, None if info.is_dynamic else info.shape)
    inputs = [op.raw(index) if op.has(index) else None for index in range(len(op.inputs))]
    name = outputs[0].name if outputs else op.code
    op.build.graph.append(Node(op.code, inputs, outputs, attributes, domain=CUSTOM_DOMAIN, version=1, name=name))
    for index, value in enumerate(outputs):
        op.put_raw(index, value)


@imports("TFLite_Detection_PostProcess")
def detection_postprocess(op: Operator) -> None:
    """Decode boxes by anchors, and keep the best of those that overlap."""
    given = custom_options(op)
    names = ("max_detections", "max_classes_per_detection", "detections_per_class", "num_classes", "use_regular_nms")
    numbers = {name: whole_option(op, given, name, 100 if name == "detections_per_class" else 0) for name in names}
    reals = ("nms_score_threshold", "nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale")
    attributes: dict[str, Any] = {**numbers, **{name: real_option(op, given, name) for name in reals}}
    inputs = [op.real(index) for index in range(3)]
    found = op.build.nodes("DetectionPostProcess", *inputs, outputs=4, domain="sardonyx.tflite", **attributes)
    for index, value in enumerate(found):
        op.put_raw(index, value)


@imports("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def non_max_suppression(op: Operator) -> None:
    """Choose boxes by their scores, without those that overlap a better one."""
    is_soft = op.code.endswith("V5")
    inputs = [op.raw(index) for index in range(6 if is_soft else 5)]
    found = op.build.nodes("NonMaxSuppressionPadded", *inputs, outputs=3, domain="sardonyx.tflite")
    indices, scores, count = found
    for index, value in enumerate((indices, scores, count) if is_soft else (indices, count)):
        op.put_raw(index, value)


def _attribute(value: FlexValue) -> Attribute | None:
    if isinstance(value, (bool, int)):
        return Attribute(AttributeKind.INT, int(value)) if -(1 << 63) <= value < 1 << 63 else None
    if isinstance(value, float):
        return Attribute(AttributeKind.FLOAT, value)
    if isinstance(value, str):
        return Attribute(AttributeKind.STRING, value)
    if isinstance(value, bytes):
        return Attribute(AttributeKind.TENSOR, Tensor.from_array(np.frombuffer(value, np.uint8)))
    if isinstance(value, list) and value and all(isinstance(item, (bool, int)) for item in value):
        return Attribute(AttributeKind.INTS, tuple(int(item) for item in value if isinstance(item, (bool, int))))
    if isinstance(value, list) and value and all(isinstance(item, (int, float)) for item in value):
        return Attribute(AttributeKind.FLOATS, tuple(float(item) for item in value if isinstance(item, (int, float))))
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return Attribute(AttributeKind.STRINGS, tuple(str(item) for item in value))
    return None
