"""Activation functions, element by element.

Each body fills `out` from a block `x` in the compute type (float32 or float64) with ufuncs in place; `map_blocks` widens
float16 and bfloat16, rounds once, and keeps the passes in cache. np.clip is used for one-sided limits as well: it passes NaN
on and is faster than np.maximum.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.ops.views.activation import Clip, Selu
from sardonyx.providers.reference.algorithms.blocks import map_blocks
from sardonyx.providers.reference.algorithms.erf import erf_into
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet, require_same_type, widen
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "celu",
    "clip",
    "clip_1",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "mish",
    "prelu",
    "prelu_1",
    "relu",
    "selu",
    "shrink",
    "sigmoid",
    "softplus",
    "softsign",
    "swiglu",
    "swish",
    "thresholded_relu",
]


@kernel("Relu")
@quiet
def relu(_node: Call, x: Array) -> Array:
    """Return max(x, 0); same shape and type out; NaN stays. ONNX Relu-1 to Relu-14."""
    if x.dtype.kind == "f" and x.dtype.itemsize > 1:
        return np.asarray(x.clip(0.0, np.inf))
    return np.asarray(np.maximum(x, np.zeros((), x.dtype)))


@kernel("LeakyRelu")
@quiet
def leaky_relu(_node: Call, x: Array, *, alpha: float = 0.01) -> Array:
    """Return x where x >= 0, alpha x elsewhere; same shape and type out. ONNX LeakyRelu-1 to LeakyRelu-16."""

    def body(x: Array, out: Array) -> None:
        np.multiply(x, alpha, out=out)
        np.copyto(out, x, where=x >= 0)

    return map_blocks(body, x)


@kernel("PRelu", since=1)
def prelu_1(_node: Call, x: Array, slope: Array) -> Array:
    """Return x where x >= 0, slope x elsewhere; slope of one element, or of one per channel (axis 1). ONNX PRelu-1, PRelu-6."""
    if slope.ndim == 1 and slope.size > 1 and x.ndim > 2:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    return _prelu(x, slope)


@kernel("PRelu", since=7)
def prelu(_node: Call, x: Array, slope: Array) -> Array:
    """Return x where x >= 0, slope x elsewhere; slope, of the type of x, broadcasts to its shape. ONNX PRelu-7, -16."""
    return _prelu(x, slope)


@quiet
def _prelu(x: Array, slope: Array) -> Array:
    require_same_type(x, slope)
    _require_broadcast_to(slope, x.shape, "slope")
    if compute_type(x.dtype).kind != "f":
        return np.where(x < 0, x * slope, x)
    wide = widen(x)
    result = np.asarray(np.multiply(wide, widen(slope)))
    np.copyto(result, wide, where=wide >= 0)
    return result.astype(x.dtype, copy=False)


def _require_broadcast_to(array: Array, shape: tuple[int, ...], name: str) -> None:
    sizes = zip(array.shape[::-1], shape[::-1], strict=False)
    if array.ndim > len(shape) or any(own not in (1, other) for own, other in sizes):
        raise InvalidArgument(f"{name} of shape {array.shape} does not broadcast to {shape}; reshape it")


@kernel("Clip", since=1, view=Clip)
@kernel("Clip", since=6, view=Clip)
@quiet
def clip_1(_node: Call, x: Array, *, view: Clip) -> Array:
    """Limit x to the range that attributes give; same shape and type out; NaN stays. ONNX Clip-1, Clip-6."""
    return x if view.limits is None else _limited(x, *_as_type(x, *view.limits))


def _as_type(x: Array, *limits: float) -> list[Array]:
    return [np.array(limit).astype(x.dtype) for limit in limits]


@kernel("Clip", since=11)
@quiet
def clip(_node: Call, x: Array, min: Array | None = None, max: Array | None = None) -> Array:
    """Return Min(max, Max(x, min)); limits are scalars of the type of x, its range where left out. ONNX Clip-11 to Clip-13."""
    lowest, highest = _range_of(x.dtype)
    return _limited(x, _limit(x, min, lowest, "min"), _limit(x, max, highest, "max"))


def _limited(x: Array, lowest: Array, highest: Array) -> Array:
    """Return Min(highest, Max(x, lowest)) in the type of x, which np.clip keeps only for NumPy's own types."""
    if x.dtype.isbuiltin == 1:
        return np.asarray(x.clip(lowest, highest))
    return np.asarray(np.minimum(np.maximum(x, lowest), highest))


def _limit(x: Array, limit: Array | None, default: Array, name: str) -> Array:
    if limit is None:
        return default
    require_same_type(x, limit)
    if limit.size != 1:
        raise InvalidArgument(f"{name} has shape {limit.shape}; expected a scalar")
    return limit.reshape(())


@functools.cache
def _range_of(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return the least and the greatest finite value of `dtype`, as 0-d arrays."""
    with without_fork():
        from ml_dtypes import finfo

    data_type = DataType.from_numpy(dtype)
    limits = finfo(dtype) if is_float(data_type) else np.iinfo(dtype)
    return np.asarray(limits.min, dtype), np.asarray(limits.max, dtype)


@kernel("Celu")
@quiet
def celu(_node: Call, x: Array, *, alpha: float = 1.0) -> Array:
    """Return max(0, x) + min(0, alpha (exp(x / alpha) - 1)); same shape and type out. ONNX Celu-12, Celu-28."""
    if alpha == 0.0:
        raise InvalidArgument("alpha=0 divides by zero; expected another number")

    def body(x: Array, out: Array) -> None:
        np.divide(x, alpha, out=out)
        np.expm1(out, out=out)
        np.multiply(out, alpha, out=out)
        np.clip(out, -np.inf, 0.0, out=out)
        np.add(out, np.clip(x, 0.0, np.inf), out=out)

    return map_blocks(body, x)


@kernel("Elu")
@quiet
def elu(_node: Call, x: Array, *, alpha: float = 1.0) -> Array:
    """Return x where x >= 0, alpha (exp(x) - 1) elsewhere; same shape and type out. ONNX Elu-1 to Elu-22."""
    return _scaled_elu(x, alpha, 1.0)


@kernel("Selu", since=1, view=Selu)
@kernel("Selu", since=6, view=Selu)
@quiet
def selu(_node: Call, x: Array, *, view: Selu) -> Array:
    """Return gamma x where x > 0, gamma alpha (exp(x) - 1) elsewhere; same shape and type out. ONNX Selu-1 to Selu-22."""
    return _scaled_elu(x, view.alpha, view.gamma)


def _scaled_elu(x: Array, alpha: float, gamma: float) -> Array:
    def body(x: Array, out: Array) -> None:
        np.clip(x, -np.inf, 0.0, out=out)
        np.expm1(out, out=out)
        np.multiply(out, alpha, out=out, where=True if np.isfinite(alpha) else out != 0)
        np.add(out, np.clip(x, 0.0, np.inf), out=out)
        if gamma != 1.0:
            np.multiply(out, gamma, out=out)

    return map_blocks(body, x)


@kernel("HardSigmoid")
@quiet
def hard_sigmoid(_node: Call, x: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Return alpha x + beta limited to [0, 1]; same shape and type out. ONNX HardSigmoid-1 to HardSigmoid-22."""
    return map_blocks(lambda x, out: _hard_sigmoid_into(x, out, alpha, beta), x)


@kernel("HardSwish")
@quiet
def hard_swish(_node: Call, x: Array) -> Array:
    """Return x times the hard sigmoid of slope 1/6; same shape and type out. ONNX HardSwish-14, HardSwish-22."""

    def body(x: Array, out: Array) -> None:
        _hard_sigmoid_into(x, out, 1 / 6, 0.5)
        np.multiply(out, x, out=out)

    return map_blocks(body, x)


def _hard_sigmoid_into(x: Array, out: Array, alpha: float, beta: float) -> None:
    np.multiply(x, alpha, out=out)
    np.add(out, beta, out=out)
    np.clip(out, 0.0, 1.0, out=out)


@kernel("Sigmoid")
@quiet
def sigmoid(_node: Call, x: Array) -> Array:
    """Return 1 / (1 + exp(-x)); same shape and type out. ONNX Sigmoid-1 to Sigmoid-13.

    Where exp(-x) overflows (x below -88 in float32, a result below 1e-38) the answer is 0.
    """
    return map_blocks(lambda x, out: _sigmoid_into(x, out, 1.0), x)


def _sigmoid_into(x: Array, out: Array, alpha: float) -> None:
    """Write 1 / (1 + exp(-alpha x)) to `out`."""
    np.multiply(x, -alpha, out=out)
    np.exp(out, out=out)
    np.add(out, 1.0, out=out)
    np.divide(1.0, out, out=out)


@kernel("Swish")
@quiet
def swish(_node: Call, x: Array, *, alpha: float = 1.0) -> Array:
    """Return x / (1 + exp(-alpha x)); same shape and type out. ONNX Swish-24."""

    def body(x: Array, out: Array) -> None:
        _sigmoid_into(x, out, alpha)
        np.multiply(out, x, out=out)

    return map_blocks(body, x)


@kernel("SwiGLU")
@quiet
def swiglu(node: Call, a: Array, b: Array, *, alpha: float = 1.0) -> Array:
    """Return Swish(a) b; a and b of one shape and type, which the result has too. ONNX SwiGLU-28."""
    require_same_type(a, b)
    if a.shape != b.shape:
        raise InvalidArgument(f"A has shape {a.shape} and B {b.shape}; expected one shape, nothing is broadcast")
    gate: Array = swish(node, widen(a), alpha=alpha)
    np.multiply(gate, widen(b), out=gate)
    return gate.astype(a.dtype, copy=False)


@kernel("Gelu")
@quiet
def gelu(_node: Call, x: Array, *, approximate: str = "none") -> Array:
    """Return x Φ(x), Φ by erf or, if `approximate` is "tanh", by tanh; same shape and type out. ONNX Gelu-20."""
    body = _GELU_BODIES.get(approximate)
    if body is None:
        raise InvalidArgument(f"approximate={approximate!r}; expected one of {sorted(_GELU_BODIES)}")
    return map_blocks(body, x)


def _gelu_erf_into(x: Array, out: Array) -> None:
    erf_into(np.multiply(x, math.sqrt(0.5)), out)
    np.add(out, 1.0, out=out)
    np.multiply(out, x, out=out)
    np.multiply(out, 0.5, out=out)


def _gelu_tanh_into(x: Array, out: Array) -> None:
    np.square(x, out=out)
    np.multiply(out, 0.044715 * math.sqrt(2 / math.pi), out=out)
    np.add(out, math.sqrt(2 / math.pi), out=out)
    np.multiply(out, x, out=out)
    np.tanh(out, out=out)
    np.add(out, 1.0, out=out)
    np.multiply(out, x, out=out)
    np.multiply(out, 0.5, out=out)


_GELU_BODIES = {"none": _gelu_erf_into, "tanh": _gelu_tanh_into}


@kernel("Mish")
@quiet
def mish(_node: Call, x: Array) -> Array:
    """Return x tanh(softplus(x)); same shape and type out. ONNX Mish-18, Mish-22.

    With e = exp(x), tanh(log(1 + e)) = n / (n + 2) for n = e (e + 2); it is 1 to the last bit from x = 20 on.
    """

    def body(x: Array, out: Array) -> None:
        np.clip(x, -np.inf, 20.0, out=out)
        np.exp(out, out=out)
        np.multiply(out, out + 2.0, out=out)
        np.divide(out, out + 2.0, out=out)
        np.multiply(out, x, out=out)

    return map_blocks(body, x)


@kernel("Softplus")
@quiet
def softplus(_node: Call, x: Array) -> Array:
    """Return log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)); same shape and type out. ONNX Softplus-1, Softplus-22."""

    def body(x: Array, out: Array) -> None:
        np.absolute(x, out=out)
        np.negative(out, out=out)
        np.exp(out, out=out)
        np.log1p(out, out=out)
        np.add(out, np.clip(x, 0.0, np.inf), out=out)

    return map_blocks(body, x)


@kernel("Softsign")
@quiet
def softsign(_node: Call, x: Array) -> Array:
    """Return x / (1 + |x|); same shape and type out. ONNX Softsign-1, Softsign-22."""

    def body(x: Array, out: Array) -> None:
        np.absolute(x, out=out)
        np.add(out, 1.0, out=out)
        np.divide(x, out, out=out)

    return map_blocks(body, x)


@kernel("ThresholdedRelu")
@quiet
def thresholded_relu(_node: Call, x: Array, *, alpha: float = 1.0) -> Array:
    """Return x where x > alpha, 0 elsewhere; same shape and type out. ONNX ThresholdedRelu-10, ThresholdedRelu-22."""
    keep = widen(x) > np.float32(alpha)
    return np.where(keep, x, np.zeros((), x.dtype))


@kernel("Shrink")
@quiet
def shrink(_node: Call, x: Array, *, bias: float = 0.0, lambd: float = 0.5) -> Array:
    """Return x + bias below -lambd, x - bias above lambd, 0 between; same shape and type out. ONNX Shrink-9.

    Integers are computed in float64 and truncated.
    """
    wide = widen(x) if compute_type(x.dtype).kind == "f" else x.astype(np.float64)
    zero = np.zeros((), wide.dtype)
    result = np.where(wide < -lambd, wide + bias, np.where(wide > lambd, wide - bias, zero))
    return result.astype(x.dtype, copy=False)
