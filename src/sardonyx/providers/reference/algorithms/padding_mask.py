"""The padding masks of com.microsoft's attention operators, whose shape says how they are meant.

(B,)           keys per batch element                    (B, T)           1 visible, 0 not
(2B,)          ends, then starts of the visible keys     (B, S, T)        the same for each query
(3B + 2,)      keys, then offsets that are not needed    (B, 1, M, M)     a corner of a square (Megatron)
                                                         (B, 1), (1, 1)   nothing: a placeholder
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["read_padding_mask"]


def read_padding_mask(
    mask: Array | None, sizes: tuple[int, int, int], filter_value: float, dtype: np.dtype[np.generic]
) -> Array | None:
    """Return the bias that `mask` adds to scores, broadcasting to (B, N, S, T) of `sizes` (B, S, T).

    It is `filter_value` where hidden; None where no mask hides anything.
    """
    if mask is None or mask.shape in ((sizes[0], 1), (1, 1)):
        return None
    visible = _find_visible(mask, *sizes)
    return np.where(visible, dtype.type(0), dtype.type(filter_value))


def _find_visible(mask: Array, B: int, S: int, T: int) -> Array:
    if mask.ndim == 1 and mask.size in (B, 2 * B, 3 * B + 2):
        ends = mask[:B, None]
        starts = mask[B : 2 * B, None] if mask.size == 2 * B else 0
        keys = np.arange(T)
        inside: Array = (keys >= starts) & (keys < ends)
        return inside[:, None, None, :]
    if mask.shape == (B, T):
        return mask[:, None, None, :] > 0
    if mask.shape == (B, S, T):
        return mask[:, None] > 0
    if mask.ndim == 4 and mask.shape[:2] == (B, 1) and min(mask.shape[2:]) >= T >= S:
        return mask[:, :, T - S : T, :T] > 0
    raise InvalidArgument(
        f"the mask has shape {mask.shape}; expected ({B},), ({2 * B},), ({3 * B + 2},), ({B}, {T}), ({B}, {S}, {T}) "
        f"or ({B}, 1, M, M) with M at least {T}"
    )
