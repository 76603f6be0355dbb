"""Facts about operators that change the shape and keep the elements."""

from __future__ import annotations

import pytest
from support.infer_op import UNKNOWN_DIM, A, B, error_of, floats, infer_op, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ops.fact import UNKNOWN, Fact, tensor


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ((2, 3, 4), (6, -1), (6, 4)),
        ((A, 3, 4), (0, -1), (A, 12)),
        ((A, B, 64), (-1, 64), (A * B, 64)),
        ((A, B, 768), (A, B, 12, -1), (A, B, 12, 64)),
        ((A, 12, B, 64), (A, -1, 768), (A, B, 768)),
        ((A, 4, 9), (A, None, 6), (A, 6, 6)),
        ((2, 0), (0, 0), (2, 0)),
        ((A + B, 4), (-1,), (4 * A + 4 * B,)),
        ((6,), (None, None), (UNKNOWN_DIM, UNKNOWN_DIM)),
    ],
)
def test_target_resolves(shape: tuple[Dim, ...], target: tuple[Dim | None, ...], expected: tuple[Dim, ...]) -> None:
    """0 copies, -1 and an unknown size follow from the number of elements, also of symbolic sizes."""
    assert infer_shape("Reshape", floats(*shape), ints(*target)) == expected


def test_zero_may_mean_zero() -> None:
    """With allowzero a 0 is a size."""
    assert infer_shape("Reshape", floats(0, 3), ints(3, 0), allowzero=1) == (3, 0)


def test_unknown_target_gives_the_rank() -> None:
    """The length of the target is the rank."""
    assert infer_shape("Reshape", floats(A), tensor(DataType.INT64, (2,))) == (UNKNOWN_DIM, UNKNOWN_DIM)
    assert infer_shape("Reshape", floats(A), tensor(DataType.INT64)) is None
    assert infer_shape("Reshape", UNKNOWN, ints(2, 3)) is None


def test_target_was_an_attribute() -> None:
    """Before opset 5 the target is an attribute."""
    assert infer_shape("Reshape", floats(2, 3), version=1, shape=(3, -1)) == (3, 2)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ((4, -1), "6 elements of shape [2, 3] do not fill the target shape [4, -1]"),
        ((4, 2), "6 elements of shape [2, 3] do not fill the target shape [4, 2] of 8"),
        ((-1, -1), "more than one -1"),
        ((-2, 3), "has -2"),
        ((2, 3, 0), "copies dimension 2"),
    ],
)
def test_impossible_target_is_refused(target: tuple[int, ...], message: str) -> None:
    """What no element count can satisfy is an error with the sizes."""
    assert message in error_of("Reshape", floats(2, 3), ints(*target))


def test_elements_survive() -> None:
    """Reshape, Squeeze, Unsqueeze, Transpose, Flatten, Expand and Tile keep known elements."""
    assert infer_op("Unsqueeze", ints(A, 2), ints(0))[0].elements == [A, 2]
    assert infer_op("Reshape", ints(A, 2), ints(2, 1))[0].shape == (2, 1)
    assert infer_op("Expand", ints(A), ints(3))[0].elements == [A, A, A]
    assert infer_op("Tile", ints(A, 2), ints(2))[0].elements == [A, 2, A, 2]
    assert infer_op("Flatten", ints(A, 2), axis=0)[0].elements == [A, 2]


@pytest.mark.parametrize(("axis", "expected"), [(0, (1, 12 * A)), (1, (A, 12)), (-1, (3 * A, 4)), (3, (12 * A, 1))])
def test_flatten_makes_two_dimensions(axis: int, expected: tuple[Dim, ...]) -> None:
    """Flatten multiplies the dimensions on both sides of the axis."""
    assert infer_shape("Flatten", floats(A, 3, 4), axis=axis) == expected


def test_squeeze() -> None:
    """Named axes go, or all of size 1; with symbols the latter is unknown."""
    assert infer_shape("Squeeze", floats(1, A, 1), ints(0, -1)) == (A,)
    assert infer_shape("Squeeze", floats(1, 3, 1)) == (3,)
    assert infer_shape("Squeeze", floats(1, A)) is None
    assert infer_shape("Squeeze", floats(1, 3), version=11, axes=(0,)) == (3,)
    assert infer_shape("Squeeze", floats(1, 3, 1), ints()) == (3,)
    assert infer_shape("Squeeze", floats(1, 3), tensor(DataType.INT64, (1,))) == (UNKNOWN_DIM,)
    assert infer_shape("Squeeze", floats(1, 3, 1), tensor(DataType.INT64, (2,))) is None
    assert "only an axis of size 1" in error_of("Squeeze", floats(2, 3), ints(0))


def test_unsqueeze() -> None:
    """Ones are put where the axes say."""
    assert infer_shape("Unsqueeze", floats(A, B), ints(0, -1)) == (1, A, B, 1)
    assert infer_shape("Unsqueeze", floats(A), version=11, axes=(1,)) == (A, 1)
    assert infer_shape("Unsqueeze", floats(A), tensor(DataType.INT64, (1,))) == (UNKNOWN_DIM, UNKNOWN_DIM)
    assert "names an axis twice" in error_of("Unsqueeze", floats(A), ints(0, -3))


def test_transpose() -> None:
    """Perm reorders the axes, by default backwards."""
    assert infer_shape("Transpose", floats(A, B, 3), perm=(1, 0, 2)) == (B, A, 3)
    assert infer_shape("Transpose", floats(A, B, 3)) == (3, B, A)
    assert "no order of 2 axes" in error_of("Transpose", floats(A, B), perm=(0, 2))


def test_expand_broadcasts_both_ways() -> None:
    """The input may be larger than the target."""
    assert infer_shape("Expand", floats(A, 1), ints(1, 3)) == (A, 3)
    assert infer_shape("Expand", floats(3), ints(A, B, 1)) == (A, B, 3)
    assert infer_shape("Expand", floats(3), tensor(DataType.INT64, (2,))) == (UNKNOWN_DIM, UNKNOWN_DIM)


def test_tile_multiplies() -> None:
    """Each axis is repeated; before opset 6 one axis was."""
    assert infer_shape("Tile", floats(A, 3), ints(2, B)) == (2 * A, 3 * B)
    assert infer_shape("Tile", floats(A, 3), ints(2), ints(1), version=1) == (A, 6)
    assert "give one for each axis" in error_of("Tile", floats(A, 3), ints(2))


def test_blocks_between_depth_and_space() -> None:
    """DepthToSpace and SpaceToDepth move blocks between channels and axes."""
    assert infer_shape("DepthToSpace", floats(A, 12, B, 5), blocksize=2) == (A, 3, 2 * B, 10)
    assert infer_shape("SpaceToDepth", floats(A, 3, 2 * B, 10), blocksize=2) == (A, 12, B, 5)
    assert "do not divide" in error_of("DepthToSpace", floats(1, 10, 2, 2), blocksize=2)
    assert "does not divide" in error_of("SpaceToDepth", floats(1, 1, 3, 2), blocksize=2)


def test_unknown_input_stays_unknown() -> None:
    """Nothing is made up where the input's rank is unknown."""
    unknown: Fact = tensor(DataType.FLOAT)
    assert infer_shape("Squeeze", unknown, ints(0)) is None
    assert infer_shape("Unsqueeze", unknown, ints(0)) is None
    assert infer_shape("Flatten", unknown) == (UNKNOWN_DIM, UNKNOWN_DIM)
    assert infer_shape("Transpose", unknown, perm=(1, 0)) == (UNKNOWN_DIM, UNKNOWN_DIM)
