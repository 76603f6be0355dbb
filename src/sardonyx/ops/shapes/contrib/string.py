"""Operators of com.microsoft on strings."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor

__all__: list[str] = []


@shape_function("Tokenizer", domain="com.microsoft")
def tokenizer(call: ShapeCall, x: Fact) -> Fact:
    """Infer (N, C) -> (N, C, most tokens); (C) -> (C, most tokens)."""
    return tensor(DataType.STRING, None if x.shape is None else (*x.shape, anonymous()))
