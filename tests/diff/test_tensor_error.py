"""By how much tensors differ."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.diff.tensor_error import measure, measure_all


def test_equal_tensors_have_no_error() -> None:
    """NaN, infinities and zeros of both signs included."""
    found = measure("x", np.float32([np.nan, np.inf, 0.0]), np.float32([np.nan, np.inf, -0.0]))
    assert (found.max_abs, found.max_rel, found.max_ulp, found.unequal, found.problem) == (0, 0, 0, 0, "")


def test_the_largest_difference_has_a_place() -> None:
    """With both elements, the magnitude of a, and how many are not equal."""
    found = measure("x", np.float32([[1, 2], [3, -8]]), np.float32([[1, 2.5], [4, -8]]))
    assert (found.max_abs, found.max_rel, found.at, found.a, found.b) == (1, 0.25, (1, 0), 3, 4)
    assert (found.scale, found.unequal, found.elements, found.mean_abs) == (8, 2, 4, 0.375)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_units_in_the_last_place_count_numbers_between(dtype: Any) -> None:
    """Across zero as well."""
    one = np.array([1.0, 0.0], dtype)
    below_zero = np.nextafter(np.array(0, dtype), np.array(-1, dtype))
    other = np.array([np.nextafter(np.array(1, dtype), np.array(2, dtype)), below_zero], dtype)
    assert measure("x", one, one).max_ulp == 0
    assert measure("x", one, other).max_ulp == 1
    assert measure("x", np.array([-below_zero], dtype), np.array([below_zero], dtype)).max_ulp == 2


@pytest.mark.parametrize(
    ("b", "text"),
    [
        (np.float64([1, 2]), "a is float32[2], b is float64[2]"),
        (np.float32([1]), "a is float32[2], b is float32[1]"),
        (np.float32([1, np.nan]), "1 elements are NaN or infinite in one of them only, first at [1]: a 2.0, b nan"),
    ],
)
def test_what_is_no_number_is_a_problem(b: Any, text: str) -> None:
    """Another type, another shape, and NaN on one side."""
    assert measure("x", np.float32([1, 2]), b).problem == text


def test_integers_truth_values_and_text_are_counted() -> None:
    """Integers have a distance too."""
    assert (found := measure("x", np.int64([5, 2]), np.int64([2, 2]))).unequal == 1
    assert found.max_abs == 3
    assert measure("x", np.array([True, False]), np.array([True, True])).unequal == 1
    assert measure("x", np.array(["a", "b"], object), np.array(["a", "c"], object)).unequal == 1


def test_empty_tensors_and_scalars_are_measured() -> None:
    """No element, and one without an index."""
    assert measure("x", np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32)).elements == 0
    assert measure("x", np.float32(1).reshape(()), np.float32(2).reshape(())).at == ()


def test_numbers_in_maps_have_the_type_that_holds_them() -> None:
    """Python's floats are float64, and those of a classifier float32."""
    near = float(np.nextafter(np.float32(0.6), np.float32(1)))
    (found,) = measure_all("m", {"k": float(np.float32(0.6))}, {"k": near})
    assert (found.type, found.max_ulp) == ("float", 1)
    (wide,) = measure_all("m", {"k": 0.6}, {"k": float(np.nextafter(0.6, 1))})
    assert (wide.type, wide.max_ulp) == ("double", 1)


def test_parts_of_sequences_and_maps_have_names() -> None:
    """And what has other parts is a problem."""
    found = measure_all("s", [np.float32([1])], [np.float32([2])])
    assert [(error.name, error.max_abs) for error in found] == [("s[0]", 1)]
    assert [error.name for error in measure_all("m", {"k": 1.0}, {"k": 2.0})] == ["m['k']"]
    assert measure_all("s", [np.float32([1])], [])[0].problem == "a is a list of 1, b is a list of 0"
    assert measure_all("o", None, None)[0].problem == ""
