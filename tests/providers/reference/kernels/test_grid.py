"""Facts about AffineGrid and GridSample."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

LINE = np.array([[[1, 2, 4]]], np.float32)


def at(*positions):
    return np.array(positions, np.float32).reshape(1, -1, 1)


def sampled(*positions, x=LINE, **attributes):
    return run_op("GridSample", x, at(*positions), **attributes).ravel().tolist()


def test_identity_gives_the_centres_of_the_elements():
    """With align_corners the outer centres are -1 and 1, without it the outer edges are."""
    theta = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)
    y = run_op("AffineGrid", theta, np.array([1, 1, 2, 3]), align_corners=1)
    assert y[0, 0].tolist() == [[-1, -1], [0, -1], [1, -1]]
    y = run_op("AffineGrid", theta, np.array([1, 1, 2, 3]))
    np.testing.assert_allclose(y[0, 0], [[-2 / 3, -0.5], [0, -0.5], [2 / 3, -0.5]], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_affine_grid_in_space(dtype):
    """Three spatial axes have three rows of four numbers; positions are listed innermost axis first."""
    theta = np.array([[[2, 0, 0, 1], [0, 3, 0, 2], [0, 0, 4, 3]]], dtype)
    y = run_op("AffineGrid", theta, np.array([1, 5, 2, 2, 2]), align_corners=1)
    assert (y.shape, y.dtype) == ((1, 2, 2, 2, 3), dtype)
    assert y[0, 0, 1, 1].astype(float).tolist() == [3, 5, -1]


def test_affine_grid_refuses_a_matrix_of_another_rank():
    """Two spatial axes take (N, 2, 3)."""
    with pytest.raises(InvalidArgument, match="theta has shape"):
        run_op("AffineGrid", np.zeros((1, 3, 4), np.float32), np.array([1, 1, 2, 3]))


def test_linear_sampling_between_elements():
    """Half-way between elements is their mean; outside counts as zero by default."""
    assert sampled(-1, -0.5, 0, 1, align_corners=1) == [1, 1.5, 2, 4]
    assert sampled(-1, 1) == [0.5, 2]


def test_nearest_ties_go_to_the_even_element():
    """Positions 0.5 and 1.5 round to 0 and 2."""
    assert sampled(-0.5, 0.5, mode="nearest", align_corners=1) == [1, 4]


@pytest.mark.parametrize(
    ("padding_mode", "align_corners", "expected"),
    [("zeros", 1, [0, 0]), ("border", 1, [1, 4]), ("reflection", 1, [2, 1]), ("reflection", 0, [1, 1])],
)
def test_paddings_far_outside(padding_mode, align_corners, expected):
    """Element -1 reads nothing, the border, or its reflection; so does element 4, or 5 with edges as mirrors."""
    positions = [(2 * e / 2 - 1) if align_corners else ((2 * e + 1) / 3 - 1) for e in ((-1, 4) if align_corners else (-1, 5))]
    got = sampled(*positions, padding_mode=padding_mode, align_corners=align_corners, mode="nearest")
    assert got == expected


def test_an_axis_of_one_element_reflects_onto_itself():
    """With align_corners the period of reflection would be zero."""
    assert sampled(-3, 0.7, 9, x=LINE[..., :1], padding_mode="reflection", align_corners=1) == [1, 1, 1]


def test_cubic_sampling_reproduces_the_elements():
    """At an element's centre the other weights are zero; the old names of the modes mean the same."""
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 5), dtype=np.float32)
    rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
    grid = np.stack([columns, rows], axis=-1)[None].astype(np.float32)
    y = run_op("GridSample", x, grid, mode="cubic", align_corners=1)
    np.testing.assert_allclose(y, x, atol=1e-5)
    assert np.array_equal(run_op("GridSample", x, grid, mode="bicubic", align_corners=1, version=16), y)


def test_types_other_than_float():
    """Integers are blended and truncated; strings and bools are only picked."""
    assert sampled(-0.5, 0.5, x=LINE.astype(np.int32), align_corners=1) == [1, 3]
    words = np.array([[["a", "b"]]], object)
    assert sampled(-1, 1, 9, x=words, mode="nearest", align_corners=1) == ["a", "b", ""]
    with pytest.raises(InvalidArgument, match="nearest"):
        sampled(0, x=words)


def test_positions_that_are_no_numbers_do_not_crash():
    """NaN and infinity sample something, without a warning."""
    assert len(sampled(np.nan, np.inf, -np.inf, padding_mode="border")) == 3


@pytest.mark.parametrize(
    ("x", "grid", "attributes", "message"),
    [
        (LINE, np.zeros((2, 3, 1), np.float32), {}, "grid has shape"),
        (LINE, np.zeros((1, 3, 2), np.float32), {}, "grid has shape"),
        (LINE[..., :0], np.zeros((1, 3, 1), np.float32), {}, "empty"),
        (LINE, np.zeros((1, 3, 1), np.float32), {"mode": "area"}, "mode"),
        (LINE, np.zeros((1, 3, 1), np.float32), {"padding_mode": "wrap"}, "padding_mode"),
    ],
)
def test_wrong_grids_are_refused(x, grid, attributes, message):
    """Grids of the wrong shape and unknown modes raise InvalidArgument."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("GridSample", x, grid, **attributes)
