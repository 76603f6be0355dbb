"""What makes sums of stored bytes sums of numbers: zero points of both sides, and the bias.

With what is stored in the place of x and w, 128 more or less where a sign is turned, and zero points that moved along,

    sum (x - zx)(w - zw) + bias  =  sum x w  +  offset  +  factor * sum x
    offset = bias + zx (K zw - sum w)                   factor = -zw

An offset is a constant; where the zero point of the input, or the filters, are known only when the model runs, a step computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument, constant
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.kernels.quantized.dot_filters import offset_places
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Value
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.kernels.elementwise import MapKernel, broadcast_walk
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["Corrections", "Stored", "SumParts", "correct_sums", "filters_shape", "map_to", "stored_zeros"]

_HALF_RANGE = 128


@dataclasses.dataclass(frozen=True, slots=True)
class SumParts:
    """What a sum is made of, besides the data."""

    filters: Value
    """The filters (M, …), whose shape is known."""
    x_zero: Value | None
    """The zero point of the data, one element."""
    w_zero: Value | None
    """Those of the filters, a constant: one, or one for each of M."""
    bias: Value | None
    """What is added, a constant (M,) of int32."""


@dataclasses.dataclass(frozen=True, slots=True)
class Stored:
    """How a kernel takes its operands."""

    signed: bool
    """Whether filters are stored as int8; as uint8 else."""
    lifted: bool = False
    """Whether it takes int8 data as uint8, 128 more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Corrections:
    """What a kernel reads besides its operands."""

    zero: Buffer
    """The zero point of the data, one element."""
    border: Buffer
    """As many of them as were asked for."""
    offsets: Buffer
    """What is added to the sum of each column."""
    factors: Buffer
    """What the sum of the data is multiplied by, for each column; kernels that share one factor read the first."""


def stored_zeros(dtype: DataType | None, zeros: Array | None, *, signed: bool) -> Array:
    """Return the zero points (int64) of filters of `dtype` as they are stored, int8 or uint8."""
    numbers = np.zeros(1, np.int64) if zeros is None else zeros.reshape(-1).astype(np.int64)
    return numbers + _shift(dtype is DataType.INT8, signed=signed)


def _shift(was_signed: bool, *, signed: bool) -> int:
    return (_HALF_RANGE if was_signed else 0) - (_HALF_RANGE if signed else 0)


def correct_sums(
    low: Lowering,
    parts: SumParts,
    data: DataType,
    stored: Stored,
    border: int,
    columns: tuple[int, int],
    sums: Buffer | None = None,
) -> Corrections:
    """Return what a kernel needs, with the steps that compute it where the zero point of the data is no constant.

    Args:
        low: the partition.
        parts: what the sums are made of.
        data: the type of the data.
        stored: how the kernel takes its operands.
        border: how many zero points of the data it reads in the padding.
        columns: how many groups of columns there are, and the width of a panel; offsets are placed so.
        sums: of the filters as they are stored, placed so, where they are no constant.
    """
    zero = parts.x_zero
    zeros = stored_zeros(parts.filters.dtype, constant_of(parts.w_zero), signed=stored.signed)
    factors = low.constant(_factors(zeros, filters_shape(parts)[0], columns))
    bias = None if parts.bias is None else low.elements(parts.bias)
    lift = _HALF_RANGE if stored.lifted else 0
    if sums is not None:
        return _correct_computed(low, parts, data, (zeros, bias, lift), border, columns, (sums, factors))
    numbers = (low.elements(parts.filters), zeros, stored.signed)
    if zero is None or zero.constant is not None:
        element = np.zeros(1, data.numpy) if zero is None else low.elements(zero).reshape(1)
        offsets = low.packed(_offsets, (*numbers, bias, int(element[0]) + lift), *columns, of=None)
        return Corrections(low.constant(element), low.constant(np.repeat(element, border)), offsets, factors)
    kind = element_type(data) or I32
    one = Buffer(data, (1,), base=low.of(zero))
    starts = low.packed(_offsets, (*numbers, bias, lift), *columns, of=None)
    slopes = low.packed(_offsets, (*numbers, None, 1), *columns, of=None)
    sloped = argument(0, I32) + argument(1, I32) * argument(2, kind).to(I32)
    repeated = map_to(low, _NAME, argument(0, kind), [one], low.temporary(data, (border,)))
    offsets = map_to(low, _NAME, sloped, [starts, slopes, one], low.temporary(DataType.INT32, slopes.shape))
    return Corrections(one, repeated, offsets, factors)


def _correct_computed(
    low: Lowering,
    parts: SumParts,
    data: DataType,
    numbers: tuple[Array, Array | None, int],
    border: int,
    columns: tuple[int, int],
    computed: tuple[Buffer, Buffer],
) -> Corrections:
    """Return what `correct_sums` does where a step makes the sums of the filters; `computed` are these and the factors."""
    (zeros, bias, lift), (sums, factors), (M, *rest) = numbers, computed, filters_shape(parts)
    whole = offset_places(np.array(np.broadcast_to(prod(rest) * zeros, (M,))).astype(np.int32), *columns)
    start = offset_places(np.zeros(M, np.int32) if bias is None else bias.astype(np.int32), *columns)
    zero, kind = parts.x_zero, element_type(data) or I32
    if zero is None or zero.constant is not None:
        one = low.constant(np.zeros(1, data.numpy) if zero is None else low.elements(zero).reshape(1))
    else:
        one = Buffer(data, (1,), base=low.of(zero))
    lifted = argument(3, kind).to(I32) + constant(lift, I32)
    expr = argument(0, I32) + (argument(1, I32) - argument(2, I32)) * lifted
    held = [low.constant(start), low.constant(whole), sums, one]
    offsets = map_to(low, _NAME, expr, held, low.temporary(DataType.INT32, sums.shape))
    repeated = map_to(low, _NAME, argument(0, kind), [one], low.temporary(data, (border,)))
    return Corrections(one, repeated, offsets, factors)


def filters_shape(parts: SumParts) -> tuple[int, ...]:
    """Return the shape of the filters, all of whose sizes are known."""
    return tuple(size for size in parts.filters.shape or () if isinstance(size, int))


def _factors(zeros: Array, M: int, columns: tuple[int, int]) -> Array:
    return offset_places(np.broadcast_to(-zeros, (M,)).astype(np.int32), *columns)


def _offsets(elements: tuple[Array, Array, bool, Array | None, int], groups: int, width: int) -> Array:
    """Return bias + x_zero * (K * w_zero - the sum of the filters as stored) for each column, wrapped to int32."""
    weights, zeros, signed, bias, x_zero = elements
    K = prod(weights.shape[1:])
    sums = weights.reshape(len(weights), K).sum(axis=1, dtype=np.int64) + K * _shift(weights.dtype == np.int8, signed=signed)
    offsets = x_zero * (K * zeros - sums)
    if bias is not None:
        offsets = offsets + bias
    return offset_places(offsets.astype(np.int32), groups, width)


_NAME = "ZeroPoint"


def map_to(low: Lowering, name: str, expr: ElementExpr, inputs: Sequence[Buffer], result: Buffer) -> Buffer:
    """Add a step that computes each element of `result` from those of `inputs`, which broadcast to it; return `result`."""
    walk = broadcast_walk(result.shape, [buffer.shape for buffer in inputs])
    kinds = tuple(kind for buffer in inputs if (kind := element_type(buffer.dtype)) is not None)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = walk.params(sizes)
        return params.words(), params.tasks()

    symbol = low.kernel(MapKernel("map", kinds, (expr,), tuple(walk.accesses())))
    low.move(name, symbol, [*inputs, result], plan)
    return result
