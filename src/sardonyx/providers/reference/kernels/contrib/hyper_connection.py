"""Hyper-connections of com.microsoft: C streams of features in place of one residual, mixed before and after each block.

Dimension letters: B batch, T sequence, C streams, H features of a stream. Everything computes in float32 and is rounded once.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet, require_floats, widen
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["engram_gate", "hyper_connection_post_mix", "hyper_connection_pre_mix"]

_MICROSOFT = "com.microsoft"


@kernel("HyperConnectionPreMix", domain=_MICROSOFT)
@quiet
def hyper_connection_pre_mix(
    call: Call, streams: Array, pre_mix: Array, *, num_branches: int = 0, reduction_scale: float = 1.0
) -> Array:
    """Return (…, H): reduction_scale times the sum over C of streams (…, C, H), each times its gate.

    With `num_branches` C the streams are (…, C x H). pre_mix is (…, C), (…, C, 1), (…, C, H) or, for such streams, (…, C x H).
    Source: com.microsoft HyperConnectionPreMix.
    """
    require_floats(streams, pre_mix)
    grouped = _grouped(streams, num_branches)
    gates = _gates(pre_mix, "pre_mix", grouped, may_be_flat=num_branches > 0)
    y: Array = np.float32(reduction_scale) * (grouped * gates).sum(axis=-2)
    return y.astype(streams.dtype, copy=False)


@kernel("HyperConnectionPostMix", domain=_MICROSOFT)
@quiet
def hyper_connection_post_mix(
    call: Call, streams: Array, block_output: Array, post_mix: Array, stream_mix: Array | None = None, *, num_branches: int = 0
) -> Array:
    """Return the streams mixed with one another by stream_mix, plus block_output (…, H) times the gate of each stream.

    Streams are (…, C, H) or, with `num_branches` C, (…, C x H), as is the result. post_mix is (…, C), (…, C, 1) or (…, C, H);
    stream_mix (…, C, C), from its row to its column, is the identity where it is left out. Source: com.microsoft
    HyperConnectionPostMix.
    """
    require_floats(streams, block_output, post_mix, stream_mix)
    grouped = _grouped(streams, num_branches)
    *leading, C, H = grouped.shape
    if block_output.shape != (*leading, H):
        raise InvalidArgument(f"block_output has shape {block_output.shape}; expected {(*leading, H)}, that of one stream")
    gates = _gates(post_mix, "post_mix", grouped, may_be_flat=False)
    mixed = grouped
    if stream_mix is not None:
        if stream_mix.shape != (*leading, C, C):
            raise InvalidArgument(f"stream_mix has shape {stream_mix.shape}; expected {(*leading, C, C)}, a matrix of the streams")
        mixed = _mix(grouped, widen(stream_mix))
    y: Array = mixed + gates * widen(block_output)[..., None, :]
    return y.reshape(streams.shape).astype(streams.dtype, copy=False)


def _mix(streams: Array, matrix: Array) -> Array:
    """Return for each column of the matrix (…, C, C) the sum of the streams (…, C, H), weighted by it."""
    mixed = np.zeros(streams.shape, np.float32)
    for c in range(streams.shape[-2]):
        mixed += matrix[..., c, :, None] * streams[..., c, None, :]
    return mixed


def _grouped(streams: Array, num_branches: int) -> Array:
    """Return the streams as (…, C, H) of float32; neither C nor H is 0."""
    shape = streams.shape
    if num_branches and (num_branches < 0 or not shape or shape[-1] % num_branches):
        raise InvalidArgument(
            f"num_branches is {num_branches} and streams have shape {shape}; expected a positive number that divides the last "
            "size, or 0 for streams (…, C, H)"
        )
    grouped = (*shape[:-1], num_branches, shape[-1] // num_branches) if num_branches else shape
    if len(grouped) < 2 or 0 in grouped[-2:]:
        raise InvalidArgument(f"streams have shape {shape}; expected (…, C, H) with at least one stream of at least one feature")
    return widen(streams).reshape(grouped)


def _gates(gates: Array, name: str, streams: Array, *, may_be_flat: bool) -> Array:
    """Return the gates of streams (…, C, H) as (…, C, 1) or (…, C, H) of float32."""
    *leading, C, H = streams.shape
    possible = [(*leading, C), (*leading, C, 1), (*leading, C, H), *([(*leading, C * H)] if may_be_flat else [])]
    if gates.shape not in possible:
        raise InvalidArgument(f"{name} has shape {gates.shape}; expected {' or '.join(map(str, dict.fromkeys(possible)))}")
    width = gates.shape[-1] if gates.ndim == streams.ndim else gates.shape[-1] // C
    return widen(gates).reshape(*leading, C, width)


@kernel("EngramGate", domain=_MICROSOFT)
@quiet
def engram_gate(
    call: Call,
    key: Array,
    query: Array,
    value: Array,
    key_norm_scale: Array,
    query_norm_scale: Array,
    conv_norm_scale: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> tuple[Array, ...]:
    """Return value (B, T, H) times a gate for each of C streams, and that normalized and times conv_norm_scale.

    Key and query are (B, T, C, H), the scales (C, H), the results (B, T, C, H). The gate is the sigmoid of sign(d) sqrt(max(|d|,
    1e-6)), where d is the product of the normalized query and key over sqrt(H); each is divided by its root mean square, of
    which `epsilon` is part. Source: com.microsoft EngramGate.
    """
    given = {"key_norm_scale": key_norm_scale, "query_norm_scale": query_norm_scale, "conv_norm_scale": conv_norm_scale}
    _check_engram(key, query, value, {name: scale for name, scale in given.items() if scale is not None})
    if conv_norm_scale is None and len(call.present) > 1 and call.present[1]:
        raise InvalidArgument("gated_value_normed is asked for without conv_norm_scale; give that input, or leave the output out")
    check_output_size(key.shape, 4)
    product = _normalize(key, key_norm_scale, epsilon) * _normalize(query, query_norm_scale, epsilon)
    d = product.sum(axis=-1, keepdims=True) / np.sqrt(np.float32(max(key.shape[-1], 1)))
    root = np.sign(d) * np.sqrt(np.maximum(np.abs(d), np.float32(1e-6)))
    output = (widen(value)[:, :, None] / (1 + np.exp(-root))).astype(key.dtype, copy=False)
    if conv_norm_scale is None:
        return (output,)
    return output, _normalize(output, conv_norm_scale, epsilon).astype(key.dtype, copy=False)


def _check_engram(key: Array, query: Array, value: Array, scales: dict[str, Array]) -> None:
    require_floats(key, query, value, *scales.values())
    if key.ndim != 4 or query.shape != key.shape or value.shape != (*key.shape[:2], key.shape[3]):
        raise InvalidArgument(
            f"key, query and value have shapes {key.shape}, {query.shape} and {value.shape}; expected (B, T, C, H) twice "
            "and (B, T, H)"
        )
    for name, scale in scales.items():
        if scale.shape != key.shape[2:]:
            raise InvalidArgument(f"{name} has shape {scale.shape}; expected {key.shape[2:]}, the streams and features of key")


def _normalize(x: Array, scale: Array, epsilon: float) -> Array:
    """Return X over its root mean square along the last axis, times the scale."""
    wide = widen(x)
    mean = np.square(wide).sum(axis=-1, keepdims=True) / np.float32(max(wide.shape[-1], 1))
    normalized: Array = wide / np.sqrt(mean + np.float32(epsilon)) * widen(scale)
    return normalized
