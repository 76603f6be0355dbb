"""What `TensorQuantOverrides` says of single tensors.

{"x": [{"quant_type": QuantType.QUInt16}], "y": [{"rmin": 0.0, "rmax": 6.0}], "w": [{"axis": 0, "symmetric": True}]}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Model
from sardonyx.quantization.grids import Grid, grid_of_range
from sardonyx.quantization.kinds import LIMITS, QuantType
from sardonyx.spelling import nearest

__all__ = ["Override", "hint", "read_overrides"]

_KEYS = ("axis", "quant_type", "reduce_range", "rmax", "rmin", "scale", "symmetric", "zero_point")


@dataclasses.dataclass(frozen=True, slots=True)
class Override:
    """What is said of one tensor; None for what is not."""

    dtype: DataType | None = None
    """The type of its quantized numbers."""
    scale: float | None = None
    """Its scale, with a zero point."""
    zero_point: int | None = None
    """Its zero point."""
    low: float | None = None
    """The least value of its range."""
    high: float | None = None
    """The greatest."""
    symmetric: bool | None = None
    """Whether the range has 0 in its middle."""
    reduced: bool | None = None
    """Whether a bit is left unused."""
    axis: int | None = None
    """Of weights, the axis that scales go along."""

    def grid(self, dtype: DataType, low: Array, high: Array, *, symmetric: bool, least_range: float | None) -> Grid:
        """Return the grid of a tensor of this range, where nothing else is said; raises ValueError where it is not finite."""
        if self.scale is not None:
            zero = np.array(self.zero_point or 0, np.int64).astype(np.int32).astype(dtype.numpy)
            return Grid(dtype, np.array(self.scale, high.dtype), zero)
        low = low if self.low is None else np.array(self.low, low.dtype)
        high = high if self.high is None else np.array(self.high, high.dtype)
        is_symmetric = symmetric if self.symmetric is None else self.symmetric
        return grid_of_range(dtype, low, high, symmetric=is_symmetric, reduced=bool(self.reduced), least_range=least_range)


def read_overrides(given: Mapping[str, Any] | None, model: Model) -> Mapping[str, Override]:
    """Return tensor name -> what is said of it.

    Raises:
        InvalidArgument: a name is no tensor of the model, or what is said of it is malformed.
    """
    names = {value.name for node in model.graph for value in (*node.inputs, *node.outputs) if value is not None}
    found = {}
    for name, entries in (given or {}).items():
        if name not in names:
            raise InvalidArgument(f"TensorQuantOverrides names {name!r}, which is no tensor of the model{hint(name, names)}")
        if not isinstance(entries, (list, tuple)) or len(entries) != 1 or not isinstance(entries[0], Mapping):
            raise InvalidArgument(f"TensorQuantOverrides[{name!r}] is a list of one dictionary, got {entries!r}")
        found[name] = _read(name, entries[0])
    return found


def _read(name: str, entry: Mapping[str, Any]) -> Override:
    for key in entry:
        if key not in _KEYS:
            raise InvalidArgument(f"TensorQuantOverrides[{name!r}] has {key!r}; it may have {', '.join(_KEYS)}")
    kind = entry.get("quant_type")
    if kind is not None and not isinstance(kind, QuantType):
        raise InvalidArgument(f"TensorQuantOverrides[{name!r}]: quant_type is a QuantType, got {kind!r}")
    if kind is not None and kind.dtype not in LIMITS:
        raise InvalidArgument(f"TensorQuantOverrides[{name!r}]: a single tensor's quant_type is one of integers, got {kind}")
    scale = entry.get("scale")
    if scale is not None and not (np.size(scale) == 1 and np.isfinite(scale) and float(scale) > 0):
        raise InvalidArgument(f"TensorQuantOverrides[{name!r}]: scale is one number above 0, got {scale!r}")
    return Override(
        dtype=None if kind is None else kind.dtype,
        scale=None if scale is None else float(scale),
        zero_point=None if entry.get("zero_point") is None else int(entry["zero_point"]),
        low=entry.get("rmin"),
        high=entry.get("rmax"),
        symmetric=entry.get("symmetric"),
        reduced=entry.get("reduce_range"),
        axis=entry.get("axis"),
    )


def hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a message that names the nearest of the known names; "" where none is near."""
    close = nearest(name, sorted(known))
    return f"; did you mean {close!r}?" if close else ""
