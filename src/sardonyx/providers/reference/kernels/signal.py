"""Reference kernels of windows and filter banks: BlackmanWindow, HammingWindow, HannWindow, MelWeightMatrix."""

from __future__ import annotations

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.blocks import ROW_BLOCK_ELEMENTS
from sardonyx.providers.reference.algorithms.dimensions import as_float, as_int, check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_NUMERIC_TYPES = {kind.value for kind in DataType} - {DataType.UNDEFINED, DataType.STRING}
_WINDOWS = {
    "BlackmanWindow": (0.42, -0.5, 0.08),
    "HammingWindow": (25 / 46, -21 / 46),
    "HannWindow": (0.5, -0.5),
}
"""Coefficients of cos(0), cos(t), cos(2 t), with t from 0 to 2 pi along the window (ONNX <Op>-17)."""


_MEL_ROUNDING = 2.0**-40
"""By how much an edge between filters may fall below what it is exactly, relative to it."""


@kernel("BlackmanWindow", since=17)
@kernel("HammingWindow", since=17)
@kernel("HannWindow", since=17)
def cosine_window(node: Call, size: Array, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    """Compute the window of `size` elements, of the type numbered output_datatype. Source: ONNX BlackmanWindow-17 and its like.

    Without `periodic` it is symmetric: the period ends at the last element and not one later. Computed in float64.
    """
    length = as_int(size, "size")
    dtype = _data_type(output_datatype)
    if length < 0:
        raise InvalidArgument(f"size = {length}, expected 0 or more elements")
    check_output_size((length,), 8)
    if length == 1:
        return np.ones(1).astype(dtype)
    window = np.empty(length, dtype)
    for start in range(0, length, ROW_BLOCK_ELEMENTS):
        check_cancelled()
        block = window[start : start + ROW_BLOCK_ELEMENTS]
        angle = np.arange(start, start + len(block)) * (2 * np.pi / max(1, length if periodic else length - 1))
        terms = (coefficient * np.cos(angle * order) for order, coefficient in enumerate(_WINDOWS[node.op_type]))
        block[...] = np.asarray(sum(terms)).astype(dtype)
    return window


@kernel("MelWeightMatrix", since=17)
@quiet
def mel_weight_matrix(
    node: Call,
    num_mel_bins: Array,
    dft_length: Array,
    sample_rate: Array,
    lower_edge_hertz: Array,
    upper_edge_hertz: Array,
    *,
    output_datatype: int = 1,
) -> Array:
    """Compute triangular filters over the dft_length // 2 + 1 bins of a spectrum, evenly spaced on the mel scale, as columns.

    Edges fall on whole bins, also where one that is a whole number comes out just below it; the range is divided by the number of
    edges, as the standard's own case does, so that the last filter ends below upper_edge_hertz. Source: ONNX MelWeightMatrix-17.
    """
    bands, length = as_int(num_mel_bins, "num_mel_bins"), as_int(dft_length, "dft_length")
    rate = as_int(sample_rate, "sample_rate")
    dtype = _data_type(output_datatype)
    if bands < 0 or length < 0 or rate < 1:
        raise InvalidArgument(f"num_mel_bins = {bands}, dft_length = {length}, sample_rate = {rate}, expected at least 0, 0 and 1")
    bins = length // 2 + 1
    check_output_size((bins, bands), 8)
    low, high = _mel(as_float(lower_edge_hertz, "lower_edge_hertz")), _mel(as_float(upper_edge_hertz, "upper_edge_hertz"))
    mels = low + np.arange(bands + 2) * ((high - low) / (bands + 2))
    edges = np.floor((length + 1) * (700 * (10 ** (mels / 2595) - 1)) / rate * (1 + _MEL_ROUNDING))
    band, number = _reached(np.minimum(edges[:-2], edges[1:-1]), np.maximum(edges[2:], edges[1:-1]), bins)
    left, centre, right = (edges[first : first + bands][band] for first in range(3))
    rising = np.where(centre > left, (number - left) / np.maximum(centre - left, 1), 1)
    falling = (right - number) / np.maximum(right - centre, 1)
    weights = np.where(number <= centre, np.where(number >= left, rising, 0), np.where(number < right, falling, 0))
    filters = np.zeros((bins, bands), dtype)
    filters[number, band] = np.where((number == centre) | (weights > 0), weights, 0).astype(dtype)
    return filters


def _reached(first: Array, last: Array, bins: int) -> tuple[Array, Array]:
    """Return every pair of a filter and a bin in a range that a filter spans.

    The range is first[filter] ... last[filter], edges that may lie outside; none where one is NaN.
    """
    start, stop = np.fmin(np.fmax(first, 0), bins), np.fmin(np.fmax(last, -1), bins - 1) + 1
    counts = np.where(np.isnan(first + last), 0, np.maximum(stop - start, 0)).astype(np.int64)
    band = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return band, np.arange(len(band)) - np.repeat(before - start.astype(np.int64), counts)


def _mel(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))


def _data_type(number: int) -> np.dtype[np.generic]:
    if number not in _NUMERIC_TYPES:
        raise InvalidArgument(f"output_datatype = {number}, expected the number of a numeric type in TensorProto.DataType")
    return DataType(number).numpy
