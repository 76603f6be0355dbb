"""Facts about operators of com.microsoft that arrange arrays."""

from __future__ import annotations

from typing import Any

import pytest
from support.infer_op import UNKNOWN_DIM, A, B, floats, infer_op, infer_shape, ints, plain, scalar

from sardonyx import errors
from sardonyx.dtypes import DataType
from sardonyx.ir import Shape
from sardonyx.ops.fact import Fact, tensor

BYTE = tensor(DataType.UINT8, (A, 4))
POINT = tensor(DataType.UINT8, ())
MICROSOFT = "com.microsoft"


def shape_of(op_type: str, *inputs: Fact | None, **attributes: Any) -> Shape | None:
    return infer_shape(op_type, *inputs, domain=MICROSOFT, **attributes)


def test_windows_get_a_new_axis() -> None:
    """UnfoldTensor counts windows along an axis and puts their elements last."""
    assert shape_of("UnfoldTensor", floats(A, 10), dim=1, size=4, step=2) == (A, 4, 4)


def test_distances_pair_rows() -> None:
    """CDist has a row for each row of A and a column for each of B."""
    assert shape_of("CDist", floats(A, 3), floats(B, 3)) == (A, B)


def test_channels_last_pool() -> None:
    """NhwcMaxPool slides over the axes between batch and channels."""
    assert shape_of("NhwcMaxPool", floats(A, 8, 8, 3), kernel_shape=(2, 2), strides=(2, 2)) == (A, 4, 4, 3)


def test_inserted_dimension() -> None:
    """ExpandDims puts a 1 where its second input says."""
    assert shape_of("ExpandDims", floats(A, B), scalar(-1)) == (A, B, 1)
    assert shape_of("ExpandDims", floats(A), tensor(DataType.INT32, ())) == (UNKNOWN_DIM, UNKNOWN_DIM)


def test_what_depends_on_the_data() -> None:
    """The path of a warping and the number of distinct elements are known only afterwards."""
    assert shape_of("DynamicTimeWarping", floats(3, 4)) == (2, UNKNOWN_DIM)
    assert [plain(fact) for fact in infer_op("Unique", floats(A), domain=MICROSOFT, outputs=3)] == [
        (UNKNOWN_DIM,),
        (A,),
        (UNKNOWN_DIM,),
    ]


def test_aliases_of_the_standard() -> None:
    """Range, Pad, GatherND, GridSample and Trilu are as in ai.onnx."""
    assert infer_op("Range", scalar(1), scalar(4), domain=MICROSOFT)[0].elements == [1, 2, 3]
    assert shape_of("Pad", floats(A), ints(1, 2)) == (A + 3,)
    assert shape_of("GatherND", floats(4, 5), tensor(DataType.INT64, (A, 2))) == (A,)
    assert shape_of("Trilu", floats(A, B)) == (A, B)
    assert shape_of("NGramRepeatBlock", tensor(DataType.INT64, (A, B)), floats(A, 100)) == (A, 100)


def test_a_metric_that_onnxruntime_lacks_is_not_implemented() -> None:
    """CDist knows two, when the session is made."""
    with pytest.raises(errors.NotImplemented, match="metric is 'minkowski'; only euclidean and sqeuclidean"):
        shape_of("CDist", floats(A, 3), floats(B, 3), metric="minkowski")
