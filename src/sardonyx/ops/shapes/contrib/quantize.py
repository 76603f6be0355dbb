"""Quantized look-up of com.microsoft."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.element_type import element_type

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("GatherBlockQuantized", domain=_MICROSOFT)
def gather_block_quantized(
    call: ShapeCall,
    data: Fact,
    indices: Fact,
    scales: Fact,
    zero_points: Fact | None = None,
    *,
    gather_axis: int = 0,
    quantize_axis: int = 1,
    bits: int = 4,
) -> Fact:
    """Infer as for Gather of the dequantized data, of which uint8 packs 8 / bits elements along the last axis."""
    if not data.shape or indices.shape is None or data.dtype is None:
        return tensor(scales.dtype)
    packed = 8 // bits if data.dtype is DataType.UINT8 else 1
    shape = (*data.shape[:-1], data.shape[-1] * packed)
    axis = normalize_axis(gather_axis, len(shape), "gather_axis")
    return tensor(scales.dtype, shape[:axis] + indices.shape + shape[axis + 1 :])


@shape_function("GatherPacked", domain=_MICROSOFT)
def gather_packed(call: ShapeCall, data: Fact, indices: Fact, *, K: int, output_dtype: int = int(DataType.BFLOAT16)) -> Fact:
    """Infer rows of K weights of the type that `output_dtype` names, in the order of the indices."""
    require_rank(data, "data", 2, 2)
    dtype = element_type(output_dtype, "output_dtype")
    return tensor(dtype) if indices.shape is None else tensor(dtype, (*indices.shape, K))
