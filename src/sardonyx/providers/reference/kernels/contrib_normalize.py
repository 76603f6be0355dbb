"""Layer and root mean square normalization of com.microsoft, fused with residual sums and embeddings.

Dimension letters: B batch, S steps, C hidden size. Half types compute in float32 and are rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.kernels.precision import widen
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "embed_layer_normalization",
    "simplified_layer_normalization",
    "skip_layer_normalization",
    "skip_simplified_layer_normalization",
]

_MICROSOFT = "com.microsoft"


@kernel("SimplifiedLayerNormalization")
@kernel("SimplifiedLayerNormalization", domain=_MICROSOFT)
def simplified_layer_normalization(
    call: Call, x: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Array | tuple[Array, Array]:
    """Divide x by its root mean square over `axis` and those after it, times scale; the result has the type of scale.

    The second output is 1 / root mean square. ONNX Runtime registers the name in ai.onnx too. Source: its schema.
    """
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
) -> tuple[Any, ...]:
    """Normalize the rows of x + skip + bias; return the result, mean, 1 / deviation and that sum.

    X (B, S, C) or (S, C), to which `skip` broadcasts; gamma, beta and bias (C,). Source: com.microsoft SkipLayerNormalization.
    """
    total = _sum(x, skip, bias)
    y, mean, inverse = _layer_norm(total, gamma, beta, epsilon)
    return y.astype(x.dtype, copy=False), mean, inverse, total.astype(x.dtype, copy=False)


@kernel("SkipSimplifiedLayerNormalization", domain=_MICROSOFT)
def skip_simplified_layer_normalization(
    call: Call, x: Array, skip: Array, gamma: Array, bias: Array | None = None, *, epsilon: float = 1e-12
) -> tuple[Any, ...]:
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
    total = widen(_look_up("input_ids", input_ids, word_embedding)) + widen(_look_up("positions", positions, position_embedding))
    if segment_ids is not None and segment_embedding is not None:
        total += widen(_look_up("segment_ids", segment_ids, segment_embedding))
    y, _, _ = _layer_norm(total, gamma, beta, epsilon)
    counts = np.zeros(B, np.int32) if mask is None else (mask == 1).sum(axis=1, dtype=np.int32)
    return y.astype(word_embedding.dtype, copy=False), counts, total.astype(word_embedding.dtype, copy=False)


def _is_used(call: Call, output: int) -> bool:
    return len(call.present) > output and call.present[output]


def _sum(x: Array, skip: Array, bias: Array | None) -> Array:
    """X + skip + bias in the computing type, a new array of the shape of x."""
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
    """Rows of `table` at `ids`; raises InvalidArgument for an id outside it."""
    if table.ndim != 2 or (ids.size and (ids.min() < 0 or ids.max() >= len(table))):
        raise InvalidArgument(f"{name} run from {ids.min()} to {ids.max()}, but their embedding has shape {table.shape}")
    rows: Array = table[ids]
    return rows
