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
    """Return `filled` with those that are `counted` in their true size: the rest of their memory is given back.

    They are the arrays that `with_room` made, which nobody else holds. The arena is uint8.
    """
    for output in counted:
        length = np.ndarray((1,), np.int64, arena, output.count_bytes).item()
        shape = (*output.most.shape[: output.axis], length, *output.most.shape[output.axis + 1 :])
        filled[output.number].resize(shape, refcheck=False)
    return list(filled)
