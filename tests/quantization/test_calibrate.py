"""Ranges of tensors from calibration data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from support.models import model

from sardonyx.errors import InvalidArgument
from sardonyx.quantization.calibrate import (
    CalibrationDataReader,
    MinMaxCalibrater,
    PercentileCalibrater,
    TensorsData,
    create_calibrator,
    open_model,
)
from sardonyx.quantization.quant_utils import CalibrationMethod

TEXT = """graph(x: float[n, 2]) -> (y: float[n, 2]) {
    k: float[2] = [1, -3]
    a = Mul(x, k)
    y = Relu(a)
}"""
FEEDS = [{"x": np.float32([[1, 2]])}, {"x": np.float32([[-4, 0.5], [3, 1]])}]


class _Reader(CalibrationDataReader):
    def __init__(self) -> None:
        self._left = list(FEEDS)

    def get_next(self) -> Mapping[str, Any] | None:
        return self._left.pop(0) if self._left else None


@pytest.mark.parametrize("feeds", [FEEDS, _Reader()])
def test_extremes_of_all_tensors_that_are_no_constants(feeds: Any) -> None:
    """From a list of feeds, or a reader."""
    calibrator = create_calibrator(model(TEXT))
    calibrator.collect_data(feeds)
    found = {name: tuple(map(float, data.range_value)) for name, data in calibrator.compute_data().items()}
    assert found == {"x": (-4, 3), "a": (-6, 3), "y": (0, 3)}


def test_feeds_may_come_in_parts() -> None:
    """Ranges are those of all of them."""
    calibrator = MinMaxCalibrater(model(TEXT))
    for feed in FEEDS:
        calibrator.collect_data([feed])
    assert tuple(map(float, calibrator.compute_data()["x"].range_value)) == (-4, 3)


def test_ranges_with_0_in_the_middle() -> None:
    """Where they are asked to be symmetric."""
    calibrator = MinMaxCalibrater(model(TEXT), symmetric=True)
    calibrator.collect_data(FEEDS)
    assert tuple(map(float, calibrator.compute_data()["a"].range_value)) == (-6, 6)


def test_a_moving_average_of_extremes() -> None:
    """The newest feed has its weight."""
    calibrator = MinMaxCalibrater(model(TEXT), moving_average=True, averaging_constant=0.5)
    calibrator.collect_data(FEEDS)
    assert tuple(map(float, calibrator.compute_data()["x"].range_value)) == (-1.5, 2.5)


@pytest.mark.parametrize("method", [CalibrationMethod.Entropy, CalibrationMethod.Percentile])
def test_histograms_cover_few_values(method: CalibrationMethod) -> None:
    """The range lies within the extremes."""
    calibrator = create_calibrator(model(TEXT), calibrate_method=method)
    calibrator.collect_data(FEEDS)
    low, high = calibrator.compute_data()["a"].range_value
    assert -6 <= low < high <= 3


@pytest.mark.parametrize("opset", [13, 18])
def test_each_channel_may_have_a_range(opset: int) -> None:
    """Along the second axis, with axes as an attribute or as an input."""
    calibrator = create_calibrator(model(TEXT, opset=opset), extra_options={"per_channel": True})
    calibrator.collect_data(FEEDS)
    low, high = calibrator.compute_data()["a"].range_value
    np.testing.assert_array_equal([low, high], [[-4, -6], [3, -1.5]])


def test_a_distribution_has_a_deviation() -> None:
    """That of the values, to the width of a bin."""
    calibrator = create_calibrator(model(TEXT), calibrate_method=CalibrationMethod.Distribution)
    calibrator.collect_data(FEEDS)
    values = np.concatenate([feed["x"].ravel() for feed in FEEDS])
    np.testing.assert_allclose(calibrator.compute_data()["x"].avg_std[1], values.std(), rtol=1e-3)


def test_the_steps_of_calibration_can_be_taken_one_by_one() -> None:
    """As scripts for onnxruntime's classes do; the model that runs gives out what is looked at."""
    calibrator = MinMaxCalibrater(model(TEXT))
    calibrator.augment_graph()
    assert [value.name for value in calibrator.get_augment_model().graph.output][:2] == ["y", "x_ReduceMin"]
    calibrator.create_inference_session()
    calibrator.collect_data(FEEDS)
    assert tuple(map(float, calibrator.compute_data()["x"].range_value)) == (-4, 3)


def test_operators_and_tensors_can_be_chosen() -> None:
    """By their names."""
    assert create_calibrator(model(TEXT), ["Relu"]).tensors_to_calibrate == ["a", "y"]
    assert create_calibrator(model(TEXT), tensors=["y"]).tensors_to_calibrate == ["y"]


def test_the_model_stays_as_it_is() -> None:
    """Its own outputs and nodes."""
    given = model(TEXT)
    calibrator = create_calibrator(given)
    calibrator.collect_data(FEEDS)
    assert (len(given.graph), len(given.graph.outputs)) == (2, 1)


def test_no_data_is_an_error() -> None:
    """Before and after an empty reader."""
    calibrator = create_calibrator(model(TEXT))
    with pytest.raises(ValueError, match="collect_data first"):
        calibrator.compute_data()
    with pytest.raises(ValueError, match="gave no feed"):
        calibrator.collect_data([])


def test_values_that_are_not_finite_are_an_error() -> None:
    """That names the tensor."""
    calibrator = PercentileCalibrater(model(TEXT))
    with pytest.raises(ValueError, match="'x'"):
        calibrator.collect_data([{"x": np.float32([[np.nan, 1]])}])


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (CalibrationMethod.Distribution, {"num_bins": 128}, "at least 512"),
        (CalibrationMethod.MinMax, {"percentile": 3}, "percentile"),
        (CalibrationMethod.MinMax, {"averaging_constant": 2}, "from 0 to 1"),
        (CalibrationMethod.Percentile, {"percentile": 101}, "from 0 to 100"),
        (CalibrationMethod.Entropy, {"num_bins": 1}, "at least 2"),
    ],
)
def test_what_is_not_known_is_refused(method: CalibrationMethod, options: dict[str, Any], message: str) -> None:
    """Methods and options."""
    with pytest.raises(InvalidArgument, match=message):
        create_calibrator(model(TEXT), calibrate_method=method, extra_options=options)


def test_pairs_are_ranges_too() -> None:
    """As scripts write them."""
    data = TensorsData(CalibrationMethod.MinMax, {"x": (0.0, 1.0)})
    assert data["x"].range_value == (0, 1)
    assert list(data) == ["x"]
    assert len(data) == 1


def test_a_large_model_is_opened_from_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that protobuf cannot hold."""
    monkeypatch.setattr("sardonyx.quantization.calibrate._MOST_BYTES", 0)
    session = open_model(model(TEXT), ["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, FEEDS[0])[0], [[1, 0]])


def test_readers_need_not_know_their_length() -> None:
    """Nor give a part of themselves."""
    with pytest.raises(NotImplementedError):
        len(_Reader())
    with pytest.raises(NotImplementedError):
        _Reader().set_range(0, 1)
