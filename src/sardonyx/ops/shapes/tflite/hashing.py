"""Operators of sardonyx.tflite that hash text and numbers, and draw random bits."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.schemas_tflite import DOMAIN
from sardonyx.ops.shapes.axes import require_rank
from sardonyx.ops.views.element_type import element_type

__all__: list[str] = []


@shape_function("LshProjection", domain=DOMAIN)
def lsh_projection(call: ShapeCall, seeds: Fact, x: Fact, weights: Fact | None = None, *, is_sparse: int) -> Fact:
    """Infer a number for each function, or for each of its bits."""
    shape = require_rank(seeds, "seeds", 2, 2)
    if shape is None:
        return tensor(DataType.INT32, (anonymous(),))
    return tensor(DataType.INT32, (shape[0] if is_sparse else shape[0] * shape[1],))


@shape_function("SkipGram", domain=DOMAIN)
def skip_gram(call: ShapeCall, x: Fact) -> Fact:
    """Infer as many strings as the text shows."""
    return tensor(x.dtype, (anonymous(),))


@shape_function("RngBitGenerator", domain=DOMAIN)
def random_bits(call: ShapeCall, state: Fact, *, shape: Sequence[int], to: int) -> tuple[Fact, Fact]:
    """Infer the next state, and the bits."""
    return tensor(DataType.UINT64, state.shape), tensor(element_type(to, "to"), tuple(shape))
