"""Operators of com.microsoft on strings."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor

__all__: list[str] = []


@shape_function("Tokenizer", domain="com.microsoft")
def tokenizer(call: ShapeCall, x: Fact) -> Fact:
    """Infer (N, C) -> (N, C, most tokens); (C) -> (C, most tokens), but (0) -> (0)."""
    if x.shape is None or (len(x.shape) == 1 and not (isinstance(x.shape[0], int) and x.shape[0])):
        return tensor(DataType.STRING)
    return tensor(DataType.STRING, (*x.shape, anonymous()))
