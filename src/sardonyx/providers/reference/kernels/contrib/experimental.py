"""Operators that ai.onnx had as experiments, up to opset 9, and that ONNX Runtime still runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["affine", "crop", "dynamic_slice", "image_scaler", "parametric_softplus", "scale", "scaled_tanh"]


@kernel("Affine")
@quiet
def affine(call: Call, x: Array, *, alpha: float = 1.0, beta: float = 0.0) -> Array:
    """Compute alpha * x + beta for each element. Source: Affine-1 of ai.onnx, removed in opset 10."""
    return (widen(x) * np.float32(alpha) + np.float32(beta)).astype(x.dtype, copy=False)


@kernel("Scale")
@quiet
def scale(call: Call, x: Array, *, scale: float = 1.0) -> Array:
    """Compute scale * x for each element. Source: Scale-1 of ai.onnx, removed in opset 10."""
    return (widen(x) * np.float32(scale)).astype(x.dtype, copy=False)


@kernel("ScaledTanh")
@quiet
def scaled_tanh(call: Call, x: Array, *, alpha: float = 0.0, beta: float = 0.0) -> Array:
    """Compute alpha * tanh(beta * x) for each element. Source: ScaledTanh-1 of ai.onnx, removed in opset 10."""
    return (np.float32(alpha) * np.tanh(widen(x) * np.float32(beta))).astype(x.dtype, copy=False)


@kernel("ParametricSoftplus")
@quiet
def parametric_softplus(call: Call, x: Array, *, alpha: float = 0.0, beta: float = 0.0) -> Array:
    """Compute alpha * ln(exp(beta * x) + 1) for each element. Source: ParametricSoftplus-1 of ai.onnx, removed in opset 10."""
    wide = widen(x) * np.float32(beta)
    return (np.float32(alpha) * np.logaddexp(wide, np.zeros((), wide.dtype))).astype(x.dtype, copy=False)


@kernel("ImageScaler")
@quiet
def image_scaler(call: Call, x: Array, *, bias: Sequence[float] = (), scale: float = 1.0) -> Array:
    """Compute scale * x + bias for x (N, C, H, W) with a bias per channel. Source: ImageScaler-1, removed in opset 10."""
    if x.ndim != 4 or len(bias) != x.shape[1]:
        raise InvalidArgument(f"the input has shape {x.shape} and there are {len(bias)} biases; expected (N, C, H, W) and C biases")
    wide = widen(x)
    y: Array = (wide * np.float32(scale) + np.asarray(bias, wide.dtype)[:, None, None]).astype(x.dtype, copy=False)
    return y


@kernel("Crop")
def crop(call: Call, x: Array, *, border: Sequence[int] = (), scale: Sequence[int] = ()) -> Array:
    """Take a part of x (N, C, H, W). A view. Source: Crop-1 of ai.onnx, removed in opset 10.

    `border` is (left, top, right, bottom); with `scale`, (height, width), the part begins at (top, left) and has that size.
    """
    if x.ndim != 4 or len(border) != 4 or len(scale) not in (0, 2):
        raise InvalidArgument(
            f"the input has shape {x.shape}, border {list(border)}, scale {list(scale)}; expected ranks 4, 4 and 2 or 0"
        )
    left, top, right, bottom = border
    height, width = scale if len(scale) else (x.shape[2] - top - bottom, x.shape[3] - left - right)
    if min(left, top, height, width) < 0 or top + height > x.shape[2] or left + width > x.shape[3]:
        raise InvalidArgument(f"border {list(border)} and scale {list(scale)} reach outside of the input of shape {x.shape}")
    return x[:, :, top : top + height, left : left + width]


@kernel("DynamicSlice")
def dynamic_slice(call: Call, data: Array, starts: Array, ends: Array, axes: Array | None = None) -> Array:
    """Take a box of `data` as Slice-10 does, without steps. A view. Source: DynamicSlice-1 of ai.onnx, removed in opset 10."""
    taken: Array = run_standard("Slice", data, starts, ends, axes, version=10)
    return taken
