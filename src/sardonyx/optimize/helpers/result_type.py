"""Whether what a pattern computes has the type of the value that it is computed from."""

from __future__ import annotations

from sardonyx.ir import Value

__all__ = ["changed_type_reason"]


def changed_type_reason(value: Value, result: Value) -> str | None:
    """Return why `result` is not known to have the shape and element type of `value`, as an element-wise operator's has."""
    if value.shape is None or value.shape != result.shape or value.dtype is not result.dtype:
        return f"the result is {result.dtype} {result.shape}, the value {value.dtype} {value.shape}"
    return None
