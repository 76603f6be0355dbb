"""A cache of keys and values as long as a window: what GroupQueryAttention keeps where sliding_window_cache is 1.

After a step that leaves T tokens in all, the first L(T) rows of the cache hold the last L(T) of them in order. With capacity C
and window W, G = C - W + 1 positions go at once, as soon as T exceeds C:

    L(T) = T                          up to C
    L(T) = T - G ceil((T - C) / G)    beyond

Source: the schema of com.microsoft GroupQueryAttention in ONNX Runtime 1.31.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.quantized_cache import CacheFormat
from sardonyx.providers.reference.algorithms.scaled_dot_product import Scoring, attend, block_outside_window

__all__ = ["WindowStep", "resident_count"]


def resident_count(total: int, capacity: int, window: int) -> int:
    """Return L(total): how many of `total` tokens the cache holds."""
    if total <= capacity:
        return total
    group = capacity - window + 1
    return total - group * -(-(total - capacity) // group)


@dataclasses.dataclass(frozen=True, slots=True)
class WindowStep:
    """One step over such a cache."""

    window: int
    """How many keys a query sees, its own included."""
    past: Array
    """(B,): tokens before the step."""
    total: Array
    """(B,): tokens after it."""
    key_format: CacheFormat
    """How keys are stored."""
    value_format: CacheFormat
    """How values are stored."""

    def run(self, q: Array, k: Array, v: Array, past_key: Array, past_value: Array, scoring: Scoring) -> tuple[Array, Array, Array]:
        """Attend with q (B, S, N, D), k and v (B, S, M, D); return values (B, S, N, D) and the caches (B, M, C, D) after it.

        Columns of `scoring.bias` stand for absolute positions. Rows of the caches behind the resident ones are zero.
        """
        capacity = past_key.shape[2] if past_key.ndim == 4 else 0
        if not 0 < self.window <= capacity:
            raise InvalidArgument(
                f"local_window_size is {self.window} and the cache holds {capacity} keys; sliding_window_cache needs a "
                "window of at least 1 that fits the cache"
            )
        values = np.zeros((*q.shape[:3], v.shape[3]), q.dtype)
        present_key, present_value = np.zeros_like(past_key), np.zeros_like(past_value)
        for b, (before, after) in enumerate(zip(self.past.tolist(), self.total.tolist(), strict=True)):
            held, kept = (resident_count(count, capacity, self.window) for count in (before, after))
            keys, stored_values = (
                np.concatenate([past[b, :, :held], form.encode(new[b, : after - before].swapaxes(0, 1))], axis=1)
                for past, form, new in ((past_key, self.key_format, k), (past_value, self.value_format, v))
            )
            bias = scoring.bias if scoring.bias is None else scoring.bias[b % len(scoring.bias), None, ..., before - held : after]
            blocked = block_outside_window(held, q.shape[1], keys.shape[1], self.window - 1, 0)
            values[b] = attend(
                q[b : b + 1].swapaxes(1, 2),
                self.key_format.decode(keys[None]),
                self.value_format.decode(stored_values[None]),
                dataclasses.replace(scoring, bias=bias, blocked=blocked),
            ).values[0]
            present_key[b, :, :kept] = keys[:, keys.shape[1] - kept :]
            present_value[b, :, :kept] = stored_values[:, keys.shape[1] - kept :]
        return values, present_key, present_value
