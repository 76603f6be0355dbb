"""Outputs whose size only the run shows: kernels write them into the arena, which has room for the most; here they are cut."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType, OnnxValue

__all__ = ["CountedOutput", "with_counted"]


@dataclasses.dataclass(frozen=True, slots=True)
class CountedOutput:
    """Where an output of a bound program lies in the arena."""

    number: int
    """Which output it is."""
    dtype: DataType
    """Its element type."""
    most: tuple[int, ...]
    """The greatest shape that it may have."""
    axis: int
    """The dimension whose length the run shows."""
    offset_bytes: int
    """Where its elements begin."""
    count_bytes: int
    """Where the int64 is that says how long that dimension is."""


def with_counted(counted: Sequence[CountedOutput], outputs: Sequence[OnnxValue], arena: Array) -> list[OnnxValue]:
    """Return `outputs` with those that are `counted` copied from the arena, which is uint8, each in its true size."""
    results = list(outputs)
    for place in counted:
        length = np.ndarray((1,), np.int64, arena, place.count_bytes).item()
        shape = (*place.most[: place.axis], length, *place.most[place.axis + 1 :])
        results[place.number] = np.ndarray(shape, place.dtype.numpy, arena, place.offset_bytes).copy()
    return results
