"""Random operators."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.views.element_type import element_type
from sardonyx.ops.views.random import Dropout

__all__: list[str] = []


@shape_function("RandomNormal", "RandomUniform")
def from_shape(call: ShapeCall, *, shape: Sequence[int] | None = None, dtype: int = 1) -> Fact:
    """Return what the attributes say of shape and type."""
    return tensor(element_type(dtype, "dtype"), None if shape is None else tuple(shape))


@shape_function("Bernoulli", "RandomNormalLike", "RandomUniformLike")
def like(call: ShapeCall, x: Fact, *, dtype: int | None = None) -> Fact:
    """Give the output the input's shape, of the type `dtype` or else the input's."""
    return tensor(x.dtype if dtype is None else element_type(dtype, "dtype"), x.shape)


@shape_function("Multinomial")
def multinomial(call: ShapeCall, x: Fact, *, dtype: int = 6, sample_size: int = 1) -> Fact:
    """Infer (N, classes) -> (N, samples)."""
    batch = anonymous() if x.shape is None or not x.shape else x.shape[0]
    return tensor(element_type(dtype, "dtype"), (batch, sample_size))


@shape_function("Dropout")
def dropout(call: ShapeCall, x: Fact, ratio: Fact | None = None, training: Fact | None = None) -> tuple[Fact, ...]:
    """Give the output the shape and type of the input; the mask is bool from opset 10 on."""
    return tensor(x.dtype, x.shape), tensor(DataType.BOOL if Dropout.of(call).has_flag_mask else x.dtype, x.shape)
