"""Facts about the operators that cut tensors apart, join and pad them."""

import ml_dtypes
import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

LINE = np.arange(5, dtype=np.float32)
GRID = np.arange(12, dtype=np.int64).reshape(3, 4)


def ints(*values):
    return np.array(values, np.int64)


def test_concat_joins_along_an_axis():
    """All other lengths agree; until opset 3 the axis is 1 if none is given."""
    assert run_op("Concat", GRID, GRID, axis=-2).shape == (6, 4)
    assert run_op("Concat", GRID, GRID[:, :0], version=1).shape == (3, 4)
    with pytest.raises(InvalidArgument, match=r"input 1 has shape \(2, 4\)"):
        run_op("Concat", GRID, GRID[:2], axis=1)


@pytest.mark.parametrize(
    ("start", "end", "step", "want"),
    [
        (1, 3, 1, [1, 2]),
        (-2, 1000, 1, [3, 4]),
        (4, -1000, -2, [4, 2, 0]),
        (-1, 0, -1, [4, 3, 2, 1]),
        (-1000, -1000, -1, [0]),
        (3, 1, 1, []),
        (1000, 2, -1, [4, 3]),
        (-1, 2**63 - 1, -2, []),
    ],
)
def test_slice_clamps_its_bounds(start, end, step, want):
    """Bounds beyond an axis stop at its ends, forwards and backwards."""
    assert run_op("Slice", LINE, ints(start), ints(end), ints(0), ints(step)).tolist() == want


@pytest.mark.parametrize("end", [2**31 - 1, 2**63 - 1])
def test_the_greatest_end_of_slice_10_is_open(end):
    """Slice-10 recommends it for "as far as the axis goes"; from Slice-11 on it is clamped as any other."""
    arguments = ("Slice", LINE, ints(-1), ints(end), ints(0), ints(-2))
    assert run_op(*arguments, version=10).tolist() == [4, 2, 0]
    assert run_op(*arguments, version=11).tolist() == []


def test_slice_of_opset_1_has_attributes():
    """Until opset 9 the bounds are attributes; the result is a view."""
    part = run_op("Slice", GRID, version=1, starts=(0, 1), ends=(2, -1))
    assert part.tolist() == [[1, 2], [5, 6]]
    assert np.shares_memory(part, GRID)


def test_slice_rejects_bad_bounds():
    """A step of 0, lists of different lengths, an axis named twice."""
    for arguments in ((ints(0), ints(1), ints(0), ints(0)), (ints(0), ints(1, 2)), (ints(0, 0), ints(1, 1), ints(1, -1))):
        with pytest.raises(InvalidArgument):
            run_op("Slice", GRID, *arguments)


def test_slice_of_an_empty_axis_backwards():
    """There is nothing to clamp to; the result is empty."""
    assert run_op("Slice", LINE[:0], ints(-1), ints(-9), ints(0), ints(-1)).shape == (0,)


def test_split_takes_lengths_as_attribute_or_input():
    """Until opset 12 the lengths are an attribute, from 13 on an input; without them the parts are equal."""
    assert [part.shape for part in run_op("Split", LINE, version=2, outputs=2, split=(2, 3))] == [(2,), (3,)]
    assert [part.shape for part in run_op("Split", LINE, ints(5, 0), version=13, outputs=2)] == [(5,), (0,)]
    assert [part.shape for part in run_op("Split", GRID, version=13, outputs=2, axis=-1)] == [(3, 2), (3, 2)]
    with pytest.raises(InvalidArgument, match="equal parts"):
        run_op("Split", LINE, version=13, outputs=2)
    with pytest.raises(InvalidArgument, match="add up to 5"):
        run_op("Split", LINE, ints(2, 2), outputs=2)


def test_split_18_leaves_a_short_tail():
    """5 into 3 parts are 2, 2 and 1."""
    assert [part.tolist() for part in run_op("Split", LINE, outputs=3, num_outputs=3)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(InvalidArgument, match="num_outputs=2"):
        run_op("Split", LINE, outputs=3, num_outputs=2)


@pytest.mark.parametrize(
    ("mode", "want"),
    [
        ("constant", [9, 9, 0, 1, 2, 9]),
        ("edge", [0, 0, 0, 1, 2, 2]),
        ("reflect", [2, 1, 0, 1, 2, 1]),
        ("wrap", [1, 2, 0, 1, 2, 0]),
    ],
)
def test_pad_modes(mode, want):
    """Two elements before three, and one behind, in each mode."""
    assert run_op("Pad", LINE[:3], ints(2, 1), np.float32(9), mode=mode).tolist() == want


def test_pad_crops_where_pads_are_negative():
    """A negative pad removes elements before the others are added."""
    assert run_op("Pad", LINE, ints(-2, 2), mode="edge").tolist() == [2, 3, 4, 4, 4]
    assert run_op("Pad", LINE, ints(-1, -3)).tolist() == [1]
    with pytest.raises(InvalidArgument, match="remove more"):
        run_op("Pad", LINE, ints(-4, -4))


def test_pad_older_versions_have_attributes():
    """Opset 1 says paddings, opset 2 pads; the value is a float."""
    assert run_op("Pad", LINE[:1], version=1, paddings=(1, 0), value=2.5).tolist() == [2.5, 0]
    assert run_op("Pad", LINE[:1], version=2, pads=(0, 1), mode="edge").tolist() == [0, 0]


def test_pad_names_axes():
    """From opset 18 on pads may be for some axes only."""
    assert run_op("Pad", GRID, ints(1, 0), None, ints(-1)).tolist()[0] == [0, 0, 1, 2, 3]


def test_pad_fills_each_type_with_its_zero():
    """Strings are padded with the empty one, int4 with 0."""
    assert run_op("Pad", np.array(["a"], object), ints(0, 1)).tolist() == ["a", ""]
    assert run_op("Pad", np.ones(1, ml_dtypes.int4), ints(1, 0)).astype(int).tolist() == [0, 1]


@pytest.mark.parametrize("pads", [ints(1), ints(1 << 50, 0)])
def test_pad_rejects_pads_that_do_not_fit(pads):
    """A begin and an end for each axis, and no output beyond all memory."""
    with pytest.raises(InvalidArgument):
        run_op("Pad", LINE, pads)


def test_pad_cannot_repeat_nothing():
    """An empty axis has no edge."""
    with pytest.raises(InvalidArgument, match="length 0"):
        run_op("Pad", LINE[:0], ints(1, 0), mode="edge")


def test_center_crop_pad_centres():
    """An odd surplus goes to the right when padding, an odd excess is cut at the right."""
    assert run_op("CenterCropPad", LINE, ints(2)).tolist() == [1, 2]
    assert run_op("CenterCropPad", LINE[:2], ints(5)).tolist() == [0, 0, 1, 0, 0]
    assert run_op("CenterCropPad", GRID, ints(2), axes=(-1,)).tolist() == [[1, 2], [5, 6], [9, 10]]


def test_reverse_sequence_reverses_a_prefix_of_each():
    """Time first and batch first give the same, transposed."""
    want = [[8, 1, 6, 3], [4, 5, 2, 7], [0, 9, 10, 11]]
    lengths = ints(3, 1, 2, 0)
    assert run_op("ReverseSequence", GRID, lengths).tolist() == [[8, 1, 6, 3], [4, 5, 2, 7], [0, 9, 10, 11]]
    turned = run_op("ReverseSequence", GRID.T, lengths, batch_axis=0, time_axis=1)
    assert turned.T.tolist() == want
    with pytest.raises(InvalidArgument, match="expected 4 lengths"):
        run_op("ReverseSequence", GRID, ints(4, 1, 1, 1))


@pytest.mark.parametrize("k", [-9, -1, 0, 2, 9, 1 << 60])
def test_trilu_is_triu_and_tril(k):
    """Any diagonal, however far outside."""
    near = max(min(k, 9), -9)
    np.testing.assert_array_equal(run_op("Trilu", GRID, ints(k)), np.triu(GRID, near))
    np.testing.assert_array_equal(run_op("Trilu", GRID, ints(k), upper=0), np.tril(GRID, near))


def test_inputs_may_be_views():
    """A transposed input is cut, joined and padded as its copy is."""
    view, copy = GRID.T, GRID.T.copy()
    for op, arguments, attributes in (("Concat", (), {"axis": 0}), ("Pad", (ints(1, 0, 0, 1),), {}), ("Trilu", (), {})):
        np.testing.assert_array_equal(run_op(op, view, *arguments, **attributes), run_op(op, copy, *arguments, **attributes))


def test_split_makes_as_many_parts_as_there_are_outputs():
    """Lengths for two parts do not make three outputs."""
    with pytest.raises(InvalidArgument, match="makes 2 parts, but the node has 3 outputs"):
        run_op("Split", LINE, ints(2, 3), outputs=3)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad_of_nothing_takes_no_memory(mode):
    """An empty result has the shape that pads make, but none that no array can have."""
    assert run_op("Pad", GRID[:0], ints(0, 1 << 40, 0, 1), mode=mode).shape == (0, 5 + (1 << 40))
    with pytest.raises(InvalidArgument, match="no array can have"):
        run_op("Pad", GRID[:0], ints(0, (1 << 63) - 1, 0, (1 << 63) - 1), mode=mode)


@pytest.mark.parametrize("pads", [(9, -7), (-7, 9), (2000000, -1999998)])
def test_pad_crops_what_it_adds(pads):
    """A crop that reaches through the data leaves the padding of the other side."""
    assert run_op("Pad", LINE, ints(*pads)).tolist() == [0] * (5 + sum(pads))
