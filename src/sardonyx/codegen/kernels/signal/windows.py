"""Windows that are sums of cosines; ONNX BlackmanWindow, HammingWindow and HannWindow."""

from __future__ import annotations

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.turns import cosine_and_sine
from sardonyx.codegen.emit.types import F64, I64, Type

__all__ = ["WINDOW_BLOCK", "write_window"]

WINDOW_BLOCK = 1 << 12
"""Elements of one task."""


def write_window(module: Module, symbol: str, kind: Type) -> None:
    """Write the kernel `symbol`: element k of its buffer is a + b cos(t) + c cos(2 t), t = 2 pi k / period.

    Parameters: elements, the period, at least as many as k, then a, b and c as floats. Computed in float64 and rounded once.
    """
    with module.kernel(symbol) as b:
        count, period, result = b.param(0), b.param(1), b.buffer(0, kind)
        constant, once, twice = (b.param_float(place, F64) for place in (2, 3, 4))
        with b.loop(b.begin, b.end) as task:
            for k, span in b.vectors(task * WINDOW_BLOCK, b.min((task + 1) * WINDOW_BLOCK, count), F64):
                cosine, _ = cosine_and_sine(b, b.iota(I64, span.lanes) + k, period)
                double = cosine * cosine * 2.0 - 1.0
                result.store((constant + cosine * once + double * twice).to(kind), k, span)
