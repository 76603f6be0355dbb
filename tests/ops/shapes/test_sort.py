"""Facts about sorting and selecting."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, error_of, floats, infer_op, infer_shape, ints, plain

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor


def test_top_k() -> None:
    """The axis becomes k, for values and indices."""
    values, places = infer_op("TopK", floats(A, 10), ints(3), outputs=2)
    assert values.shape == places.shape == (A, 3)
    assert places.dtype is DataType.INT64
    assert infer_shape("TopK", floats(A, 10), tensor(DataType.INT64, (1,)), axis=0) == (UNKNOWN_DIM, 10)
    assert infer_shape("TopK", floats(A, 10), version=1, k=2) == (A, 2)
    assert "k is 11" in error_of("TopK", floats(A, 10), ints(11))


def test_selected_boxes_depend_on_the_data() -> None:
    """NonMaxSuppression gives rows of three."""
    assert infer_shape("NonMaxSuppression", floats(1, 8400, 4), floats(1, 80, 8400)) == (UNKNOWN_DIM, 3)


def test_unique() -> None:
    """How many differ depends on the data; the inverse is as long as the axis, or as there are elements."""
    facts = infer_op("Unique", floats(A, 3), outputs=4, axis=0)
    assert [plain(fact) for fact in facts] == [(UNKNOWN_DIM, 3), (UNKNOWN_DIM,), (A,), (UNKNOWN_DIM,)]
    facts = infer_op("Unique", floats(A, 3), outputs=4)
    assert [plain(fact) for fact in facts] == [(UNKNOWN_DIM,), (UNKNOWN_DIM,), (A * 3,), (UNKNOWN_DIM,)]
