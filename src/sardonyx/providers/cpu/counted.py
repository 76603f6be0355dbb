"""Outputs whose size only the run shows: kernels write them densely into memory for the most, which is then cut to size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.provider import CountedOutput

__all__ = ["cut_to_size", "with_room"]


def with_room(counted: Sequence[CountedOutput], outputs: Sequence[OnnxValue]) -> list[OnnxValue]:
    """Return `outputs` with new arrays of the greatest shapes for those that are `counted`."""
    filled = list(outputs)
    for output in counted:
        filled[output.number] = np.empty(output.most.shape, output.most.dtype.numpy)
    return filled


def cut_to_size(counted: Sequence[CountedOutput], filled: Sequence[OnnxValue], arena: Array) -> list[OnnxValue]:
    """Return `filled` with those that are `counted` in their true size, which are views where they fill most of their memory.

    Others are copied, so that the memory is free again. The arena is uint8.
    """
    results = list(filled)
    for output in counted:
        length = np.ndarray((1,), np.int64, arena, output.count_bytes).item()
        shape = (*output.most.shape[: output.axis], length, *output.most.shape[output.axis + 1 :])
        whole = filled[output.number]
        part = np.ndarray(shape, whole.dtype, whole)
        results[output.number] = part if 2 * part.size >= whole.size else part.copy()
    return results
