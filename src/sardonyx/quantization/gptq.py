"""Weights of few bits whose rounding errors are made up for by the weights that follow, by what a model's inputs look like.

Rows of a matrix are rounded one after another; the error of each is spread over those that are not rounded yet, so that the product
with the calibration data changes least. Source: E. Frantar, S. Ashkboos, T. Hoefler and D. Alistarh, "GPTQ: Accurate Post-Training
Quantization for Generative Pre-trained Transformers", ICLR 2023, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model
from sardonyx.quantization.calibrate import open_model
from sardonyx.session.inference_session import InferenceSession

__all__ = ["quantize_rows", "second_moments"]

_SPAN = 128
"""Rows whose errors reach the rows behind them in one product."""
_MOST_BYTES = 1 << 30
"""Second moments that are held at once; more of them take further passes over the data."""
_SHRINKS = 1 - np.arange(80) / 100
"""What a search makes ranges narrower by, and the norm that it makes small: those of the authors' code."""
_NORM = 2.4


def second_moments(
    model: Model, values: Sequence[tuple[str, int]], feeds: Sequence[Mapping[str, OnnxValue]]
) -> Iterator[dict[str, Array]]:
    """Yield, for some values at a time, the means of x x^T over the rows x that runs of the model give them.

    Args:
        model: the model, which stays as it is.
        values: names of inputs and of values of its main graph, floats, and how long their last axis is.
        feeds: what the model is run on.

    Yields:
        Name -> float64 (length, length).

    Raises:
        InvalidArgument: there are no feeds, or a value holds NaN or infinities.
        SardonyxError: a run fails.
    """
    if not feeds:
        raise InvalidArgument("GPTQ needs calibration data: give a calibration_data_reader with at least one feed")
    for part in _within(values):
        session = _giving(model, [name for name, _ in part])
        sums = {name: np.zeros((length, length)) for name, length in part}
        counts = dict.fromkeys(sums, 0)
        for feed in feeds:
            for name, given in zip(sums, _values_of(session, list(sums), feed), strict=True):
                rows = np.asarray(given).reshape(-1, sums[name].shape[0]).astype(np.float64)
                if not np.isfinite(rows).all():
                    raise InvalidArgument(f"the calibration data gives {name!r} NaN or infinities")
                sums[name] += rows.T @ rows
                counts[name] += len(rows)
        yield {name: total / max(counts[name], 1) for name, total in sums.items()}


def _giving(model: Model, names: Collection[str]) -> InferenceSession:
    """Return a session with outputs for values of the main graph; a model's inputs are known without one."""
    giving = onnx_format.load(onnx_format.to_proto(model))
    for value in [value for node in giving.graph for value in node.outputs if value.name in names]:
        if not value.is_graph_output:
            giving.graph.add_output(value)
    return open_model(giving, ["CPUExecutionProvider"])


def _values_of(session: InferenceSession, names: Sequence[str], feed: Mapping[str, OnnxValue]) -> list[OnnxValue]:
    inner = [name for name in names if name not in feed]
    found = {**feed, **dict(zip(inner, session.run(inner, feed), strict=True))} if inner else feed
    return [found[name] for name in names]


def _within(values: Iterable[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """Yield the values in groups whose moments fit the memory that is set aside; a larger one is alone."""
    part: list[tuple[str, int]] = []
    size_bytes = 0
    for name, length in values:
        more = 8 * length * length
        if part and size_bytes + more > _MOST_BYTES:
            yield part
            part, size_bytes = [], 0
        part.append((name, length))
        size_bytes += more
    if part:
        yield part


def quantize_rows(
    weights: Array,
    moments: Array,
    bits: int,
    block: int,
    *,
    symmetric: bool = False,
    damping: float = 0.01,
    by_importance: bool = False,
    searches: bool = False,
) -> tuple[Array, Array, Array]:
    """Return codes, scales and zero points of a matrix: w is about (code - zero point) * scale.

    Args:
        weights: (K, N) floats.
        moments: float64 (K, K), what `second_moments` gives for the product's first operand.
        bits: of a code.
        block: rows that share a scale in a column; a power of 2.
        symmetric: whether zero points are the middle of the codes.
        damping: what is added to the diagonal of the moments, as a part of its mean; above 0.
        by_importance: whether rows are rounded in the order of the diagonal, the largest first; blocks then keep the grids of the
            weights as they were.
        searches: whether narrower ranges are tried, for the least error.

    Returns:
        uint8 codes (K, N); float64 scales and zero points (blocks, N).

    Raises:
        InvalidArgument: the moments are no such matrix with this damping.
    """
    rest, top = weights.astype(np.float64), (1 << bits) - 1
    K, N = rest.shape
    order = np.argsort(-np.diag(moments), kind="stable") if by_importance else np.arange(K)
    spread = _spread(moments[np.ix_(order, order)], damping)
    blocks = -(-K // block)
    scales, zeros, codes = np.ones((blocks, N)), np.zeros((blocks, N)), np.zeros((K, N), np.uint8)
    if by_importance:
        for group in range(blocks):
            scales[group], zeros[group] = _grid(rest[group * block : (group + 1) * block], bits, symmetric, searches)
    rest = rest[order]
    span = max(block, _SPAN)
    for first in range(0, K, span):
        last = min(first + span, K)
        errors = np.zeros((last - first, N))
        for row in range(first, last):
            group = order[row] // block
            if not by_importance and row % block == 0:
                scales[group], zeros[group] = _grid(rest[row : row + block], bits, symmetric, searches)
            code = np.clip(np.rint(rest[row] / scales[group]) + zeros[group], 0, top)
            codes[order[row]] = code
            error = (rest[row] - (code - zeros[group]) * scales[group]) / spread[row, row]
            rest[row + 1 : last] -= np.outer(spread[row, row + 1 : last], error)
            errors[row - first] = error
        rest[last:] -= spread[first:last, last:].T @ errors
    return codes, scales, zeros


def _spread(moments: Array, damping: float) -> Array:
    """Return the upper Cholesky factor of the inverse of the damped moments; inputs that are always 0 touch no other."""
    damped = moments.copy()
    diagonal = np.einsum("ii->i", damped)
    diagonal[diagonal == 0] = 1
    diagonal += damping * diagonal.mean()
    try:
        factor: Array = np.linalg.cholesky(np.linalg.inv(damped)).T
        if np.isfinite(factor).all():
            return factor
    except np.linalg.LinAlgError:
        pass
    raise InvalidArgument(f"GPTQ cannot invert the moments of an input with percdamp={damping}; give a larger one, or more data")


def _grid(part: Array, bits: int, symmetric: bool, searches: bool) -> tuple[Array, Array]:
    """Return the scale and zero point of each column of a block."""
    found = _range_grid(part, bits, symmetric, 1.0)
    if not searches:
        return found
    least = _error(part, bits, *found)
    for shrink in _SHRINKS[1:]:
        other = _range_grid(part, bits, symmetric, float(shrink))
        error = _error(part, bits, *other)
        found = np.where(error < least, other[0], found[0]), np.where(error < least, other[1], found[1])
        least = np.minimum(error, least)
    return found


def _range_grid(part: Array, bits: int, symmetric: bool, shrink: float) -> tuple[Array, Array]:
    top, half = (1 << bits) - 1, 1 << (bits - 1)
    if symmetric:
        farthest = np.take_along_axis(part, np.abs(part).argmax(axis=0)[None], axis=0)[0] * shrink
        scale = farthest / -half
        return np.where(scale, scale, 1.0), np.full(scale.shape, float(half))
    low, high = part.min(axis=0, initial=0) * shrink, part.max(axis=0, initial=0) * shrink
    scale = np.where(high > low, (high - low) / top, 1.0)
    return scale, np.clip(np.rint(-low / scale), 0, top)


def _error(part: Array, bits: int, scale: Array, zero: Array) -> Array:
    codes = np.clip(np.rint(part / scale) + zero, 0, (1 << bits) - 1)
    total: Array = (np.abs(part - (codes - zero) * scale) ** _NORM).sum(axis=0)
    return total
