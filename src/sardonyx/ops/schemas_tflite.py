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
Rfft2d(x:T lengths:I) -> y:U |
"""
