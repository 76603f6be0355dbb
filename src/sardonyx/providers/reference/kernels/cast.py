"""Conversion between element types.

    Cast        by value; what does not fit follows the tables of ONNX Cast-25
    CastLike    by value, to the type of another tensor
    BitCast     by bits, between types of one width

Out of range: a float to an integer is undefined by the standard (here: what the machine's conversion gives); an integer to an
integer keeps the low bits; a float to a float gives infinity, or saturates where `convert_narrow` says so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array, DataType, bit_width, is_float
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.cast_float import NARROW_FLOATS, convert_narrow
from sardonyx.providers.reference.algorithms.cast_string import parse_strings, print_numbers
from sardonyx.providers.reference.algorithms.element_types import element_type
from sardonyx.providers.reference.algorithms.half import from_half, to_half
from sardonyx.providers.reference.algorithms.precision import quiet
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["bit_cast", "cast", "cast_1", "cast_like", "convert"]

_SUB_BYTE_INTEGERS = {DataType.INT4, DataType.UINT4, DataType.INT2, DataType.UINT2}


@kernel("Cast", since=1)
@quiet
def cast_1(_node: Call, x: Array, *, to: str) -> Array:
    """Convert x to the type named `to`, such as "FLOAT"; same shape out. ONNX Cast-1."""
    try:
        wanted = DataType.parse(to)
    except KeyError as error:
        raise InvalidArgument(f"to={to!r} is no data type; expected a name such as 'FLOAT'") from error
    return convert(x, wanted, saturate=True, round_mode="up")


@kernel("Cast", since=6)
@quiet
def cast(_node: Call, x: Array, *, to: int, saturate: int = 1, round_mode: str = "up") -> Array:
    """Convert x to type `to`; same shape out. ONNX Cast-6 to Cast-28.

    `saturate` and `round_mode` (up, down, nearest) matter to float8 types only, the latter to float8e8m0 only.
    """
    return convert(x, element_type(to, "to"), saturate=bool(saturate), round_mode=round_mode)


@kernel("CastLike")
@quiet
def cast_like(_node: Call, x: Array, target: Array, *, saturate: int = 1, round_mode: str = "up") -> Array:
    """Convert x to the type of `target`, as Cast does; same shape out. ONNX CastLike-15 to CastLike-25."""
    return convert(x, DataType.from_numpy(target.dtype), saturate=bool(saturate), round_mode=round_mode)


@kernel("BitCast")
def bit_cast(_node: Call, x: Array, *, to: int) -> Array:
    """Read the bits of x as type `to` of the same width; same shape out. A bool is its low bit. ONNX BitCast-26."""
    source, wanted = DataType.from_numpy(x.dtype), element_type(to, "to")
    if DataType.STRING in (source, wanted):
        raise InvalidArgument(f"cannot read {source} as {wanted}: strings have no bits to reinterpret")
    if bit_width(source) != bit_width(wanted):
        raise InvalidArgument(
            f"{source} has {bit_width(source)} bits and {wanted} {bit_width(wanted)}; expected types of one width"
        )
    if wanted is DataType.BOOL:
        return (x.view(np.uint8) & 1).astype(np.bool_)
    return x.view(wanted.numpy)


def convert(x: Array, wanted: DataType, *, saturate: bool, round_mode: str) -> Array:
    """Return `x` as type `wanted`; `x` itself where it has that type. Call it with floating-point warnings ignored."""
    source = DataType.from_numpy(x.dtype)
    if source is wanted:
        return x
    if source is DataType.STRING:
        number = parse_strings(x, wanted)
        return convert(number, wanted, saturate=saturate, round_mode=round_mode)
    plain = _PLAIN.get(source, _unchanged)(x)
    if wanted is DataType.STRING:
        return print_numbers(plain, x.dtype)
    if wanted in NARROW_FLOATS:
        return convert_narrow(plain, wanted, saturate=saturate, round_mode=round_mode)
    if wanted in _SUB_BYTE_INTEGERS and plain.dtype.kind == "f":
        plain = plain.astype(np.int32)
    if wanted is DataType.FLOAT16 and plain.dtype == np.float32:
        return to_half(plain)
    return from_half(plain).astype(wanted.numpy, copy=False) if source is DataType.FLOAT16 else plain.astype(wanted.numpy)


def _unchanged(x: Array) -> Array:
    return x


def _to(dtype: type[np.generic]) -> Callable[[Array], Array]:
    return lambda x: x.astype(dtype)


_PLAIN: dict[DataType, Callable[[Array], Array]] = {
    **{item: _to(np.float32) for item in DataType if is_float(item) and item not in (DataType.FLOAT16, DataType.DOUBLE)},
    DataType.FLOAT: _unchanged,
    DataType.INT4: _to(np.int8),
    DataType.INT2: _to(np.int8),
    DataType.UINT4: _to(np.uint8),
    DataType.UINT2: _to(np.uint8),
}
"""How a tensor reaches a type of NumPy's own that holds every value of it; types that are absent are their own."""
