"""Layer and root mean square normalization of com.microsoft, fused with residual sums and embeddings.

Dimension letters: B batch, S steps, C hidden size. Half types compute in float32 and are rounded once.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.precision import require_floats, widen
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "bias_softmax",
    "branchwise_rms_norm",
    "embed_layer_normalization",
    "gated_rms_norm",
    "q_embed_layer_normalization",
    "simplified_layer_normalization",
    "skip_layer_normalization",
    "skip_simplified_layer_normalization",
]

_MICROSOFT = "com.microsoft"


@kernel("BiasSoftmax", domain=_MICROSOFT)
def bias_softmax(call: Call, data: Array, bias: Array, *, axis: int = 1, is_inner_broadcast: int) -> Array:
    """Compute Softmax of data + bias over `axis` and those after it together, which are a row.

    The bias has whole rows, of whatever shape: each is added to several neighbouring rows of data (inner), or all of them in turn.
    Source: com.microsoft BiasSoftmax.
    """
    require_floats(data, bias)
    if not -data.ndim <= axis < data.ndim:
        raise InvalidArgument(f"axis is {axis}; data of shape {data.shape} has {data.ndim} axes")
    shape = data.shape[: axis % data.ndim]
    rows, width = math.prod(shape), math.prod(data.shape[len(shape) :])
    if not rows * width:
        return np.empty_like(data)
    count = bias.size // width
    if not count or bias.size % width or rows % count:
        raise InvalidArgument(f"bias has shape {bias.shape}; expected rows of {width}, as many as divide {rows}")
    own = widen(bias).reshape(count, width)
    added = np.repeat(own, rows // count, axis=0) if is_inner_broadcast else np.tile(own, (rows // count, 1))
    y: Array = run_standard("Softmax", widen(data).reshape(rows, width) + added, axis=-1)
    return y.reshape(data.shape).astype(data.dtype, copy=False)


@kernel("SimplifiedLayerNormalization")
@kernel("SimplifiedLayerNormalization", domain=_MICROSOFT)
def simplified_layer_normalization(
    call: Call, x: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Array | tuple[Array, Array]:
    """Divide x by its root mean square over `axis` and those after it, times scale; the result has the type of scale.

    The second output is 1 / root mean square. ONNX Runtime registers the name in ai.onnx too. Source: its schema.
    """
    require_floats(x, scale)
    y: Array = run_standard("RMSNormalization", widen(x), widen(scale), axis=axis, epsilon=epsilon)
    y = y.astype(scale.dtype, copy=False)
    return (y, _inverse_rms(x, axis, epsilon)) if _is_used(call, 1) else y


@kernel("SkipLayerNormalization", domain=_MICROSOFT)
def skip_layer_normalization(
    call: Call,
    x: Array,
    skip: Array,
    gamma: Array,
    beta: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-12,
) -> tuple[Array | None, ...]:
    """Normalize the rows of x + skip + bias; return the result, mean, 1 / deviation and that sum.

    X (B, S, C) or (S, C), to which `skip` broadcasts; gamma, beta and bias (C,). Source: com.microsoft SkipLayerNormalization.
    """
    total = _sum(x, skip, bias)
    y, mean, inverse = _layer_norm(total, gamma, beta, epsilon)
    return y.astype(x.dtype, copy=False), mean, inverse, total.astype(x.dtype, copy=False)


@kernel("SkipSimplifiedLayerNormalization", domain=_MICROSOFT)
def skip_simplified_layer_normalization(
    call: Call, x: Array, skip: Array, gamma: Array, bias: Array | None = None, *, epsilon: float = 1e-12
) -> tuple[Array | None, ...]:
    """Divide the rows of x + skip + bias by their root mean square; return the result, None, 1 / rms and that sum.

    Shapes as in SkipLayerNormalization. Source: com.microsoft SkipSimplifiedLayerNormalization.
    """
    total = _sum(x, skip, bias)
    _check_affine("gamma", gamma, total)
    y: Array = run_standard("RMSNormalization", total, widen(gamma), axis=-1, epsilon=epsilon)
    inverse = _inverse_rms(total, -1, epsilon) if _is_used(call, 2) else None
    return y.astype(x.dtype, copy=False), None, inverse, total.astype(x.dtype, copy=False)


@kernel("EmbedLayerNormalization", domain=_MICROSOFT)
def embed_layer_normalization(
    call: Call,
    input_ids: Array,
    segment_ids: Array | None,
    word_embedding: Array,
    position_embedding: Array,
    segment_embedding: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None = None,
    position_ids: Array | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> tuple[Array, Array, Array]:
    """Look up words, positions and segments, add and normalize; return that (B, S, C), the mask's counts (B,) and the sum.

    Ids are (B, S), embeddings (count, C); positions are 0, 1, … unless given. Source: com.microsoft EmbedLayerNormalization.
    """
    if input_ids.ndim != 2:
        raise InvalidArgument(f"input_ids has shape {input_ids.shape}; expected (batch, steps)")
    B, S = input_ids.shape
    positions = np.arange(S)[None] if position_ids is None else position_ids
    _check_embedding(input_ids, segment_ids, mask, [word_embedding, position_embedding, segment_embedding])
    if positions.shape not in ((1, S), (B, S)):
        raise InvalidArgument(f"position_ids has shape {positions.shape}; expected (1, {S}) or ({B}, {S})")
    total = widen(_look_up("input_ids", input_ids, word_embedding)) + widen(_look_up("positions", positions, position_embedding))
    if segment_ids is not None and segment_embedding is not None:
        total += widen(_look_up("segment_ids", segment_ids, segment_embedding))
    y, _, _ = _layer_norm(total, gamma, beta, epsilon)
    return y.astype(word_embedding.dtype, copy=False), _count_visible(mask, B), total.astype(word_embedding.dtype, copy=False)


@kernel("QEmbedLayerNormalization", domain=_MICROSOFT)
def q_embed_layer_normalization(
    call: Call,
    input_ids: Array,
    segment_ids: Array | None,
    word_embedding: Array,
    position_embedding: Array,
    segment_embedding: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None,
    word_scale: Array,
    position_scale: Array,
    segment_scale: Array | None,
    gamma_scale: Array,
    beta_scale: Array,
    word_zero_point: Array,
    position_zero_point: Array,
    segment_zero_point: Array | None,
    gamma_zero_point: Array,
    beta_zero_point: Array,
    *,
    epsilon: float = 1e-12,
) -> tuple[Array, Array]:
    """Compute EmbedLayerNormalization whose tables, gamma and beta are 8-bit, each with a scale and a zero point.

    Source: com.microsoft QEmbedLayerNormalization.
    """
    _check_embedding(input_ids, segment_ids, mask, [word_embedding, position_embedding, segment_embedding])
    total = _look_up_scaled("input_ids", input_ids, word_embedding, word_scale, word_zero_point)
    positions = np.arange(input_ids.shape[1])[None]
    total = total + _look_up_scaled("positions", positions, position_embedding, position_scale, position_zero_point)
    if segment_ids is not None and segment_embedding is not None and segment_scale is not None and segment_zero_point is not None:
        total += _look_up_scaled("segment_ids", segment_ids, segment_embedding, segment_scale, segment_zero_point)
    wide_gamma, wide_beta = _scaled(gamma, gamma_scale, gamma_zero_point), _scaled(beta, beta_scale, beta_zero_point)
    y, _, _ = _layer_norm(total, wide_gamma, wide_beta, epsilon)
    return y, _count_visible(mask, len(input_ids))


@kernel("GatedRMSNorm", domain=_MICROSOFT)
def gated_rms_norm(call: Call, x: Array, scale: Array, gate: Array, *, activation: str = "silu", epsilon: float = 1e-5) -> Array:
    """Divide groups of C elements by their root mean square, times scale (C,), times an activation of gate.

    X and gate (..., H x C); the activation is silu, swish or sigmoid. Source: com.microsoft GatedRMSNorm.
    """
    require_floats(x, scale, gate)
    if activation not in ("silu", "swish", "sigmoid"):
        raise InvalidArgument(f"activation is {activation!r}; expected silu, swish or sigmoid")
    if gate.shape != x.shape or scale.ndim != 1 or x.ndim == 0 or not scale.size or x.shape[-1] % scale.size:
        raise InvalidArgument(
            f"X has shape {x.shape}, gate {gate.shape} and scale {scale.shape}; expected equal ones of H x C and (C,)"
        )
    groups = widen(x).reshape(*x.shape[:-1], x.shape[-1] // scale.size, scale.size)
    y: Array = run_standard("RMSNormalization", groups, widen(scale), axis=-1, epsilon=epsilon)
    y = y.reshape(x.shape)
    y *= run_standard("Sigmoid" if activation == "sigmoid" else "Swish", widen(gate))
    return y.astype(x.dtype, copy=False)


@kernel("BranchwiseRMSNorm", domain=_MICROSOFT)
def branchwise_rms_norm(call: Call, x: Array, scale: Array | None = None, *, epsilon: float = 1e-5, num_branches: int = 0) -> Array:
    """Divide each branch by its root mean square: X (..., C, H), or (..., C x H) with `num_branches` C.

    Scale is (C x H,), (C, H) or (H,). Source: com.microsoft BranchwiseRMSNorm.
    """
    require_floats(x, scale)
    if x.ndim < (1 if num_branches else 2) or num_branches < 0 or (num_branches and x.shape[-1] % num_branches):
        raise InvalidArgument(f"X has shape {x.shape} and num_branches is {num_branches}; expected (..., C, H) or (..., C x H)")
    branches = x.reshape(*x.shape[:-1], num_branches, x.shape[-1] // num_branches) if num_branches else x
    C, H = branches.shape[-2:]
    wide = widen(branches)
    y: Array = run_standard("RMSNormalization", wide, np.ones(H, wide.dtype), axis=-1, epsilon=epsilon)
    if scale is not None:
        if scale.shape not in ((H,), (C, H), (C * H,)):
            raise InvalidArgument(f"scale has shape {scale.shape}; expected ({H},), ({C}, {H}) or ({C * H},)")
        y *= widen(scale).reshape((H,) if scale.shape == (H,) else (C, H))
    return y.reshape(x.shape).astype(x.dtype, copy=False)


def _check_embedding(ids: Array, segments: Array | None, mask: Array | None, tables: list[Array | None]) -> None:
    shapes = [x.shape for x in (ids, segments, mask) if x is not None]
    widths = {table.shape[-1] if table.ndim == 2 else -1 for table in tables if table is not None}
    if ids.ndim != 2 or len(set(shapes)) > 1 or len(widths) > 1 or -1 in widths:
        found = [None if table is None else table.shape for table in tables]
        raise InvalidArgument(
            f"input_ids, segment_ids and mask have shapes {shapes} and the embeddings {found}; expected equal (batch, steps), and "
            "(count, hidden) with one hidden size"
        )


def _look_up_scaled(name: str, ids: Array, table: Array, scale: Array, zero_point: Array) -> Array:
    return _scaled(_look_up(name, ids, table), scale, zero_point)


def _scaled(quantized: Array, scale: Array, zero_point: Array) -> Array:
    if scale.size != 1 or zero_point.size != 1:
        raise InvalidArgument(f"a scale has shape {scale.shape} and its zero point {zero_point.shape}; expected one element each")
    numbers: Array = run_standard("DequantizeLinear", quantized, scale.reshape(()), zero_point.reshape(()))
    return numbers


def _count_visible(mask: Array | None, B: int) -> Array:
    """Return how many ones each row of the mask has; zeros without one."""
    return np.zeros(B, np.int32) if mask is None else (mask == 1).sum(axis=1, dtype=np.int32)


def _is_used(call: Call, output: int) -> bool:
    return len(call.present) > output and call.present[output]


def _sum(x: Array, skip: Array, bias: Array | None) -> Array:
    """Return X + skip + bias in the computing type, a new array of the shape of x."""
    require_floats(x, skip, bias)
    if not _broadcasts(skip, x):
        raise InvalidArgument(f"input has shape {x.shape} and skip {skip.shape}; expected equal shapes, or a skip that broadcasts")
    total = np.asarray(widen(x) + widen(skip))
    if bias is not None:
        _check_affine("bias", bias, total)
        total += widen(bias)
    return total


def _broadcasts(skip: Array, x: Array) -> bool:
    return skip.ndim <= x.ndim and all(
        have in (1, want) for have, want in zip(reversed(skip.shape), reversed(x.shape), strict=False)
    )


def _check_affine(name: str, array: Array, x: Array) -> None:
    if array.shape != x.shape[-1:]:
        raise InvalidArgument(f"{name} has shape {array.shape}; expected {x.shape[-1:]}, the last dimension of the input {x.shape}")


def _layer_norm(total: Array, gamma: Array, beta: Array | None, epsilon: float) -> tuple[Array, Array, Array]:
    _check_affine("gamma", gamma, total)
    if beta is not None:
        _check_affine("beta", beta, total)
    wide = None if beta is None else widen(beta)
    y, mean, inverse = run_standard("LayerNormalization", total, widen(gamma), wide, outputs=3, axis=-1, epsilon=epsilon)
    return y, mean, inverse


def _inverse_rms(x: Array, axis: int, epsilon: float) -> Array:
    wide = widen(x)
    axes = tuple(range(axis % x.ndim, x.ndim))
    return np.asarray(1 / np.sqrt(np.mean(np.square(wide), axis=axes, keepdims=True) + wide.dtype.type(epsilon)))


def _look_up(name: str, ids: Array, table: Array) -> Array:
    """Return rows of `table` at `ids`, from its end where they are below 0, as Gather.

    Raises InvalidArgument for an id outside it.
    """
    if table.ndim != 2 or (ids.size and (ids.min() < -len(table) or ids.max() >= len(table))):
        raise InvalidArgument(f"{name} run from {ids.min()} to {ids.max()}, but their embedding has shape {table.shape}")
    rows: Array = table[ids]
    return rows
