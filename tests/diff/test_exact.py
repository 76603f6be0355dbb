"""Outputs in float64."""

from __future__ import annotations

import numpy as np
from support.models import model

from sardonyx.diff.exact import distance, exact_outputs


def test_weights_inputs_and_types_become_double() -> None:
    """Constants of nodes and the type of a Cast too."""
    text = """graph(x: float16[2]) -> (y: float[2]) {
    w: float[2] = [0.1, 0.2]
    k = Constant() {value_float: float = 0.5}
    c = Cast(x) {to = 1}
    a = Mul(c, w)
    y = Add(a, k)
    }"""
    x = np.float16([3, 7])
    exact = exact_outputs(model(text), {"x": x})
    assert not isinstance(exact, str)
    assert exact[0].dtype == np.float64
    np.testing.assert_array_equal(exact[0], x.astype(np.float64) * np.float32([0.1, 0.2]).astype(np.float64) + 0.5)


def test_where_there_is_no_kernel_the_reason_is_returned() -> None:
    """An operator that nobody knows."""
    found = exact_outputs(model("graph(x: float[2]) -> (y: float[2]) {\ny = none.Such(x)\n}"), {"x": np.zeros(2, np.float32)})
    assert isinstance(found, str)
    assert "Such" in found


def test_distances_are_the_largest_differences() -> None:
    """NaN on one side is infinitely far, and another shape has no distance."""
    exact = [np.float64([1, np.nan]), np.float64([1]), np.float64([1])]
    found = [np.float32([1.5, np.nan]), np.float32([np.nan]), np.float32([1, 2])]
    assert distance(exact, found) == [0.5, np.inf, None]
