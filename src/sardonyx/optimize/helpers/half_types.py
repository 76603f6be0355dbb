"""Computing in float what half types store: operators that stand for several others round once, at their end."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.rule import Builder

__all__ = ["in_float", "rounded_to"]


def in_float(op: Builder, value: Value) -> Value:
    """Return `value`, of half types as float."""
    return value if value.dtype is DataType.FLOAT else op.Cast(value, to=DataType.FLOAT.value)


def rounded_to(op: Builder, value: Value, like: Value) -> Value:
    """Return `value`, which is float, in the type of `like`."""
    return value if like.dtype in (None, DataType.FLOAT) else op.Cast(value, to=like.dtype.value)
