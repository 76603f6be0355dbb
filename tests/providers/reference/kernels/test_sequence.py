"""Facts about sequences and optionals."""

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

A, B, C = (np.full((2, 3), k, np.float32) for k in range(3))


def scalar(value):
    return np.array(value, np.int64)


def values(sequence):
    return [int(tensor.flat[0]) for tensor in sequence]


def test_construct_and_length():
    """A sequence holds tensors of one type, of any shapes."""
    assert values(run_op("SequenceConstruct", A, B[:1])) == [0, 1]
    assert run_op("SequenceLength", run_op("SequenceEmpty")) == 0
    with pytest.raises(InvalidArgument, match="one type"):
        run_op("SequenceConstruct", A, A.astype(np.int32))


@pytest.mark.parametrize(
    ("position", "want"), [(None, [0, 1, 2]), (0, [2, 0, 1]), (-1, [0, 2, 1]), (-2, [2, 0, 1]), (2, [0, 1, 2])]
)
def test_insert_copies_the_sequence(position, want):
    """The tensor comes before the position; the sequence given stays."""
    sequence = [A, B]
    assert values(run_op("SequenceInsert", sequence, C, None if position is None else scalar(position))) == want
    assert len(sequence) == 2


def test_erase_and_at_count_from_both_ends():
    """Erase takes the last by default."""
    assert values(run_op("SequenceErase", [A, B, C])) == [0, 1]
    assert values(run_op("SequenceErase", [A, B, C], scalar(-3))) == [1, 2]
    assert run_op("SequenceAt", [A, B, C], scalar(-1)) is C


@pytest.mark.parametrize(("op", "arguments"), [("SequenceAt", ()), ("SequenceErase", ()), ("SequenceInsert", (C,))])
def test_positions_outside_are_rejected(op, arguments):
    """The message names the position."""
    with pytest.raises(InvalidArgument, match="position=3"):
        run_op(op, [A, B], *arguments, scalar(3))


def test_concat_joins_or_stacks():
    """new_axis puts the tensors side by side on an axis of their own."""
    assert run_op("ConcatFromSequence", [A, B], axis=-1).shape == (2, 6)
    assert run_op("ConcatFromSequence", [A, B], axis=-1, new_axis=1).shape == (2, 3, 2)
    for sequence, axis in (([], 0), ([A, B[:, :1]], 0), ([A, B[0]], 0)):
        with pytest.raises(InvalidArgument):
            run_op("ConcatFromSequence", sequence, axis=axis)


def test_split_by_entries_chunks_or_lengths():
    """Without `split` an entry each, with or without its axis."""
    line = np.arange(5)
    shapes = [tensor.shape for tensor in run_op("SplitToSequence", line, keepdims=0)]
    assert shapes == [()] * 5
    assert [tensor.tolist() for tensor in run_op("SplitToSequence", line, scalar(2))] == [[0, 1], [2, 3], [4]]
    assert [tensor.tolist() for tensor in run_op("SplitToSequence", line, np.array([1, 4]))] == [[0], [1, 2, 3, 4]]
    assert run_op("SplitToSequence", A, axis=-1)[2].shape == (2, 1)
    for split in (scalar(0), np.array([2, 2]), np.array([-1, 6])):
        with pytest.raises(InvalidArgument, match="split="):
            run_op("SplitToSequence", line, split)


def test_optionals_are_values_or_none():
    """A tensor counts as an optional that holds it."""
    assert run_op("Optional") is None
    assert run_op("Optional", A) is A
    assert run_op("OptionalGetElement", [A]) == [A]
    assert [bool(run_op("OptionalHasElement", value)) for value in (A, [], None)] == [True, True, False]
    assert not run_op("OptionalHasElement")
    with pytest.raises(InvalidArgument, match="empty"):
        run_op("OptionalGetElement", None)
