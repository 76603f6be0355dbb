"""Functions of 16-bit activations as TensorFlow Lite has them: from tables of 513 places, between which a line is drawn.

Its results differ from the function by some steps where this bends much; the tables here are the same, so the results are too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.tensors import TensorInfo
from sardonyx.ir import Value

__all__ = ["has_table", "looked_up"]

_CELLS = 512
_CELL = 1 << 7
"""How many integers lie between two places of a table."""
_LEAST, _MOST = np.float32(-(1 << 15)), np.float32((1 << 15) - 1)


def has_table(source: TensorInfo, target: TensorInfo) -> bool:
    """Return whether both tensors are 16-bit activations with one scale each."""
    return all(
        info.dtype is DataType.INT16 and info.quantization is not None and info.is_quantized and info.quantization.is_per_tensor
        for info in (source, target)
    )


def looked_up(
    build: GraphBuilder, value: Value, source: TensorInfo, target: TensorInfo, function: Callable[[Array, float, float], Array]
) -> Value:
    """Return integers of `target` for those of `source`, both of which `has_table`.

    Args:
        build: the graph.
        value: the integers of `source`.
        source: its tensor.
        target: that of the result.
        function: computes results of float32 numbers, given the least and the greatest number that `target` has.
    """
    places = _places(*_scale_of(source), *_scale_of(target), function)
    integers = np.concatenate([np.arange(1 << 15), np.arange(-(1 << 15), 0)])  # a place below 0 counts from the end
    cells = _CELLS // 2 + integers // _CELL
    slopes = np.diff(places).astype(np.int16).astype(np.int64)
    table = places[cells] + (slopes[cells] * (integers % _CELL) + _CELL // 2) // _CELL
    return build.node("Gather", build.constant(table.astype(np.int16)), build.cast(value, DataType.INT32))


def _scale_of(info: TensorInfo) -> tuple[np.float32, int]:
    assert info.quantization is not None
    return np.float32(info.quantization.scales[0]), int(info.quantization.zero_points[0])


def _places(
    scale: np.float32, point: int, out_scale: np.float32, out_point: int, function: Callable[[Array, float, float], Array]
) -> Array:
    """Return the 513 places of a table, whole numbers; in single precision and with the rounding of TensorFlow Lite."""
    low, high = scale * (_LEAST - np.float32(point)), scale * (_MOST - np.float32(point))
    out_low, out_high = out_scale * (_LEAST - np.float32(out_point)), out_scale * (_MOST - np.float32(out_point))
    step, factor = (high - low) / np.float32(_CELLS), np.float32(1 << 16) / (out_high - out_low)

    def made(numbers: Array) -> Array:
        with np.errstate(all="ignore"):
            found: Array = function(numbers, float(out_low), float(out_high)).astype(np.float32) * factor
        return found

    begins = low + np.arange(_CELLS, dtype=np.float32) * step
    first, middle = made(begins), made(begins + step / np.float32(2))
    after = made(low + np.arange(1, _CELLS + 1, dtype=np.float32) * step)
    between = _rounded((after + _rounded(first)) / np.float32(2))
    bias = _rounded((between - _rounded(middle)) / np.float32(2))
    places = np.append(_rounded(first) - bias, _rounded(made(np.array([high]))))
    whole: Array = np.clip(np.nan_to_num(places, nan=0.0), _LEAST, _MOST).astype(np.int64)
    return whole


def _rounded(numbers: Array) -> Array:
    """Return the nearest whole numbers, halves away from 0."""
    wide = numbers.astype(np.float64)
    found: Array = np.copysign(np.floor(np.abs(wide) + 0.5), wide).astype(np.float32)
    return found
