"""Element-wise operators of com.microsoft: the Gelu family. Half types compute in float32 and are rounded once."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.kernels.precision import widen
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["bias_add", "bias_gelu", "bias_split_gelu", "fast_gelu", "gelu", "quick_gelu"]

_MICROSOFT = "com.microsoft"


@kernel("Gelu", domain=_MICROSOFT)
def gelu(call: Call, x: Array) -> Array:
    """Return x / 2 x (1 + erf(x / sqrt 2)), in the shape and type of x. Source: com.microsoft Gelu."""
    return _gelu(x, "none")


@kernel("BiasGelu", domain=_MICROSOFT)
def bias_gelu(call: Call, x: Array, bias: Array) -> Array:
    """Gelu of x + bias, where the bias (C,) goes along the last axis of x. Source: com.microsoft BiasGelu."""
    return _gelu(_add_bias(x, bias), "none").astype(x.dtype, copy=False)


@kernel("FastGelu", domain=_MICROSOFT)
def fast_gelu(call: Call, x: Array, bias: Array | None = None) -> Array:
    """Gelu of x + bias by its tanh approximation. Source: com.microsoft FastGelu."""
    shifted = x if bias is None else _add_bias(x, bias)
    return _gelu(shifted, "tanh").astype(x.dtype, copy=False)


@kernel("QuickGelu", domain=_MICROSOFT)
def quick_gelu(call: Call, x: Array, *, alpha: float = 1.702) -> Array:
    """Return x times the sigmoid of alpha x. Source: com.microsoft QuickGelu."""
    y: Array = run_standard("Swish", x, alpha=alpha)
    return y


@kernel("BiasSplitGelu", domain=_MICROSOFT)
def bias_split_gelu(call: Call, x: Array, bias: Array) -> Array:
    """The left half of x + bias, along the last axis, times the Gelu of the right half. Source: com.microsoft BiasSplitGelu."""
    if x.ndim == 0 or x.shape[-1] % 2:
        raise InvalidArgument(f"X has shape {x.shape}; expected an even last dimension")
    left, right = np.split(_add_bias(x, bias), 2, axis=-1)
    return (left * _gelu(right, "none")).astype(x.dtype, copy=False)


@kernel("BiasAdd", domain=_MICROSOFT)
def bias_add(call: Call, x: Array, bias: Array, skip: Array) -> Array:
    """X (N, S, C) + bias (C,) + skip (N, S, C). Source: com.microsoft BiasAdd."""
    total = _add_bias(x, bias)
    total += widen(skip)
    return total.astype(x.dtype, copy=False)


def _add_bias(x: Array, bias: Array) -> Array:
    """X + bias in the computing type, a new array."""
    if x.ndim == 0 or bias.shape != x.shape[-1:]:
        raise InvalidArgument(f"the bias has shape {bias.shape} and X {x.shape}; expected a bias as long as the last axis of X")
    return np.asarray(widen(x) + widen(bias))


def _gelu(x: Array, approximate: str) -> Array:
    y: Array = run_standard("Gelu", x, approximate=approximate)
    return y
