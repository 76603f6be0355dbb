"""Facts about axes and merged shapes."""

from __future__ import annotations

import pytest
from support.infer_op import A, B, floats

from sardonyx.errors import InvalidGraph
from sardonyx.ir.shape import anonymous, is_anonymous
from sardonyx.ops.fact import UNKNOWN
from sardonyx.ops.shapes.axes import (
    merge_dims,
    merge_shapes,
    merge_width,
    replace_dim,
    require_rank,
    size_of,
    unknown_shape,
)


def test_rank_is_required() -> None:
    """A known rank must lie in the range; an unknown one passes."""
    assert require_rank(floats(1, 2), "X", 2, 2) == (1, 2)
    assert require_rank(UNKNOWN, "X", 2) is None
    with pytest.raises(InvalidGraph, match=r"X has shape \[1, 2\] of rank 2, expected rank at least 3"):
        require_rank(floats(1, 2), "X", 3)


def test_replacing_and_multiplying() -> None:
    """Dimensions are replaced by place and multiplied symbolically."""
    assert replace_dim((1, 2, 3), 1, A) == (1, A, 3)
    assert size_of((2, A, 3)) == 6 * A
    assert size_of(()) == 1
    assert len(unknown_shape(3)) == 3


def test_product_of_many_long_dimensions_is_unknown() -> None:
    """A product that would be too long an expression is anonymous."""
    assert is_anonymous(size_of([A + B + 1] * 40))


def test_merging_takes_the_better_known() -> None:
    """Integers beat symbols, symbols beat anonymous dimensions."""
    unknown = anonymous()
    assert merge_dims(A, 3) == 3
    assert merge_dims(unknown, A) == A
    assert merge_shapes((A, unknown), (2, B)) == (2, B)
    assert merge_shapes(None, (1,)) == (1,)


def test_different_integers_do_not_merge() -> None:
    """Two sizes that must be equal and are not raise an error with both."""
    with pytest.raises(InvalidGraph, match="got 2 and 3"):
        merge_shapes((2,), (3,))
    with pytest.raises(InvalidGraph, match="one rank"):
        merge_shapes((2,), (2, 3))


def test_vectors_along_the_last_axis_show_its_length() -> None:
    """Those of one dimension do; a different number is refused."""
    assert merge_width((A, B), None, floats(4), floats(2, 3), UNKNOWN) == (A, 4)
    assert merge_width(None, floats(4)) is None
    assert merge_width((), floats(4)) == ()
    with pytest.raises(InvalidGraph, match="the last axis and a vector along it must be equal, got 3 and 4"):
        merge_width((A, 3), floats(4))
