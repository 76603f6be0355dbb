"""Gathers, scatters and windows of StableHLO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formats.tflite.cases.case import case
from formats.tflite.cases.windows import combined
from formats.tflite.running import run
from support.flat_models import one

from sardonyx import errors

X = np.arange(24, dtype=np.float32).reshape(3, 4, 2)


def _gather(**changes: Any) -> bytes:
    numbers = {"offset_dims": [0, 2], "collapsed_slice_dims": [1], "start_index_map": [1], "slice_sizes": [3, 1, 2]}
    options = ("StablehloGatherOptions", {**numbers, "index_vector_dim": 1, **changes})
    return one("STABLEHLO_GATHER", [((3, 4, 2), "FLOAT32"), ((2,), "INT32")], ((3, 2, 2), "FLOAT32"), options)


def test_indices_need_no_axis_of_their_numbers() -> None:
    """Each is one number then; windows that would reach out are moved."""
    found = run(_gather(), X, np.array([1, 9], np.int32))[0]
    np.testing.assert_array_equal(found, X[:, [1, 3]])


@pytest.mark.parametrize(
    "changes",
    [
        {"slice_sizes": [4, 1, 2]},
        {"collapsed_slice_dims": [5]},
        {"collapsed_slice_dims": [2]},
        {"index_vector_dim": 3},
        {"offset_dims": [2, 0]},
        {"offset_dims": [0, 9]},
    ],
)
def test_windows_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    """When the model is read."""
    with pytest.raises(errors.InvalidFlatBuffer, match="STABLEHLO_GATHER"):
        run(_gather(**changes), X, np.array([1, 2], np.int32))


def test_a_subgraph_that_is_no_single_operator_is_not_supported() -> None:
    """With its name."""
    options = ("StablehloReduceWindowOptions", {"window_dimensions": [2], "window_strides": [1], "body_subgraph_index": 1})
    found = combined("", "STABLEHLO_REDUCE_WINDOW", "SUB", [np.zeros(3, np.float32), np.array(0, np.float32)], (2,), options)
    with pytest.raises(errors.NotImplemented, match="combines numbers by SUB"):
        run(found.data, *found.feeds)


def test_truth_values_have_windows_too() -> None:
    """Any of them by a logical or."""
    options = ("StablehloReduceWindowOptions", {"window_dimensions": [2], "window_strides": [1], "body_subgraph_index": 1})
    given = [np.array([True, False, False]), np.array(False)]
    found = combined("", "STABLEHLO_REDUCE_WINDOW", "LOGICAL_OR", given, (2,), options)
    assert run(found.data, *found.feeds)[0].tolist() == [True, False]


def test_a_window_that_is_longer_than_its_axis_has_no_place() -> None:
    """The result has no elements, as in LiteRT."""
    options = ("StablehloReduceWindowOptions", {"window_dimensions": [4], "window_strides": [1], "body_subgraph_index": 1})
    given = [np.zeros(3, np.float32), np.array(0, np.float32)]
    found = combined("", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_ADD", given, (0,), options)
    assert run(found.data, *found.feeds)[0].shape == (0,)


@pytest.mark.parametrize("wrong", [{"dilations": [0]}, {"strides": [1, 1]}, {"function": 0}, {"function": 7}])
def test_windows_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    """By the operator whose windows are inputs, too."""
    windows = [np.array(wrong.get(name, [1]), np.int64) for name in ("sizes", "strides", "dilations")]
    options = ("ReduceWindowOptions", {"reduce_function": wrong.get("function", 1)})
    inputs = [np.zeros(3, np.float32), np.array(0, np.float32), *windows]
    found = case("", "REDUCE_WINDOW", inputs, [((3,), "FLOAT32")], options, constants=(2, 3, 4))
    with pytest.raises(errors.InvalidFlatBuffer, match="REDUCE_WINDOW"):
        run(found.data, *found.feeds)
