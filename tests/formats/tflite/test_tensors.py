"""Tensors of TensorFlow Lite models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.flat_models import Sketch

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidFlatBuffer
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.flat.reader import read_root
from sardonyx.formats.flat.schema_tflite import TFLITE
from sardonyx.formats.tflite.tensors import TensorInfo


def _info(*args: Any, **fields: Any) -> TensorInfo:
    sketch = Sketch()
    sketch.tensor(*args, **fields)
    root = read_root(MemoryContent(memoryview(sketch.model())), TFLITE, "x")
    return TensorInfo.of(root.tables("subgraphs")[0].tables("tensors")[0], 0)


def test_a_dimension_that_a_run_decides_about_is_a_symbol() -> None:
    """The signature says which."""
    info = _info((1, 3), name="x", shape_signature=[-1, 3])
    dims = info.dims()
    assert dims is not None
    assert (str(dims[0]), dims[1], info.is_dynamic) == ("x_0", 3, True)


def test_an_empty_shape_without_a_rank_is_unknown() -> None:
    """Where it is not a scalar's."""
    assert _info((), has_rank=False).dims() is None
    assert _info((), has_rank=True).dims() == ()


def test_scales_belong_to_an_axis() -> None:
    """One for each index of it."""
    info = _info((2, 3), "INT8", ([0.1, 0.2, 0.3], [0, 0, 0], 1))
    assert info.quantization is not None
    assert (info.dtype, info.is_quantized, info.quantization.axis, info.quantization.is_per_tensor) == (
        DataType.INT8,
        True,
        1,
        False,
    )


def test_one_zero_point_serves_all_scales() -> None:
    """It is repeated."""
    info = _info((2,), "INT8", ([0.1, 0.2], [3]))
    assert info.quantization is not None
    np.testing.assert_array_equal(info.quantization.zero_points, [3, 3])


def test_scales_that_are_the_same_are_told() -> None:
    """With the same zero points and types."""
    one, same, other = _info((2,), "INT8", (0.1, 3)), _info((4,), "INT8", (0.1, 3)), _info((2,), "INT8", (0.1, 4))
    assert one.same_scale(same)
    assert not one.same_scale(other)
    assert not one.same_scale(_info((2,), "UINT8", (0.1, 3)))
    assert _info((2,)).same_scale(_info((2,), "INT32"))


@pytest.mark.parametrize(
    ("args", "fields", "message"),
    [
        (((2, 3), "INT8", ([0.1, 0.2], [0, 0], 1)), {}, "scale: there are 2 scales along axis 1 of a tensor of shape"),
        (((2, 3), "INT8", ([0.1, 0.2], [0, 0], 7)), {}, "scale: there are 2 scales along axis 7"),
        (((2, 3), "INT8", (0.1, [0, 0])), {}, "zero_point: there are 2 zero points for 1 scales"),
        (((2, 3), "INT8", (0.1, 300)), {}, "zero_point: a zero point is not within the int8"),
        (((2, 3), "INT8", (np.inf, 0)), {}, "scale: a scale is not finite"),
        (((-2, 3),), {}, r"shape: \[-2, 3\] are no sizes"),
        (((2**31 - 1,) * 3,), {}, "shape: "),
        (((2, 3),), {"shape_signature": [1]}, "shape_signature: it has 1 dimensions, and the shape 2"),
        (((2, 3), 77), {}, "type: 77 is no TensorType"),
        (
            ((2, 3),),
            {"quantization": {"details": ("MultiAxisQuantization", {}), "scale": [1.0]}},
            "details: MultiAxisQuantization is not supported",
        ),
        (
            ((2, 3),),
            {"quantization": {"details": ("BlockwiseQuantization", {})}},
            "details.block_size: it is 0",
        ),
    ],
)
def test_contradictions_are_refused(args: tuple[Any, ...], fields: dict[str, Any], message: str) -> None:
    """With the table and the field."""
    with pytest.raises(InvalidFlatBuffer, match=r"x: Model.subgraphs\[0\].tensors\[0\](.quantization)?." + message):
        _info(*args, **fields)
