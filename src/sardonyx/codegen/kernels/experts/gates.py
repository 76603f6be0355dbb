"""What stands between the two products of an expert: a bias, an activation, and perhaps a factor that gates it.

    plain     y = f(h + c)                                 h (R, I)
    gated     y = f(g + c) (l + d)                         h = [g | l] (R, 2 I), the biases [c | d]
    SwiGLU    y = g sigmoid(alpha g) (l + beta)            with g at most `limit`, l in [-limit, limit], after the biases

Source: com.microsoft MoE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, I32, I64
from sardonyx.codegen.emit.values import Register, Span

__all__ = ["ACTIVATIONS", "SWIGLU", "write_gates"]

SWIGLU = "swiglu"
ACTIVATIONS: Mapping[str, Callable[[Function, Register], Register]] = {
    "gelu": mathlib.gelu_tanh,
    "identity": lambda b, x: x,
    "relu": lambda b, x: b.select(x < 0.0, 0.0, x),
    "silu": lambda b, x: x * mathlib.sigmoid(b, x),
}
"""The activations besides SwiGLU, by name."""

_HIDDEN, _OWNERS, _Y, _BIASES = range(4)


def write_gates(module: Module, symbol: str, activation: str, *, is_gated: bool, has_bias: bool) -> None:
    """Write the kernel `symbol`: buffers h (R, I) or (R, 2 I), owners (R, int32), y (R, I) and biases (E, columns of h), if any.

    Parameters: I and, for SwiGLU, the numbers alpha, beta and limit. A task is one row.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        activation: one of ACTIVATIONS, or SWIGLU, which is gated.
        is_gated: whether rows of h have two halves.
        has_bias: whether there are biases.
    """
    with module.kernel(symbol) as b:
        inner = b.param(0)
        across = inner * 2 if is_gated else inner
        with b.loop(b.begin, b.end) as row:
            owner = b.buffer(_OWNERS, I32).load(row).to(I64)

            def half(place: Register, span: Span, row: Register = row, owner: Register = owner) -> Register:
                found = b.buffer(_HIDDEN, F32).load(row * across + place, span)
                return found + b.buffer(_BIASES, F32).load(owner * across + place, span) if has_bias else found

            for i, span in b.vectors(0, inner, F32):
                gate, linear = half(i, span), half(inner + i, span) if is_gated else None
                b.buffer(_Y, F32).store(_gated(b, activation, gate, linear), row * inner + i, span)


def _gated(b: Kernel, activation: str, gate: Register, linear: Register | None) -> Register:
    if activation == SWIGLU and linear is not None:
        alpha, beta, limit = (b.param_float(place) for place in (1, 2, 3))
        gate = b.select(gate > limit, limit, gate)
        linear = b.select(linear > limit, limit, b.select(linear < -limit, -limit, linear))
        return gate * mathlib.sigmoid(b, gate * alpha) * (linear + beta)
    made = ACTIVATIONS[activation](b, gate)
    return made if linear is None else made * linear
