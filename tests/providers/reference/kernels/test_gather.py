"""Facts about the operators that read from and write to places which another tensor names."""

import ml_dtypes
import numpy as np
import pytest
from support.cancelling import checks_of
from support.run_op import run_op

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.kernels import gather

GRID = np.arange(12, dtype=np.float32).reshape(3, 4)


def ints(*values):
    return np.array(values, np.int64)


def test_gather_puts_the_shape_of_the_indices_in_place_of_the_axis():
    """Indices of shape (2, 1) on axis 1 of (3, 4) give (3, 2, 1); a scalar index drops the axis."""
    assert run_op("Gather", GRID, ints([0], [-1]), axis=1)[:, :, 0].tolist() == [[0, 3], [4, 7], [8, 11]]
    assert run_op("Gather", GRID, np.int32(-1)).tolist() == [8, 9, 10, 11]
    assert run_op("Gather", GRID, np.zeros((0, 2), np.int32)).shape == (0, 2, 4)


@pytest.mark.parametrize("shape", [(3,), (3, 5), (3, 2, 0)])
def test_many_rows_are_taken_some_at_a_time(shape, monkeypatch):
    """They are the same as one by one, and the run may be ended between them."""
    monkeypatch.setattr(gather, "_MOST_TAKEN", 7)
    data, at = np.arange(np.prod(shape)).reshape(shape), np.resize(ints(2, 0, -1, 1), (10, 9))
    found = []
    checks = checks_of(lambda: found.append(run_op("Gather", data, at)))
    assert np.array_equal(found[0], data[at])
    assert checks >= (10 if data.size else 0)


@pytest.mark.parametrize("index", [3, -4])
def test_gather_rejects_an_index_outside_the_axis(index):
    """As a tensor or as a scalar."""
    for indices in (ints(index), np.int64(index)):
        with pytest.raises(InvalidArgument, match=r"-3, 2\]"):
            run_op("Gather", GRID, indices)


def test_gather_elements_looks_along_one_axis():
    """The other coordinates are those of the index itself; it may be shorter there."""
    assert run_op("GatherElements", GRID, ints([3, -4], [0, 1]), axis=1).tolist() == [[3, 0], [4, 5]]
    with pytest.raises(InvalidArgument, match="no greater length"):
        run_op("GatherElements", GRID, np.zeros((4, 1), np.int64), axis=1)


def test_gather_nd_takes_slices_after_the_batch_axes():
    """Tuples of k coordinates, each after the batch's own."""
    assert run_op("GatherND", GRID, ints([0, -1], [2, 0])).tolist() == [3, 8]
    assert run_op("GatherND", GRID, ints([1], [-3])).tolist() == [[4, 5, 6, 7], [0, 1, 2, 3]]
    assert run_op("GatherND", GRID, ints([3], [0], [-1]), batch_dims=1).tolist() == [3, 4, 11]
    assert run_op("GatherND", GRID, np.zeros((2, 0), np.int64)).shape == (2, 3, 4)


@pytest.mark.parametrize(("indices", "batch_dims"), [(ints([0, 0, 0]), 0), (ints([3]), 0), (ints([0], [1]), 1), (ints(0), 1)])
def test_gather_nd_rejects_what_does_not_fit(indices, batch_dims):
    """Too many coordinates, one outside, batches of another length, no axis left for tuples."""
    with pytest.raises(InvalidArgument):
        run_op("GatherND", GRID, indices, batch_dims=batch_dims)


@pytest.mark.parametrize(("op", "version"), [("Scatter", 9), ("ScatterElements", 11), ("ScatterElements", 18)])
def test_scatter_writes_into_a_copy(op, version):
    """The data stays as it is; of repeated places the last update counts."""
    data = np.zeros(3, np.float32)
    assert run_op(op, data, ints(1, -1, 1), np.float32([5, 6, 7]), version=version).tolist() == [0, 7, 6]
    assert data.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("reduction", "want"), [("add", 9), ("mul", 24), ("max", 4), ("min", 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float16, ml_dtypes.bfloat16])
def test_scatter_reductions_combine_all_updates(reduction, want, dtype):
    """Every update of a repeated place is combined with the data, in each type."""
    data, updates = np.array([2, 3]).astype(dtype), np.array([3, 4]).astype(dtype)
    flat = run_op("ScatterElements", data, ints(0, 0), updates, reduction=reduction)
    nd = run_op("ScatterND", data, ints([0], [0]), updates, reduction=reduction)
    assert flat.dtype == nd.dtype == data.dtype
    assert flat.astype(int).tolist() == nd.astype(int).tolist() == [want, 3]


def test_scatter_rejects_updates_of_another_shape():
    """Updates have the shape of the indices, or of the slices that they name."""
    with pytest.raises(InvalidArgument, match="updates have shape"):
        run_op("ScatterElements", GRID, ints([0]), GRID)
    with pytest.raises(InvalidArgument, match="updates have shape"):
        run_op("ScatterND", GRID, ints([0]), GRID)
    with pytest.raises(InvalidArgument, match="reduction='sub'"):
        run_op("ScatterND", GRID, ints([0]), GRID[:1], reduction="sub")


def test_scatter_nd_writes_slices():
    """A tuple of one coordinate names a row, an empty tuple the whole."""
    assert run_op("ScatterND", GRID, ints([1]), np.zeros((1, 4), np.float32))[1].tolist() == [0, 0, 0, 0]
    whole = run_op("ScatterND", GRID, np.zeros((1, 0), np.int64), GRID[None] + 1, reduction="add")
    np.testing.assert_array_equal(whole, 2 * GRID + 1)


def test_tensor_scatter_writes_steps_of_each_batch():
    """Steps go on from the batch's own index, in a circle if asked."""
    cache, update = np.zeros((2, 3, 1), np.float32), np.float32([[[1], [2]], [[3], [4]]])
    assert run_op("TensorScatter", cache, update, ints(0, 1))[:, :, 0].tolist() == [[1, 2, 0], [0, 3, 4]]
    assert run_op("TensorScatter", cache, update, ints(2, 5), mode="circular")[:, :, 0].tolist() == [[2, 0, 1], [4, 0, 3]]
    with pytest.raises(InvalidArgument, match="do not fit"):
        run_op("TensorScatter", cache, update, ints(0, 2))


def test_one_hot_wraps_negatives_from_opset_11_on():
    """-1 is the last class; in opset 9 it is none."""
    values = np.array(["off", "on"], object)
    assert run_op("OneHot", ints(-1, 5), np.int64(2), values).tolist() == [["off", "on"], ["off", "off"]]
    assert run_op("OneHot", ints(-1), np.int64(2), values, version=9).tolist() == [["off", "off"]]


def test_one_hot_inserts_the_axis():
    """Axis 0 puts the classes first; numbers are cut to integers."""
    result = run_op("OneHot", np.float32([1.7, 0]), np.float32([2.9]), np.int8([0, 1]), axis=0)
    assert result.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(InvalidArgument, match="at most"):
        run_op("OneHot", ints(0), np.int64(1 << 50), np.int8([0, 1]))


def test_non_zero_lists_coordinates_in_order():
    """A scalar has no coordinates, only a count."""
    assert run_op("NonZero", np.array([[1, 0], [-1, 2]], np.int8)).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert run_op("NonZero", np.float32(3)).shape == (0, 1)
    assert run_op("NonZero", np.array(["", "a"], object)).tolist() == [[1]]


def test_compress_takes_a_shorter_condition():
    """What the condition does not reach is dropped; without axis the tensor is flat."""
    condition = np.array([False, True])
    assert run_op("Compress", GRID, condition).tolist() == [1]
    assert run_op("Compress", GRID, condition, axis=-1).tolist() == [[1], [5], [9]]
    assert run_op("Compress", GRID, np.array([True] * 9), axis=0).shape == (3, 4)


@pytest.mark.parametrize(("reduction", "ufunc"), [("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)])
def test_scatter_nd_combines_long_slices_in_order(reduction, ufunc):
    """Forty slices of 500 onto twenty places: as ufunc.at, bit for bit."""
    generator = np.random.default_rng(0)
    data, updates = (generator.random((rows, 10, 50), np.float32) for rows in (20, 40))
    indices = generator.integers(-20, 20, (40, 1))
    expected = data.copy()
    ufunc.at(expected, (indices[:, 0],), updates)
    assert (run_op("ScatterND", data, indices, updates, reduction=reduction) == expected).all()


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_no_updates_change_nothing(reduction):
    """Indices and updates without elements."""
    none = np.zeros((0, 4), np.int64)
    assert (run_op("ScatterElements", GRID, none, none.astype(np.float32), reduction=reduction) == GRID).all()
    assert (run_op("ScatterND", GRID, none[:, :1], none.astype(np.float32), reduction=reduction) == GRID).all()


def test_gather_rejects_ranks_beyond_those_of_an_array():
    """Of data and indices together; NumPy's own function would leave its buffers there."""
    with pytest.raises(InvalidArgument, match="79 dimensions; at most 64"):
        run_op("Gather", np.ones((1,) * 40, np.float32), np.zeros((1,) * 40, np.int64))
