"""Scaled dot-product attention on four-dimensional arrays, the core of every attention operator.

    scores = scale x Q K^T ─ softcap ─ + bias ─ blocked: -inf ─ softmax (with a sink) ─► P, then P V

Dimension letters: B batch, N query heads, M key and value heads (N a multiple of M: a group of query heads shares one),
S queries, T keys, D head size. Where the scores would not fit in cache they are made block by block, over heads and then over
queries.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = [
    "Attended",
    "ScoreOutput",
    "Scoring",
    "attend",
    "block_outside_window",
    "check_heads",
    "expect_broadcast",
    "softmax_in_place",
]

_BLOCK_BYTES = 1 << 20
"""Scores of one block, so that the passes over it stay within a usual second-level cache."""


class ScoreOutput(enum.IntEnum):
    """At which stage the scores are handed out; the numbers are those of Attention's qk_matmul_output_mode."""

    NONE = -1
    RAW = 0
    SOFTCAPPED = 1
    BIASED = 2
    PROBABILITIES = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Scoring:
    """How scores are made from Q K^T."""

    scale: float
    """Factor of Q K^T."""
    softcap: float = 0.0
    """Where positive: scores become softcap x tanh(scores / softcap) before bias and mask."""
    bias: Array | None = None
    """Added to the scores; broadcast to (B, N, S, T)."""
    blocked: Array | None = None
    """Boolean, True where a query must not see a key; broadcast to (B, N, S, T)."""
    sink: Array | None = None
    """(N,): a further logit per head that takes part in the softmax and has no value."""
    precision: np.dtype[np.generic] | None = None
    """The type that scores and probabilities are rounded to around the softmax, None for the computing type."""
    stage: np.dtype[np.generic] | None = None
    """A type that the result of every stage is rounded to, for operators that are defined by their steps."""
    output: ScoreOutput = ScoreOutput.NONE
    """Which stage `Attended.scores` holds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Attended:
    """The result of `attend`."""

    values: Array
    """(B, S, N, D of V), contiguous: the layout that merges heads without a copy."""
    scores: Array | None
    """(B, N, S, T) at the stage asked for."""


def attend(query: Array, key: Array, value: Array, scoring: Scoring) -> Attended:
    """Attend with `query` (B, N, S, D), `key` (B, M, T, D) and `value` (B, M, T, Dv), all float32 or all float64.

    A query for which every key is blocked or has bias -inf gives a row of zeros.
    """
    _check_operands(query, key, value, scoring.sink)
    B, N, S, D = query.shape
    M, T, value_size = key.shape[1], key.shape[2], value.shape[3]
    group = N // M
    scaled = np.multiply(query, query.dtype.type(scoring.scale), order="C").reshape(B, M, group, S, D)
    bias = _spread(scoring.bias, (B, M, group, S, T), "the bias")
    blocked = _spread(scoring.blocked, (B, M, group, S, T), "the mask")
    sink = None if scoring.sink is None else scoring.sink.astype(query.dtype, copy=False).reshape(M, group, 1, 1)
    values = np.empty((B, S, N, value_size), query.dtype)
    out = values.reshape(B, S, M, group, value_size).transpose(0, 2, 3, 1, 4)
    scores = None if scoring.output is ScoreOutput.NONE else np.empty((B, N, S, T), query.dtype)
    tap = None if scores is None else scores.reshape(B, M, group, S, T)
    key_t = key.swapaxes(2, 3)
    with np.errstate(over="ignore", invalid="ignore"):
        for b, m, s in _blocks(B, M, group, S, T, query.dtype.itemsize):
            check_cancelled()
            _attend_block(
                scaled[b, m, :, s],
                key_t[b, m],
                value[b, m],
                None if bias is None else bias[b, m, :, s],
                None if blocked is None else blocked[b, m, :, s],
                None if sink is None else sink[m],
                scoring,
                out[b, m, :, s],
                None if tap is None else tap[b, m, :, s],
            )
    return Attended(values, scores)


def expect_broadcast(what: str, array: Array, shape: tuple[int, ...]) -> None:
    """Raise InvalidArgument unless `array` broadcasts to `shape`."""
    if array.ndim > len(shape) or any(
        have not in (1, want) for have, want in zip(reversed(array.shape), reversed(shape), strict=False)
    ):
        raise InvalidArgument(f"{what} has shape {array.shape}; expected one that broadcasts to {shape}")


def _check_operands(query: Array, key: Array, value: Array, sink: Array | None) -> None:
    if not query.ndim == key.ndim == value.ndim == 4 or (
        (key.shape[0], key.shape[3]) != (query.shape[0], query.shape[3]) or value.shape[:3] != key.shape[:3]
    ):
        raise InvalidArgument(
            f"queries {query.shape}, keys {key.shape} and values {value.shape} do not fit, read as (batch, heads, sequence, "
            "head size): batches must be equal, keys and values equal in heads and sequence, queries and keys in head size"
        )
    check_heads(query.shape[1], key.shape[1])
    if sink is not None and sink.shape != (query.shape[1],):
        raise InvalidArgument(f"the sink has shape {sink.shape}; expected ({query.shape[1]},), one for each head")


def check_heads(query_heads: int, key_heads: int) -> None:
    """Raise InvalidArgument unless each key head serves a whole number of query heads."""
    if query_heads < 1 or key_heads < 1 or query_heads % key_heads:
        raise InvalidArgument(
            f"there are {query_heads} query heads and {key_heads} key and value heads; expected a positive multiple of the latter"
        )


def block_outside_window(offset: int | Array, S: int, T: int, left: int, right: int) -> Array:
    """Return True where key j lies outside [p - left, p + right] for the query at p = offset + i; a negative bound is open.

    The result is (S, T), or (B, 1, S, T) for an `offset` per batch element (B,).
    """
    distance = np.arange(T) - np.arange(S)[:, None]
    per_batch = np.reshape(offset, (-1, 1, 1, 1)) if np.ndim(offset) else offset
    distance = distance - per_batch
    blocked: Array = np.zeros(distance.shape, np.bool_)
    if left >= 0:
        blocked |= distance < -left
    if right >= 0:
        blocked |= distance > right
    return blocked


def softmax_in_place(scores: Array, sink: Array | None = None) -> None:
    """Replace `scores` by its softmax over the last axis; a row of -inf becomes zeros."""
    total = _exponentiate(scores, sink)
    scores /= total


def _exponentiate(scores: Array, sink: Array | None) -> Array:
    """Replace `scores` by exp(scores - row maximum) and return the row sums, 1 for rows of -inf alone."""
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        top = np.maximum(top, sink)
    top[np.isneginf(top)] = 0
    scores -= top
    np.exp(scores, out=scores)
    total: Array = scores.sum(axis=-1, keepdims=True)
    if sink is not None:
        total += np.exp(sink - top)
    total[total == 0] = 1
    return total


def _attend_block(
    query: Array,
    key_t: Array,
    value: Array,
    bias: Array | None,
    blocked: Array | None,
    sink: Array | None,
    scoring: Scoring,
    out: Array,
    tap: Array | None,
) -> None:
    """Fill `out` (b, m, group, s, Dv) and `tap` (b, m, group, s, T) from `query` (b, m, group, s, D)."""
    b, m, group, s, D = query.shape
    T = key_t.shape[-1]
    scores = np.matmul(query.reshape(b, m, group * s, D), key_t).reshape(b, m, group, s, T)
    _round(scores, scoring.stage)
    _keep(ScoreOutput.RAW, scoring, scores, tap)
    if scoring.softcap > 0:
        scores /= scoring.softcap
        np.tanh(scores, out=scores)
        scores *= scoring.softcap
        _round(scores, scoring.stage)
    _keep(ScoreOutput.SOFTCAPPED, scoring, scores, tap)
    if bias is not None:
        scores += bias
    if blocked is not None:
        np.copyto(scores, -np.inf, where=blocked)
    _round(scores, scoring.stage)
    _keep(ScoreOutput.BIASED, scoring, scores, tap)
    total = None
    if scoring.precision is not None and scoring.precision != scores.dtype:
        scores = _softmax_as(scores, sink, scoring.precision)
        _round(scores, scoring.stage)
    elif scoring.stage is not None:
        scores = _softmax_by_stages(scores, scoring.stage)
    elif scoring.output is ScoreOutput.PROBABILITIES or value.shape[-1] > T:
        softmax_in_place(scores, sink)
    else:
        total = _exponentiate(scores, sink)
    _keep(ScoreOutput.PROBABILITIES, scoring, scores, tap)
    if group == 1:
        np.matmul(scores[:, :, 0], value, out=out[:, :, 0])
    else:
        out[...] = np.matmul(scores.reshape(b, m, group * s, T), value).reshape(out.shape)
    if total is not None:
        out /= total


def _softmax_as(scores: Array, sink: Array | None, precision: np.dtype[np.generic]) -> Array:
    """Return Softmax of the scores rounded to `precision`, rounded to it again; sums run in float32 at least."""
    wide = scores.astype(precision).astype(np.float64 if precision == np.float64 else np.float32)
    softmax_in_place(wide, sink)
    return wide.astype(precision, copy=False).astype(scores.dtype)


def _softmax_by_stages(scores: Array, stage: np.dtype[np.generic]) -> Array:
    """Return Softmax of scores that are exact in `stage`, each step of it done in that type."""
    narrow = scores.astype(stage)
    top = narrow.max(axis=-1, keepdims=True, initial=-np.inf)
    top[top == -np.inf] = 0
    narrow = np.exp(narrow - top)
    total = narrow.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    probabilities: Array = narrow / total
    return probabilities.astype(scores.dtype)


def _round(scores: Array, stage: np.dtype[np.generic] | None) -> None:
    if stage is not None:
        scores[...] = scores.astype(stage)


def _keep(stage: ScoreOutput, scoring: Scoring, scores: Array, tap: Array | None) -> None:
    if tap is not None and scoring.output is stage:
        tap[...] = scores


def _spread(array: Array | None, shape: tuple[int, int, int, int, int], what: str) -> Array | None:
    """Return a view of `array`, of rank 4 at most, broadcast to (B, M, group, S, T)."""
    if array is None:
        return None
    B, M, group, S, T = shape
    expect_broadcast(what, array, (B, M * group, S, T))
    full = array.reshape((1,) * (4 - array.ndim) + array.shape)
    heads = (1, 1) if full.shape[1] == 1 else (M, group)
    return np.broadcast_to(full.reshape(full.shape[0], *heads, *full.shape[2:]), shape)


def _blocks(B: int, M: int, group: int, S: int, T: int, itemsize: int) -> Iterator[tuple[slice, slice, slice]]:
    """Yield slices of batch, key heads and queries whose scores take about _BLOCK_BYTES; all at once where that is enough."""
    row_bytes = max(1, group * T * itemsize)
    if B * M * S * row_bytes <= 2 * _BLOCK_BYTES:
        yield slice(0, B), slice(0, M), slice(0, S)
        return
    rows = max(1, min(S, _BLOCK_BYTES // row_bytes))
    heads = max(1, _BLOCK_BYTES // (S * row_bytes)) if rows == S else 1
    for b in range(B):
        for m in range(0, M, heads):
            for s in range(0, S, rows):
                yield slice(b, b + 1), slice(m, m + heads), slice(s, s + rows)
