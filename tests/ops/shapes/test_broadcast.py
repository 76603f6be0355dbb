"""Facts about broadcasting of symbolic shapes."""

from __future__ import annotations

import pytest
from support.infer_op import A, B

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim
from sardonyx.ir.shape import anonymous, evaluate, maximum, minimum
from sardonyx.ops.shapes.broadcast import broadcast, broadcast_dims
from sardonyx.ops.zero_sizes import with_zero_sizes


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 5, 5),
        (5, 5, 5),
        (A, 1, A),
        (A, A, A),
        (A, 7, 7),
        (0, A, 0),
        (A, A + B, A + B),
        (minimum(A, 512 - B), A, A),
        (A, maximum(0, A - 1 + 1), A),
        (A // 2 - 1, maximum(A // 2 - 1, 0), A // 2 - 1),
    ],
)
def test_pairs_of_dimensions(left: Dim, right: Dim, expected: Dim) -> None:
    """Whatever can be told of two dimensions is, in both orders."""
    assert broadcast_dims(left, right) == expected
    assert broadcast_dims(right, left) == expected


def test_of_unrelated_symbols_the_greater_is_taken() -> None:
    """Either may be 1."""
    assert broadcast_dims(A, B) == maximum(A, B)
    unknown = anonymous()
    assert broadcast_dims(unknown, unknown) == unknown


def test_a_build_for_sizes_of_zero_takes_what_either_makes() -> None:
    """0 where one of them is 0 and the other 1, or 0; the greater else."""
    with with_zero_sizes(True):
        found = broadcast_dims(A, B)
        summed = broadcast_dims(A, A + B)
    for a, b, size in [(0, 1, 0), (1, 0, 0), (0, 0, 0), (1, 1, 1), (1, 5, 5), (5, 1, 5), (5, 5, 5)]:
        assert evaluate(found, {"a": a, "b": b}) == size
    assert [evaluate(summed, {"a": a, "b": b}) for a, b in [(0, 1), (1, 1), (3, 0), (1, 0)]] == [0, 2, 3, 1]


def test_shapes_align_at_the_right() -> None:
    """Missing leading dimensions count as 1."""
    assert broadcast([(3, 1), (A, 1, 4), ()]) == (A, 3, 4)
    assert broadcast([]) == ()
    assert broadcast([(1,), None]) is None


def test_contradiction_is_refused() -> None:
    """Two different integers above 1 do not broadcast."""
    with pytest.raises(InvalidGraph, match=r"shapes \[2, 3\] and \[4\] do not broadcast: 3 and 4 differ"):
        broadcast([(2, 3), (4,)])
