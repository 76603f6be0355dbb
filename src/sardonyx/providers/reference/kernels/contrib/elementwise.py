"""Element-wise operators of com.microsoft: the Gelu family and gates. Half types compute in float32 and are rounded once."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.broadcast import combine
from sardonyx.providers.reference.algorithms.precision import require_floats, widen
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "bias_add",
    "bias_gelu",
    "bias_split_gelu",
    "fast_gelu",
    "gated_add",
    "gelu",
    "linear_attention_gate",
    "quick_gelu",
    "scaled_silu",
]

_MICROSOFT = "com.microsoft"


@kernel("Gelu", domain=_MICROSOFT)
def gelu(call: Call, x: Array) -> Array:
    """Return x / 2 x (1 + erf(x / sqrt 2)), in the shape and type of x. Source: com.microsoft Gelu."""
    return _gelu(x, "none")


@kernel("BiasGelu", domain=_MICROSOFT)
def bias_gelu(call: Call, x: Array, bias: Array) -> Array:
    """Compute Gelu of x + bias, where the bias (C,) goes along the last axis of x. Source: com.microsoft BiasGelu."""
    return _gelu(_add_bias(x, bias), "none").astype(x.dtype, copy=False)


@kernel("FastGelu", domain=_MICROSOFT)
def fast_gelu(call: Call, x: Array, bias: Array | None = None) -> Array:
    """Compute Gelu of x + bias by its tanh approximation. Source: com.microsoft FastGelu."""
    shifted = x if bias is None else _add_bias(x, bias)
    return _gelu(shifted, "tanh").astype(x.dtype, copy=False)


@kernel("QuickGelu", domain=_MICROSOFT)
def quick_gelu(call: Call, x: Array, *, alpha: float = 1.702) -> Array:
    """Return x times the sigmoid of alpha x. Source: com.microsoft QuickGelu."""
    require_floats(x)
    y: Array = run_standard("Swish", x, alpha=alpha)
    return y


@kernel("BiasSplitGelu", domain=_MICROSOFT)
def bias_split_gelu(call: Call, x: Array, bias: Array) -> Array:
    """Compute the left half of x + bias, along the last axis, times the Gelu of the right half.

    Source: com.microsoft BiasSplitGelu.
    """
    if x.ndim == 0 or x.shape[-1] % 2:
        raise InvalidArgument(f"X has shape {x.shape}; expected an even last dimension")
    left, right = np.split(_add_bias(x, bias), 2, axis=-1)
    return (left * _gelu(right, "none")).astype(x.dtype, copy=False)


@kernel("BiasAdd", domain=_MICROSOFT)
def bias_add(call: Call, x: Array, bias: Array, skip: Array) -> Array:
    """Compute X (N, S, C) + bias (C,) + skip (N, S, C). Source: com.microsoft BiasAdd."""
    total = combine(np.add, _add_bias(x, bias), widen(skip))
    if total.shape != x.shape:
        raise InvalidArgument(f"X has shape {x.shape} and skip {skip.shape}; expected a skip that broadcasts to X")
    return total.astype(x.dtype, copy=False)


@kernel("GatedAdd", domain=_MICROSOFT)
def gated_add(call: Call, x: Array, y: Array, gate: Array) -> Array:
    """Compute X + y x gate, the product rounded to the type of x first; gate is (..., 1).

    Source: com.microsoft GatedAdd.
    """
    if x.shape != y.shape or gate.shape != (*x.shape[:-1], 1):
        raise InvalidArgument(
            f"X has shape {x.shape}, Y {y.shape} and gate {gate.shape}; expected equal ones and (..., 1) for gate"
        )
    product = (widen(y) * widen(gate)).astype(x.dtype, copy=False)
    return np.asarray(widen(x) + widen(product)).astype(x.dtype, copy=False)


@kernel("ScaledSiLU", domain=_MICROSOFT)
def scaled_silu(call: Call, x: Array, scale: Array | None = None, *, alpha: float = 1.0) -> Array:
    """Return z sigmoid(z) of z = scale x, with z, the sigmoid and the product rounded to the type of x.

    Source: com.microsoft ScaledSiLU.
    """
    require_floats(x, scale)
    if scale is not None and scale.size != 1:
        raise InvalidArgument(f"scale has shape {scale.shape}; expected one element")
    factor = np.float32(alpha) if scale is None else np.float32(scale.reshape(()))
    z = (widen(x) * factor).astype(x.dtype, copy=False)
    s = run_standard("Sigmoid", z)
    return np.asarray(widen(z) * widen(s)).astype(x.dtype, copy=False)


@kernel("LinearAttentionGate", domain=_MICROSOFT)
def linear_attention_gate(
    call: Call, a: Array, dt_bias: Array, decay_scale: Array, b: Array | None = None
) -> tuple[Array, Array | None]:
    """Return decay_scale softplus(a + dt_bias) and sigmoid(b), both (B, T, H) in the type of a; the vectors are (H,).

    Source: com.microsoft LinearAttentionGate.
    """
    softplus = run_standard("Softplus", _add_bias(a, dt_bias))
    if decay_scale.shape != a.shape[-1:]:
        raise InvalidArgument(f"decay_scale has shape {decay_scale.shape} and a {a.shape}; expected {a.shape[-1:]}")
    decay = np.asarray(softplus * decay_scale).astype(a.dtype, copy=False)
    return decay, None if b is None else run_standard("Sigmoid", b)


def _add_bias(x: Array, bias: Array) -> Array:
    """Return X + bias in the computing type, a new array."""
    if x.ndim == 0 or bias.shape != x.shape[-1:]:
        raise InvalidArgument(f"the bias has shape {bias.shape} and X {x.shape}; expected a bias as long as the last axis of X")
    return np.asarray(widen(x) + widen(bias))


def _gelu(x: Array, approximate: str) -> Array:
    require_floats(x)
    y: Array = run_standard("Gelu", x, approximate=approximate)
    return y
