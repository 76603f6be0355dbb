"""Array operators of com.microsoft."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **options)


@pytest.mark.parametrize(("axis", "shape"), [(0, (1, 2, 3, 4)), (-1, (2, 3, 4, 1)), (2, (2, 3, 1, 4))])
def test_ExpandDims(axis: int, shape: tuple[int, ...]) -> None:
    """A negative axis counts from the end of the result."""
    assert run("ExpandDims", X, np.array(axis, np.int32)).shape == shape


def test_Inverse_inverts_stacks() -> None:
    """Half types are kept."""
    matrices = X[:, :, :3] + 50 * np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(run("Inverse", matrices) @ matrices, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-5)
    assert run("Inverse", matrices.astype(np.float16)).dtype == np.float16


def test_operators_that_are_standard_by_now() -> None:
    """They run as their ai.onnx namesakes, with the liberties of their own."""
    np.testing.assert_array_equal(run("Trilu", X, np.array(1)), np.triu(X, 1))
    np.testing.assert_array_equal(run("Range", np.array([1]), np.array([4])), [1, 2, 3])
    np.testing.assert_array_equal(run("Range", np.array(1.0), np.array(2.0), np.array(0.5)), [1.0, 1.5])
    np.testing.assert_array_equal(run("Pad", X[0, 0], np.array([[1, 0]]), np.array([9.0], np.float32)), [9, 0, 1, 2, 3])
    np.testing.assert_array_equal(run("GatherND", X, np.array([[1, 2]], np.int32)), X[1, 2][None])
    grid = np.zeros((1, 1, 1, 2), np.float32)
    np.testing.assert_array_equal(run("GridSample", X[None, :1], grid, align_corners=1), [[[[5.5]]]])


def test_Unique_keeps_the_order_of_occurrence() -> None:
    """Each distinct element, the place of each element among them, and their counts."""
    values, places, counts = run("Unique", np.array([2, 1, 1, 3, 4, 3]), outputs=3)
    assert values.tolist() == [2, 1, 3, 4]
    assert places.tolist() == [0, 1, 1, 2, 3, 2]
    assert counts.tolist() == [1, 2, 2, 1]


def test_NhwcMaxPool_has_its_channels_last() -> None:
    """It is MaxPool with the channels moved."""
    x = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    expected = x.reshape(2, 2, 2, 2, 2, 3).max((2, 4))
    np.testing.assert_array_equal(run("NhwcMaxPool", x, kernel_shape=(2, 2), strides=(2, 2)), expected)


def test_UnfoldTensor_gives_windows() -> None:
    """The elements of a window come last."""
    windows = run("UnfoldTensor", X, dim=2, size=2, step=2)
    np.testing.assert_array_equal(windows, X.reshape(2, 3, 2, 2))
    assert run("UnfoldTensor", X, dim=0, size=2).shape == (1, 3, 4, 2)


@pytest.mark.parametrize(("metric", "power"), [("euclidean", 1), ("sqeuclidean", 2)])
def test_CDist(metric: str, power: int) -> None:
    """Distances between all rows of two matrices."""
    a, b = X[0], X[1] / 2
    expected = np.linalg.norm(a[:, None].astype(np.float64) - b, axis=2) ** power
    np.testing.assert_allclose(run("CDist", a, b, metric=metric), expected, rtol=1e-4)


def cheapest(costs: Array) -> float:
    M, N = costs.shape
    total = np.full((M + 1, N + 1), np.inf)
    total[0, 0] = 0
    for i, j in np.ndindex(M, N):
        total[i + 1, j + 1] = costs[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    return float(total[M, N])


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (6, 4), (4, 7)])
def test_DynamicTimeWarping_finds_a_cheapest_path(shape: tuple[int, int]) -> None:
    """Steps go down, right or both, from corner to corner."""
    costs = np.random.default_rng(0).random(shape).astype(np.float32)
    path = run("DynamicTimeWarping", costs[None])
    assert path.dtype == np.int32
    assert path[:, 0].tolist() == [0, 0]
    assert path[:, -1].tolist() == [shape[0] - 1, shape[1] - 1]
    steps = np.diff(path, axis=1)
    assert ((steps >= 0) & (steps <= 1)).all()
    assert (steps.sum(axis=0) > 0).all()
    assert costs[path[0], path[1]].sum() == pytest.approx(cheapest(costs), rel=1e-5)


def test_NGramRepeatBlock_forbids_tokens_that_would_repeat() -> None:
    """After 1 2 … 1, the bigram 1 2 is known, so 2 is blocked; the scores that came in stay as they were."""
    scores = np.zeros((1, 4), np.float32)
    blocked = run("NGramRepeatBlock", np.array([[1, 2, 3, 1]]), scores, ngram_size=2)
    np.testing.assert_array_equal(blocked, [[0, 0, -np.inf, 0]])
    assert not scores.any()
    assert not run("NGramRepeatBlock", np.array([[1]]), scores, ngram_size=2).any()


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("Inverse", (X,), {}, "square"),
        ("Inverse", (np.zeros((2, 2), np.float32),), {}, "singular"),
        ("ExpandDims", (X, np.array(9, np.int32)), {}, "axis"),
        ("Unique", (X,), {}, "rank 1"),
        ("UnfoldTensor", (X,), {"size": 5}, "size is 5"),
        ("CDist", (X[0], X[1]), {"metric": "cosine"}, "'cosine'"),
        ("DynamicTimeWarping", (X,), {}, r"\(1, M, N\)"),
        ("NGramRepeatBlock", (np.array([[9, 9]]), X[0, :1]), {"ngram_size": 1}, "tokens 0 to 3"),
        ("Range", (X, X), {}, "expected one element"),
    ],
)
def test_bad_inputs_are_named(op_type: str, inputs: tuple[Any, ...], attributes: dict[str, Any], message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        run(op_type, *inputs, **attributes)
