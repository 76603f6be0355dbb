"""PagedAttention of com.microsoft: sequences of different lengths side by side, with keys and values in blocks of a shared cache.

Dimension letters: N query heads, M key and value heads, D head size, L block length. Tokens of all sequences lie one behind
the other: query (tokens, N x D).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.algorithms.rotary import look_up, rotate
from sardonyx.providers.reference.algorithms.scaled_dot_product import Scoring, attend, block_outside_window, check_heads
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["paged_attention"]

_NARROW: dict[str, object] = {
    "int8": np.int8,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "int4": ml_dtypes.int4,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}
"""Logical type of a quantized cache -> NumPy's or that of ml_dtypes. Those of 4 bits lie two in a byte."""


@kernel("PagedAttention", domain="com.microsoft")
def paged_attention(
    call: Call,
    query: Array,
    key: Array | None,
    value: Array | None,
    key_cache: Array,
    value_cache: Array | None,
    cumulative_sequence_length: Array,
    past_seqlens: Array,
    block_table: Array,
    cos_cache: Array | None = None,
    sin_cache: Array | None = None,
    slot_mapping: Array | None = None,
    head_sink: Array | None = None,
    q_norm_weight: Array | None = None,
    k_norm_weight: Array | None = None,
    k_scale: Array | None = None,
    v_scale: Array | None = None,
    attention_metadata: Array | None = None,
    *,
    do_rotary: int = 0,
    is_causal: int = 1,
    k_cache_dtype: str = "",
    kv_cache_layout: str = "SEPARATE",
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    qk_norm_epsilon: float = 1e-6,
    rotary_interleaved: int = 0,
    rotary_offset: int = 0,
    scale: float = 0.0,
    softcap: float = 0.0,
    v_cache_dtype: str = "",
    v_head_size: int = 0,
) -> tuple[Array, ...]:
    """Write the new keys and values to the blocks of the caches, attend, and return Y (tokens, N x V's size) and the caches.

    Token t of sequence b lies at position past_seqlens[b] + t, in block block_table[b, position / L] at position mod L, or where
    `slot_mapping` says, -1 for nowhere. Caches are (blocks, L, M, D); with the layout LATENT there is one, whose first v_head_size
    channels are the values. A cache in a narrow type holds numbers divided by its scale, of all or by head and channel.
    Source: com.microsoft PagedAttention, whose attention_metadata only chooses among kernels.
    """
    check_heads(num_heads, kv_num_heads)
    is_latent = kv_cache_layout == "LATENT"
    if kv_cache_layout not in ("SEPARATE", "LATENT") or is_latent != (value_cache is None) or (is_latent and kv_num_heads != 1):
        raise InvalidArgument(
            f"kv_cache_layout is {kv_cache_layout!r}, with {'no' if value_cache is None else 'a'} value_cache and {kv_num_heads} "
            "key heads; expected SEPARATE with one, or LATENT without and one head"
        )
    q, k, v = _split(query, key, value, num_heads, kv_num_heads, is_latent=is_latent)
    batch = _Batch.of(cumulative_sequence_length, past_seqlens, block_table, len(q), key_cache)
    if q_norm_weight is not None and k_norm_weight is not None:
        q, k = (_normalize(x, weight, qk_norm_epsilon) for x, weight in ((q, q_norm_weight), (k, k_norm_weight)))
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise InvalidArgument("do_rotary is 1, but cos_cache or sin_cache is not given")
        tables = [look_up(table, batch.positions, q.dtype)[:, None] for table in (cos_cache, sin_cache)]
        q, k = (_rotate(x, tables, rotary_offset, bool(rotary_interleaved)) for x in (q, k))
    slots = batch.slots if slot_mapping is None else slot_mapping
    keys = _Cache.of(key_cache, k_cache_dtype, k_scale)
    written = [keys.write(k, slots)]
    values = keys
    if value_cache is not None:
        values = _Cache.of(value_cache, v_cache_dtype, v_scale)
        written.append(values.write(v, slots))
    D = q.shape[2]
    scoring = Scoring(scale=scale or 1 / math.sqrt(max(D, 1)), softcap=softcap, sink=head_sink)
    parts = []
    for sequence, tokens in enumerate(batch.tokens):
        total = batch.totals[sequence]
        read = batch.read_slots(sequence)
        past = total - (tokens.stop - tokens.start)
        right = 0 if is_causal else total
        left = local_window_size - 1 if local_window_size > 0 else -1
        hidden = block_outside_window(past, tokens.stop - tokens.start, total, left, right)
        key_rows = keys.read(written[0], read)
        value_rows = key_rows[..., : v_head_size or D] if is_latent else values.read(written[-1], read)
        queries, all_keys, all_values = (rows.swapaxes(0, 1)[None] for rows in (q[tokens], key_rows, value_rows))
        parts.append(attend(queries, all_keys, all_values, dataclasses.replace(scoring, blocked=hidden)).values[0])
    y = np.concatenate(parts) if parts else np.zeros((0, num_heads, D), q.dtype)
    return y.reshape(len(q), math.prod(y.shape[1:])).astype(query.dtype, copy=False), *written


@dataclasses.dataclass(frozen=True, slots=True)
class _Batch:
    """Which tokens belong to which sequence, and where their keys lie."""

    tokens: tuple[slice, ...]
    """For each sequence its new tokens."""
    totals: tuple[int, ...]
    """For each sequence how many keys it has after this step."""
    table: Array
    """(sequences, blocks): the block of each stretch of positions."""
    length: int
    """Positions in a block."""

    @classmethod
    def of(cls, cumulative: Array, past: Array, table: Array, count: int, cache: Array) -> _Batch:
        """Read and check the inputs that describe the batch."""
        if cache.ndim != 4 or table.ndim != 2 or past.shape != table.shape[:1] or cumulative.shape != (len(past) + 1,):
            raise InvalidArgument(
                f"cumulative_sequence_length has shape {cumulative.shape}, past_seqlens {past.shape}, block_table {table.shape} "
                f"and key_cache {cache.shape}; expected (batch + 1,), (batch,), (batch, blocks) and (blocks, length, heads, size)"
            )
        ends = [int(end) for end in cumulative]
        if ends[0] != 0 or ends[-1] != count or ends != sorted(ends) or (past < 0).any():
            raise InvalidArgument(f"cumulative_sequence_length is {ends} and past_seqlens {past.tolist()} for {count} tokens")
        tokens = tuple(slice(start, end) for start, end in itertools.pairwise(ends))
        totals = tuple(int(before) + part.stop - part.start for before, part in zip(past, tokens, strict=True))
        length = cache.shape[1]
        if max(totals, default=0) > table.shape[1] * length:
            raise InvalidArgument(f"a sequence has {max(totals)} keys; {table.shape[1]} blocks of {length} do not hold them")
        used = [table[row, : -(-total // max(length, 1))] for row, total in enumerate(totals)]
        if any(((row < 0) | (row >= len(cache))).any() for row in used):
            raise InvalidArgument(f"block_table names a block outside the {len(cache)} of the cache: {table.tolist()}")
        return cls(tokens, totals, table, length)

    def read_slots(self, sequence: int) -> Array:
        """Return the slots of all keys of a sequence, in order."""
        return self._slots(sequence, np.arange(self.totals[sequence]))

    def _slots(self, sequence: int, positions: Array) -> Array:
        blocks = self.table[sequence, positions // self.length].astype(np.int64)
        slots: Array = blocks * self.length + positions % self.length
        return slots

    def _new(self) -> list[tuple[int, Array]]:
        counts = [part.stop - part.start for part in self.tokens]
        return [(row, np.arange(total - new, total)) for row, (total, new) in enumerate(zip(self.totals, counts, strict=True))]

    @property
    def positions(self) -> Array:
        """The position of every token in its sequence."""
        return np.concatenate([np.zeros(0, np.int64), *(positions for _, positions in self._new())])

    @property
    def slots(self) -> Array:
        """The slot of every token."""
        return np.concatenate([np.zeros(0, np.int64), *(self._slots(row, positions) for row, positions in self._new())])


@dataclasses.dataclass(frozen=True, slots=True)
class _Cache:
    """A cache (blocks, L, M, D) and how its elements are stored."""

    stored: Array
    """What is stored."""
    narrow: Any
    """The logical type of a quantized cache, None for one that holds floats, as in `_NARROW`."""
    scale: Array
    """(1, 1), or (M, D)."""

    @classmethod
    def of(cls, stored: Array, name: str, scale: Array | None) -> _Cache:
        """Find the format that the tensor's type and an attribute tell."""
        if scale is None:
            return cls(stored, None, np.ones((1, 1), np.float32))
        logical = name or ("int8" if stored.dtype == np.int8 else "float8e4m3fn" if stored.dtype != np.uint8 else "")
        if logical not in _NARROW:
            raise InvalidArgument(f"a cache of {stored.dtype} has a scale and holds {name!r}; expected one of {', '.join(_NARROW)}")
        by_channel = scale.reshape(scale.shape[0], -1) if scale.ndim == 3 else scale.reshape(1, -1)[:, :1]
        return cls(stored, _NARROW[logical], by_channel.astype(np.float32))

    @property
    def _is_packed(self) -> bool:
        return self.narrow is not None and self.stored.dtype == np.uint8

    def write(self, new: Array, slots: Array) -> Array:
        """Return a copy of the cache with `new` (tokens, M, D) at the slots; -1 stands for nowhere."""
        written: Array = self.stored.copy()
        flat = written.reshape(-1, *written.shape[2:])
        slots = slots.reshape(-1)
        if len(slots) != len(new) or (slots >= len(flat)).any():
            raise InvalidArgument(f"slot_mapping has {len(slots)} slots up to {slots.max(initial=-1)} for {len(new)} tokens")
        codes = self._encode(new)
        if codes.shape[1:] != flat.shape[1:]:
            raise InvalidArgument(f"a token has shape {codes.shape[1:]} as stored; the cache has {flat.shape[1:]}")
        flat[slots[slots >= 0]] = codes[slots >= 0]
        return written

    def read(self, written: Array, slots: Array) -> Array:
        """Return the numbers (keys, M, D) at the slots."""
        rows = written.reshape(-1, *written.shape[2:])[slots]
        if self.narrow is None:
            return widen(rows)
        if self._is_packed:
            pairs = np.stack([rows & 15, rows >> 4], axis=-1).reshape(*rows.shape[:2], 2 * rows.shape[2])
            rows = _signed(pairs) if self.narrow is ml_dtypes.int4 else pairs.view(self.narrow)
        numbers: Array = rows.astype(np.float32) * self.scale
        return numbers

    def _encode(self, new: Array) -> Array:
        if self.narrow is None:
            return new.astype(self.stored.dtype, copy=False)
        is_whole = self.narrow in (np.int8, ml_dtypes.int4)
        limits = ml_dtypes.iinfo(self.narrow) if is_whole else ml_dtypes.finfo(self.narrow)
        scaled = np.clip(new / self.scale, float(limits.min), float(limits.max))
        codes = (np.rint(scaled) if is_whole else scaled).astype(self.narrow)
        if not self._is_packed:
            return codes
        nibbles = codes.view(np.uint8) & 15
        if nibbles.shape[2] % 2:
            nibbles = np.pad(nibbles, [(0, 0), (0, 0), (0, 1)])
        return nibbles[..., ::2] | nibbles[..., 1::2] << 4


def _signed(nibbles: Array) -> Array:
    """Return four bits as numbers from -8 to 7."""
    return (nibbles ^ 8).astype(np.int8) - np.int8(8)


def _split(query: Array, key: Array | None, value: Array | None, N: int, M: int, *, is_latent: bool) -> tuple[Array, Array, Array]:
    """Return Q (tokens, N, D), K and V (tokens, M, D); with a latent cache the values are not used."""
    if query.ndim != 2:
        raise InvalidArgument(f"query has shape {query.shape}; expected (tokens, hidden)")
    whole = widen(query)
    if key is None:
        heads = N + (1 if is_latent else 2) * M
        if query.shape[1] % heads:
            raise InvalidArgument(f"the packed query has shape {query.shape}; expected {heads} heads in its last dimension")
        D = query.shape[1] // heads
        parts = whole.reshape(len(query), heads, D)
        return parts[:, :N], parts[:, N : N + M], parts[:, -M:]
    if query.shape[1] % N or key.shape[:1] != query.shape[:1] or key.ndim != 2 or key.shape[1] % M:
        raise InvalidArgument(f"query has shape {query.shape} and key {key.shape}; expected (tokens, {N} x D), (tokens, {M} x D)")
    k = widen(key).reshape(len(key), M, key.shape[1] // M)
    if value is None:
        return whole.reshape(len(query), N, query.shape[1] // N), k, k
    if value.ndim != 2 or len(value) != len(query) or value.shape[1] % M:
        raise InvalidArgument(f"value has shape {value.shape}; expected (tokens, {M} x D)")
    return whole.reshape(len(query), N, query.shape[1] // N), k, widen(value).reshape(len(value), M, value.shape[1] // M)


def _normalize(x: Array, weight: Array, epsilon: float) -> Array:
    """Divide each head by its root mean square, times the weight."""
    scaled: Array = x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(epsilon))
    return scaled * widen(weight)


def _rotate(x: Array, tables: list[Array], offset: int, interleaved: bool) -> Array:
    """Rotate the channels from `offset` on, as many as the tables hold angles for."""
    width = 2 * tables[0].shape[-1]
    if offset + width > x.shape[2]:
        raise InvalidArgument(f"rotary_offset is {offset} and the caches rotate {width} channels; the head size is {x.shape[2]}")
    rotated = rotate(x[..., offset : offset + width], tables[0], tables[1], interleaved=interleaved)
    return np.concatenate([x[..., :offset], rotated, x[..., offset + width :]], axis=-1)
