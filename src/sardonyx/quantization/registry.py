"""Which operators can be quantized, with the names of `onnxruntime.quantization.registry`, of which packages read the keys."""

from __future__ import annotations

from sardonyx.quantization.dynamic import OPERATORS
from sardonyx.quantization.plan import MOVES, OTHERS, PRODUCTS, READERS
from sardonyx.quantization.quantizers import ONNXQuantizer, QDQQuantizer

__all__ = ["IntegerOpsRegistry", "QDQRegistry", "QLinearOpsRegistry"]

_STATIC = (*PRODUCTS, *sorted(MOVES | OTHERS), *READERS)

IntegerOpsRegistry = dict.fromkeys(OPERATORS, ONNXQuantizer)
"""Operator that dynamic quantization takes -> the class that quantizes it."""
QLinearOpsRegistry = dict.fromkeys(_STATIC, ONNXQuantizer)
"""Operator that static quantization takes, with quantized operators -> the class."""
QDQRegistry = dict.fromkeys(_STATIC, QDQQuantizer)
"""Operator that static quantization takes, between Q and DQ -> the class."""
