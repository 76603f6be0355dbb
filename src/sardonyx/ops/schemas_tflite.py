"""Signatures of the operators of sardonyx.tflite: what TensorFlow Lite computes and no operator of ONNX does.

The lines are written as in `schemas_contrib`. Numbers that stand for element types are those of TensorProto.DataType.
"""

from __future__ import annotations

__all__ = ["DOMAIN", "SIGNATURES"]

DOMAIN = "sardonyx.tflite"

SIGNATURES = """
Atan2(y:T x:T) -> angle:T |
Bitcast(x:T) -> y:U | to:INT!
ComplexAbs(x:T) -> y:U |
ComplexCast(x:T) -> y:U | to:INT!
ComplexMul(a:T b:T) -> c:T |
ComplexAdd(a:T b:T) -> c:T |
ComplexSub(a:T b:T) -> c:T |
ComplexImag(x:T) -> y:U |
ComplexReal(x:T) -> y:U |
DetectionPostProcess(boxes:T scores:T anchors:T) -> found:T classes:T best:T count:T | max_detections:INT!
  max_classes_per_detection:INT=1 detections_per_class:INT=100 num_classes:INT! use_regular_nms:INT=0
  nms_score_threshold:FLOAT! nms_iou_threshold:FLOAT! y_scale:FLOAT! x_scale:FLOAT! h_scale:FLOAT! w_scale:FLOAT!
LshProjection(seeds:F x:T weights:F?) -> bits:I | is_sparse:INT!
NonMaxSuppressionPadded(boxes:T scores:T most:I iou_threshold:T score_threshold:T sigma:T?) -> indices:I best:T count:I |
Rfft2d(x:T lengths:I) -> y:U |
RngBitGenerator(state:S) -> next:S bits:T | algorithm:STRING! shape:INTS! to:INT!
SkipGram(x:tensor(string)) -> y:tensor(string) | ngram_size:INT! max_skip_size:INT! include_all_ngrams:INT=0
"""
