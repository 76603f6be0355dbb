"""Windows that are sums of cosines; ONNX BlackmanWindow, HammingWindow and HannWindow."""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.narrow import rounded_to_odd, to_narrow
from sardonyx.codegen.emit.turns import cosine_and_sine
from sardonyx.codegen.emit.types import F16, F32, F64, I32, I64, Type
from sardonyx.codegen.emit.values import Register

__all__ = ["WINDOW_BLOCK", "from_double", "write_window"]

WINDOW_BLOCK = 1 << 12
"""Elements of one task."""


def write_window(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: element k of its buffer is a + b cos(t) + c cos(2 t), t = 2 pi k / period.

    Parameters: elements, the period, at least as many as k, then a, b and c as floats. Computed in float64 and rounded once, of
    integers truncated.
    """
    with module.kernel(symbol) as b:
        count, period, result = b.param(0), b.param(1), b.buffer(0, kind)
        constant, once, twice = (b.param_float(place, F64) for place in (2, 3, 4))
        with b.loop(b.begin, b.end) as task:
            for k, span in b.vectors(task * WINDOW_BLOCK, b.min((task + 1) * WINDOW_BLOCK, count), F64):
                cosine, _ = cosine_and_sine(b, b.iota(I64, span.lanes) + k, period)
                double = cosine * cosine * 2.0 - 1.0
                result.store(from_double(b, constant + cosine * once + double * twice, kind), k, span)


def from_double(b: Function, x: Register, kind: Type) -> Register:
    """Return a float64 as any type of numbers: rounded once, but to bfloat16 twice; truncated to integers."""
    if kind.is_narrow:
        return to_narrow(b, rounded_to_odd(b, x) if kind == F16 else x.to(F32), kind)
    return x.to(I32).to(kind) if kind.is_integer and kind.bits < I32.bits else x.to(kind)
