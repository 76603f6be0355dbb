"""Element-wise work in blocks that stay in cache while several passes go over them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.cancellation import checked
from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.precision import compute_type

__all__ = ["BLOCK_ELEMENTS", "ROW_BLOCK_ELEMENTS", "map_blocks", "row_blocks"]

BLOCK_ELEMENTS = 16_384
"""Elements per block: three float32 buffers of this length (192 KiB) fit a second-level cache."""

ROW_BLOCK_ELEMENTS = 65_536
"""Elements per block of whole rows, where some passes cost time per row: two float32 buffers take 512 KiB."""


def row_blocks(x: Array) -> list[slice]:
    """Return slices of the first axis of `x` that hold about a row block each; none where `x` has no element."""
    if x.size == 0:
        return []
    step = max(1, ROW_BLOCK_ELEMENTS // (x.size // len(x)))
    return [slice(start, start + step) for start in range(0, len(x), step)]


def map_blocks(body: Callable[[Array, Array], None], x: Array) -> Array:
    """Return the new array that `body(x_block, out_block)` fills, of the type and shape of `x`, dense.

    `body` sees blocks in the compute type of `x`: narrow floats are widened block by block and rounded once. It may write
    `out_block` as often as it likes, and must not write `x_block`.
    """
    wide = compute_type(x.dtype)
    out = np.empty(x.shape, x.dtype)
    if wide == x.dtype and x.size <= BLOCK_ELEMENTS:
        body(x, out)
        return out
    source, target = x.reshape(-1), out.reshape(-1)
    buffer = None if wide == x.dtype else np.empty(min(x.size, BLOCK_ELEMENTS), wide)
    for start in checked(range(0, x.size, BLOCK_ELEMENTS)):
        stop = min(start + BLOCK_ELEMENTS, x.size)
        if buffer is None:
            body(source[start:stop], target[start:stop])
            continue
        body(source[start:stop].astype(wide), buffer[: stop - start])
        target[start:stop] = buffer[: stop - start]
    return out
