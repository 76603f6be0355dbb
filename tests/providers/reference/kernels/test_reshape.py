"""Facts about the operators that give the same elements another shape."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument, InvalidGraph

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("asked", "got"), [((4, -1), (4, 6)), ((0, -1), (2, 12)), ((0, 0, 0), (2, 3, 4)), ((24,), (24,)), ((-1, 1, 0), (6, 1, 4))]
)
def test_reshape_copies_zeros_and_infers_one_length(asked, got):
    """0 keeps the length at its place, -1 takes what is left."""
    assert run_op("Reshape", CUBE, ints(*asked)).shape == got
    assert run_op("Reshape", CUBE, version=1, shape=asked).shape == got


def test_reshape_returns_a_view():
    """A contiguous tensor is reshaped without a copy."""
    assert np.shares_memory(run_op("Reshape", CUBE, ints(-1)), CUBE)


def test_reshape_honours_zeros_if_asked():
    """With allowzero a 0 is a length of 0."""
    empty = np.zeros((0, 5), np.float32)
    assert run_op("Reshape", empty, ints(3, 0), allowzero=1).shape == (3, 0)
    with pytest.raises(InvalidArgument, match="both 0 and -1"):
        run_op("Reshape", empty, ints(0, -1), allowzero=1)


@pytest.mark.parametrize("asked", [(5, 5), (-1, -1), (-2, 12), (7, -1), (2, 3, 4, 0)])
def test_reshape_rejects_shapes_that_do_not_fit(asked):
    """Two -1, a length below -1, a wrong number of elements, a 0 beyond the rank."""
    with pytest.raises(InvalidArgument, match="shape"):
        run_op("Reshape", CUBE, ints(*asked))


def test_reshape_to_a_scalar():
    """An empty shape makes a scalar of one element."""
    assert run_op("Reshape", np.ones((1, 1)), ints()).shape == ()


@pytest.mark.parametrize(("axis", "shape"), [(0, (1, 24)), (1, (2, 12)), (3, (24, 1)), (-1, (6, 4))])
def test_flatten_makes_a_matrix(axis, shape):
    """The axes before `axis` are the rows, the others the columns."""
    assert run_op("Flatten", CUBE, axis=axis).shape == shape


def test_flatten_of_a_scalar():
    """A scalar is a matrix of one element."""
    assert run_op("Flatten", np.float32(3), axis=0).shape == (1, 1)


def test_squeeze_takes_axes_as_attribute_then_as_input():
    """Until opset 12 the axes are an attribute, from 13 on an input."""
    data = np.zeros((1, 2, 1, 3), np.float32)
    assert run_op("Squeeze", data, version=11, axes=(-2,)).shape == (1, 2, 3)
    assert run_op("Squeeze", data, ints(0)).shape == (2, 1, 3)
    assert run_op("Squeeze", data).shape == run_op("Squeeze", data, ints()).shape == (2, 3)


def test_squeeze_keeps_longer_axes():
    """An axis of length 2 cannot go."""
    with pytest.raises(InvalidArgument, match="axis 1 has length 2"):
        run_op("Squeeze", np.zeros((1, 2)), ints(1))


def test_unsqueeze_counts_axes_in_the_output():
    """Axes 0 and -1 of the output surround the data."""
    data = np.zeros((3, 4), np.float32)
    assert run_op("Unsqueeze", data, version=1, axes=(0, 3)).shape == (1, 3, 4, 1)
    assert run_op("Unsqueeze", data, ints(-1, 0)).shape == (1, 3, 4, 1)
    with pytest.raises(InvalidArgument, match="twice"):
        run_op("Unsqueeze", data, ints(0, -4))


def test_transpose_permutes_or_reverses():
    """Without perm the axes are reversed; the result is a view."""
    assert run_op("Transpose", CUBE).shape == (4, 3, 2)
    turned = run_op("Transpose", CUBE, perm=(1, 0, 2))
    assert turned.shape == (3, 2, 4)
    assert np.shares_memory(turned, CUBE)
    with pytest.raises(InvalidGraph, match="no order of 3 axes"):
        run_op("Transpose", CUBE, perm=(0, 0, 1))


def test_expand_broadcasts_both_ways():
    """A length of 1 in the shape keeps the data's length."""
    data = np.arange(3, dtype=np.int8).reshape(3, 1)
    assert run_op("Expand", data, ints(2, 1, 4)).shape == (2, 3, 4)
    assert run_op("Expand", data, ints(1)).shape == (3, 1)
    with pytest.raises(InvalidArgument, match="cannot be expanded"):
        run_op("Expand", data, ints(2, 4))
    with pytest.raises(InvalidArgument, match="at most"):
        run_op("Expand", data, ints(1 << 40, 1, 1))


def test_tile_repeats_each_axis():
    """The tiles stand side by side, as in numpy.tile."""
    data = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(run_op("Tile", data, ints(2, 2)), np.tile(data, (2, 2)))
    np.testing.assert_array_equal(run_op("Tile", data.T, ints(1, 3)), np.tile(data.T, (1, 3)))
    assert run_op("Tile", data, ints(0, 1)).shape == (0, 3)


def test_tile_of_opset_1_repeats_one_axis():
    """Tiles and axis are tensors of one element."""
    np.testing.assert_array_equal(run_op("Tile", np.ones((1, 2)), ints(3), ints(1), version=1), np.ones((1, 6)))


def test_tile_rejects_counts_that_do_not_fit():
    """One count >= 0 for each axis, and no output beyond all memory."""
    for repeats in (ints(2), ints(-1, 1), ints(1 << 40, 1 << 40)):
        with pytest.raises(InvalidArgument):
            run_op("Tile", np.ones((2, 3)), repeats)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_space_to_depth_undoes_depth_to_space(mode):
    """In both modes the two are inverse."""
    data = np.arange(2 * 8 * 2 * 3).reshape(2, 8, 2, 3)
    wide = run_op("DepthToSpace", data, blocksize=2, mode=mode)
    assert wide.shape == (2, 2, 4, 6)
    np.testing.assert_array_equal(run_op("SpaceToDepth", wide, blocksize=2, mode=mode), data)


def test_depth_to_space_orders_blocks():
    """DCR takes the channels of a block apart by 4, CRD side by side."""
    data = np.arange(8).reshape(1, 8, 1, 1)
    assert run_op("DepthToSpace", data, blocksize=2)[0, 0].tolist() == [[0, 2], [4, 6]]
    assert run_op("DepthToSpace", data, blocksize=2, mode="CRD")[0, 0].tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("attributes", [{"blocksize": 0}, {"blocksize": 3}, {"blocksize": 2, "mode": "RCD"}])
def test_depth_to_space_rejects_bad_attributes(attributes):
    """Blocks of at least 1 that divide the channels, in a known mode."""
    with pytest.raises((InvalidArgument, InvalidGraph)):
        run_op("DepthToSpace", np.zeros((1, 4, 1, 1)), **attributes)


@pytest.mark.parametrize("dtype", [object, bool, ml_dtypes.int4, ml_dtypes.float8_e4m3fn, np.complex64])
def test_every_element_type_is_moved(dtype):
    """Shapes change for strings and for types that NumPy lacks as for any other."""
    data = np.array(["a", "b", "c", "d"], object) if dtype is object else np.array([0, 1, 1, 0]).astype(dtype)
    square = run_op("Reshape", data, ints(2, 2))
    moved = run_op("Tile", run_op("Expand", run_op("Transpose", square), ints(1, 2, 2)), ints(1, 1, 2))
    assert moved.dtype == data.dtype
    assert moved.reshape(-1).tolist() == [data[k] for k in (0, 2, 0, 2, 1, 3, 1, 3)]


@pytest.mark.parametrize(
    ("data", "shape", "result"), [((0, 4), [0, -1], (0, 4)), ((3, 0), [0, 0, -1], (3, 0, 1)), ((3, 0), [-1, 0], (3, 0))]
)
def test_without_elements_the_open_length_is_what_is_not_copied(data, shape, result):
    """So that an empty batch is reshaped as any other."""
    assert run_op("Reshape", np.zeros(data, np.float32), np.array(shape)).shape == result
