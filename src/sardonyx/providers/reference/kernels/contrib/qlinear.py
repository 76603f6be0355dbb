"""The QLinear operators of com.microsoft: 8-bit tensors in and out, each with a scale and a zero point.

An operator of one 8-bit input is a table of 256 entries, rounded to nearest, ties to even, before the zero point is added. Sums and
products scale in float32, sums by fused multiply-adds as onnxruntime's kernel, and are rounded after it is added. Sources: the
operator schemas of ONNX Runtime 1.31.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ir.attribute import AttributeValue
from sardonyx.providers.reference.algorithms.dimensions import normalize_axis
from sardonyx.providers.reference.algorithms.requantize import integer_limits, round_to
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "microsoft_qlinear_conv",
    "qgemm",
    "qlinear_add",
    "qlinear_average_pool",
    "qlinear_concat",
    "qlinear_global_average_pool",
    "qlinear_leaky_relu",
    "qlinear_mul",
    "qlinear_sigmoid",
    "qlinear_softmax",
    "qlinear_where",
]

_MICROSOFT = "com.microsoft"
_Floats = Callable[[Array], Array]


@kernel("QLinearAdd", domain=_MICROSOFT)
def qlinear_add(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero_point: Array | None,
    b: Array,
    b_scale: Array,
    b_zero_point: Array | None,
    c_scale: Array,
    c_zero_point: Array | None = None,
) -> Array:
    """Add two 8-bit tensors that broadcast. Source: com.microsoft QLinearAdd."""
    _check_broadcast(a, b)
    scale = _scalar("C_scale", c_scale)
    a_ratio, b_ratio = _scalar("A_scale", a_scale) / scale, _scalar("B_scale", b_scale) / scale
    fixed = _zero(c_zero_point) - _multiply_add(np.asarray(a_ratio), _zero(a_zero_point), b_ratio * _zero(b_zero_point))
    return _round(_multiply_add(a, a_ratio, _multiply_add(b, b_ratio, fixed)), a.dtype)


@kernel("QLinearMul", domain=_MICROSOFT)
def qlinear_mul(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero_point: Array | None,
    b: Array,
    b_scale: Array,
    b_zero_point: Array | None,
    c_scale: Array,
    c_zero_point: Array | None = None,
) -> Array:
    """Multiply two 8-bit tensors that broadcast. Source: com.microsoft QLinearMul."""
    _check_broadcast(a, b)
    factor = _scalar("A_scale", a_scale) * _scalar("B_scale", b_scale) / _scalar("C_scale", c_scale)
    y = np.asarray((a - _zero(a_zero_point)) * (b - _zero(b_zero_point))) * factor + _zero(c_zero_point)
    return _round(y, a.dtype)


def _multiply_add(x: Array, factor: np.float32, addend: Array | np.float32) -> Array:
    """Return x factor + addend in float32, rounded once, as float64 holds the product."""
    return np.asarray(x.astype(np.float64) * np.float64(factor) + addend).astype(np.float32)


@kernel("QLinearLeakyRelu", domain=_MICROSOFT)
def qlinear_leaky_relu(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    alpha: float = 0.01,
) -> Array:
    """Compute LeakyRelu by table. Source: com.microsoft QLinearLeakyRelu."""
    return _by_table(x, x_scale, x_zero_point, y_scale, y_zero_point, lambda v: np.where(v < 0, np.float32(alpha) * v, v))


@kernel("QLinearSigmoid", domain=_MICROSOFT)
def qlinear_sigmoid(
    call: Call, x: Array, x_scale: Array, x_zero_point: Array | None, y_scale: Array, y_zero_point: Array | None = None
) -> Array:
    """Compute Sigmoid by table. Source: com.microsoft QLinearSigmoid."""
    return _by_table(x, x_scale, x_zero_point, y_scale, y_zero_point, lambda v: run_standard("Sigmoid", v))


@kernel("QLinearSoftmax", domain=_MICROSOFT)
def qlinear_softmax(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array,
    *,
    axis: int = -1,
    opset: int,
) -> Array:
    """Compute Softmax of the numbers behind x, as it is read at `opset`: flattened at `axis` before 13.

    Source: com.microsoft QLinearSoftmax.
    """
    if opset < 1:
        raise InvalidArgument(f"opset={opset}; expected the opset of ai.onnx under which Softmax is read, 1 or more")
    numbers = (x - _zero(x_zero_point)) * _scalar("X_scale", x_scale)
    y = run_standard("Softmax", numbers, version=opset, axis=axis)
    return _quantize(y, y_scale, y_zero_point, x.dtype)


@kernel("QLinearConcat", domain=_MICROSOFT)
def qlinear_concat(call: Call, y_scale: Array, y_zero_point: Array, *inputs: Array, axis: int) -> Array:
    """Concatenate tensors, each followed by its scale and zero point, after bringing them to Y's.

    Source: com.microsoft QLinearConcat.
    """
    if y_zero_point.dtype not in (np.uint8, np.int8):
        raise InvalidArgument(f"Y_zero_point has type {y_zero_point.dtype}; expected uint8 or int8, which is the type of Y")
    if not inputs or len(inputs) % 3:
        raise InvalidArgument(f"there are {len(inputs)} inputs after Y_zero_point; expected threes of tensor, scale and zero point")
    triples = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    dtype = y_zero_point.dtype
    parts = [_by_table(x, scale, zero_point, y_scale, y_zero_point, _same, dtype) for x, scale, zero_point in triples]
    result: Array = run_standard("Concat", *parts, axis=axis)
    return result


@kernel("QLinearWhere", domain=_MICROSOFT)
def qlinear_where(
    call: Call,
    condition: Array,
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    y: Array,
    y_scale: Array,
    y_zero_point: Array,
    z_scale: Array,
    z_zero_point: Array,
) -> Array:
    """Choose between two 8-bit tensors, brought to Z's scale; all three broadcast. Source: com.microsoft QLinearWhere."""
    chosen = _by_table(x, x_scale, x_zero_point, z_scale, z_zero_point, _same)
    other = _by_table(y, y_scale, y_zero_point, z_scale, z_zero_point, _same)
    result: Array = run_standard("Where", condition, chosen, other)
    return result


@kernel("QLinearAveragePool", domain=_MICROSOFT)
def qlinear_average_pool(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Sequence[int],
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Array:
    """Compute AveragePool of the numbers behind X (N, C, …), or (N, …, C) with channels_last.

    Source: com.microsoft QLinearAveragePool.
    """
    numbers = (x - _zero(x_zero_point)) * _scalar("x_scale", x_scale)
    lists: dict[str, AttributeValue] = {name: values for name, values in (("pads", pads), ("strides", strides)) if values}
    y = run_standard(
        "AveragePool",
        np.ascontiguousarray(_channels_first(numbers, channels_last)),
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        kernel_shape=kernel_shape,
        **lists,
    )
    return _channels_back(_quantize(y, y_scale, y_zero_point, x.dtype), channels_last)


@kernel("QLinearGlobalAveragePool", domain=_MICROSOFT)
def qlinear_global_average_pool(
    call: Call, x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array, *, channels_last: int = 0
) -> Array:
    """Average over all but batch and channels, kept as axes of size 1. Source: com.microsoft QLinearGlobalAveragePool."""
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    count = int(np.prod([x.shape[axis] for axis in axes]))
    total = x.sum(axis=axes, keepdims=True, dtype=np.int64) - count * int(_zero(x_zero_point))
    factor = _scalar("x_scale", x_scale) / (_scalar("y_scale", y_scale) * np.float32(count))
    return _round(np.rint(total.astype(np.float32) * factor) + _zero(y_zero_point), x.dtype)


@kernel("QGemm", domain=_MICROSOFT)
def qgemm(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    c: Array | None = None,
    y_scale: Array | None = None,
    y_zero_point: Array | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Return alpha (a' b' + c) of 8-bit matrices, c being int32; float32 without y_scale, else quantized.

    Source: com.microsoft QGemm.
    """
    left, right = (a.T if transA else a), (b.T if transB else b)
    total = run_standard("MatMulInteger", left, right, a_zero_point, b_zero_point)
    if c is not None:
        if any(have not in (1, want) for have, want in zip(reversed(c.shape), reversed(total.shape), strict=False)) or c.ndim > 2:
            raise InvalidArgument(f"C has shape {c.shape}; expected one that broadcasts to {total.shape}")
        total = total + c
    if b_scale.size != 1 and b_scale.shape != total.shape[1:]:
        raise InvalidArgument(f"b_scale has shape {b_scale.shape}; expected one element or {total.shape[1:]}")
    factor = np.float32(alpha) * _scalar("a_scale", a_scale) * (b_scale.reshape(()) if b_scale.size == 1 else b_scale)
    if y_scale is None:
        return np.asarray(total.astype(np.float32) * factor)
    y = np.asarray(total.astype(np.float32) * (factor / _scalar("y_scale", y_scale)))
    zero = None if y_zero_point is None else np.asarray(_zero(y_zero_point))
    return round_to(y, zero, a.dtype if y_zero_point is None else y_zero_point.dtype, saturate=True)


@kernel("QLinearConv", domain=_MICROSOFT)
def microsoft_qlinear_conv(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    channels_last: int = 0,
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Array:
    """Compute QLinearConv, on (N, …, C) with channels_last. Source: com.microsoft QLinearConv."""
    named = (("dilations", dilations), ("kernel_shape", kernel_shape), ("pads", pads), ("strides", strides))
    lists: dict[str, AttributeValue] = {name: values for name, values in named if values}
    y = run_standard(
        "QLinearConv",
        np.ascontiguousarray(_channels_first(x, channels_last)),
        x_scale,
        x_zero_point,
        w,
        w_scale,
        w_zero_point,
        y_scale,
        y_zero_point,
        b,
        auto_pad=auto_pad,
        group=group,
        **lists,
    )
    return _channels_back(y, channels_last)


def _scalar(name: str, scale: Array) -> np.float32:
    if scale.size != 1:
        raise InvalidArgument(f"{name} has shape {scale.shape}; expected one element")
    return np.float32(scale.reshape(()))


def _zero(zero_point: Array | None) -> np.float32:
    return np.float32(0) if zero_point is None else _scalar("a zero point", zero_point.astype(np.float32))


def _round(y: Array, dtype: np.dtype[np.generic]) -> Array:
    """Round y, overwritten, to 8 bits, saturating; ties to even."""
    low, high = integer_limits(dtype)
    np.rint(y, out=y)
    np.clip(y, low, high, out=y)
    return y.astype(dtype)


def _quantize(y: Array, scale: Array, zero_point: Array | None, dtype: np.dtype[np.generic]) -> Array:
    return _round(np.asarray(y / _scalar("the scale of Y", scale) + _zero(zero_point)), dtype)


def _by_table(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None,
    function: _Floats,
    dtype: np.dtype[np.generic] | None = None,
) -> Array:
    """Apply `function` to the numbers behind 8-bit x: to the 256 that there can be, then by look-up; `dtype` is x's by default."""
    every = np.arange(256, dtype=np.uint8).view(x.dtype)
    numbers = (every - _zero(x_zero_point)) * _scalar("the scale of X", x_scale)
    steps = np.rint(function(numbers) / _scalar("the scale of Y", y_scale))
    table = _round(steps + _zero(y_zero_point), x.dtype if dtype is None else dtype)
    return np.take(table, np.ascontiguousarray(x).view(np.uint8), mode="clip")


def _same(x: Array) -> Array:
    return x


def _check_broadcast(a: Array, b: Array) -> None:
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise InvalidArgument(f"A has shape {a.shape} and B {b.shape}; they do not broadcast") from None


def _channels_first(x: Array, channels_last: int) -> Array:
    if x.ndim < 3:
        raise InvalidArgument(f"X has shape {x.shape}; expected batch, channels and at least one spatial axis")
    return np.moveaxis(x, normalize_axis(-1, x.ndim), 1) if channels_last else x


def _channels_back(y: Array, channels_last: int) -> Array:
    return np.moveaxis(y, 1, -1) if channels_last else y
