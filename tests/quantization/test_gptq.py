"""Weights whose rounding errors the others make up for."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.quantization.gptq import quantize_rows, second_moments


def _data(rows: int = 400, length: int = 96) -> Array:
    """Return rows whose elements depend on one another, as activations do."""
    random = np.random.default_rng(5)
    return random.normal(size=(rows, 12)) @ random.normal(size=(12, length)) + 0.1 * random.normal(size=(rows, length))


def _error(weights: Array, data: Array, block: int, found: tuple[Array, Array, Array]) -> float:
    codes, scales, zeros = found
    grown = [np.repeat(part, block, axis=0)[: len(weights)] for part in (zeros, scales)]
    return float(np.linalg.norm(data @ ((codes - grown[0]) * grown[1] - weights)))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("block", [16, 32, 128])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_products_change_less_than_by_rounding(bits: int, block: int, symmetric: bool) -> None:
    """A diagonal of moments spreads nothing, so that it rounds to nearest."""
    weights, data = np.random.default_rng(6).normal(size=(96, 20)), _data()
    moments = data.T @ data / len(data)
    nearest = quantize_rows(weights, np.eye(96), bits, block, symmetric=symmetric)
    rounded = _error(weights, data, block, nearest)
    for by_importance in (False, True):
        found = quantize_rows(weights, moments, bits, block, symmetric=symmetric, by_importance=by_importance)
        assert found[0].max() < 1 << bits
        assert _error(weights, data, block, found) < 0.7 * rounded


def test_narrower_ranges_are_tried_where_asked_for() -> None:
    """An outlier no longer costs all others their precision."""
    weights = np.random.default_rng(7).normal(size=(64, 4))
    weights[3] = 4
    plain, searched = (quantize_rows(weights, np.eye(64), 3, 64, searches=searches) for searches in (False, True))
    assert _error(weights, np.eye(64), 64, searched) < _error(weights, np.eye(64), 64, plain)


def test_an_input_that_is_always_zero_changes_nothing() -> None:
    """Its row is rounded to nearest, and the others do not see it."""
    weights, data = np.random.default_rng(8).normal(size=(32, 3)), _data(length=32)
    data[:, 5] = 0
    codes, scales, zeros = quantize_rows(weights, data.T @ data, 8, 32)
    np.testing.assert_allclose((codes[5] - zeros[0]) * scales[0], weights[5], atol=float(scales.max()))


def test_moments_that_cannot_be_inverted_are_refused() -> None:
    """The message names the argument that helps."""
    with pytest.raises(InvalidArgument, match="percdamp=0.0; give a larger one"):
        quantize_rows(np.ones((4, 2)), np.ones((4, 4)), 4, 16, damping=0.0)


def test_moments_are_means_over_all_rows_of_all_feeds() -> None:
    """Of an input and of a value inside the model."""
    held = model("graph(x: float[n, 3]) -> (y: float[n, 3]) {\nh = Relu(x)\ny = Neg(h)\n}")
    feeds = [{"x": np.float32([[1, -2, 3]])}, {"x": np.float32([[4, 5, -6], [0, 0, 1]])}]
    (found,) = second_moments(held, [("x", 3), ("h", 3)], feeds)
    rows = np.concatenate([feed["x"] for feed in feeds]).astype(np.float64)
    np.testing.assert_allclose(found["x"], rows.T @ rows / 3)
    np.testing.assert_allclose(found["h"], np.maximum(rows, 0).T @ np.maximum(rows, 0) / 3)


def test_there_is_data_and_it_is_finite() -> None:
    """Else the message says what to give."""
    held = model("graph(x: float[n, 3]) -> (y: float[n, 3]) {\ny = Neg(x)\n}")
    with pytest.raises(InvalidArgument, match="calibration_data_reader"):
        next(second_moments(held, [("x", 3)], []))
    with pytest.raises(InvalidArgument, match="gives 'x' NaN"):
        next(second_moments(held, [("x", 3)], [{"x": np.float32([[1, np.nan, 0]])}]))
