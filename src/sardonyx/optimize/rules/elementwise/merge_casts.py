"""Skip a cast to a type that holds every value of the type before it.

    Cast(Cast(x, to=B), to=C)      ->      Cast(x, to=C), or x where C is the type of x      for B that holds all values of x's type

Left alone:
    a first cast that may round, clip or wrap: the values differ
    an unknown type of x
    integers that go to narrower integers by way of a float: they would wrap instead
    booleans and strings: casts from them have rules of their own
    float8 targets: with saturate they treat infinities in their own way
The inner cast stays where it has other users.
"""

from __future__ import annotations

from sardonyx.dtypes import DataType, bit_width, is_float, is_integer, is_signed
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["MERGE_CASTS"]

_SIGNIFICAND_BITS = {DataType.BFLOAT16: 8, DataType.FLOAT16: 11, DataType.FLOAT: 24, DataType.DOUBLE: 53}
_WIDER_FLOATS = {
    DataType.BFLOAT16: {DataType.FLOAT, DataType.DOUBLE},
    DataType.FLOAT16: {DataType.FLOAT, DataType.DOUBLE},
    DataType.FLOAT: {DataType.DOUBLE},
}


def _pattern(op: PatternBuilder, x: Term) -> Term:
    return op.Cast(op.Cast(x, to=op.attribute("middle"), _as="inner", _shared=True), to=op.attribute("to"))


def _check(match: Match) -> str | None:
    source, middle, target = match["x"].dtype, DataType(match.attribute("middle")), DataType(match.attribute("to"))
    if source is None:
        return "the type of the value is unknown"
    if target not in _SIGNIFICAND_BITS and not is_integer(target):
        return f"casts to {target} have rules of their own"
    if is_integer(source) and is_float(middle) and is_integer(target) and not _holds(source, target):
        return f"{source} to {target} wraps, {middle} to {target} does not"
    return None if _holds(source, middle) else f"{middle} does not hold every value of {source}"


def _holds(source: DataType, middle: DataType) -> bool:
    """Return whether a cast from `source` to `middle` changes no value."""
    if source is middle:
        return True
    if is_float(source):
        return middle in _WIDER_FLOATS.get(source, ())
    if not is_integer(source):
        return False
    bits = bit_width(source) - is_signed(source)
    if is_integer(middle):
        return bit_width(middle) - is_signed(middle) >= bits and (is_signed(middle) or not is_signed(source))
    return bits <= _SIGNIFICAND_BITS.get(middle, 0) and middle is not DataType.FLOAT16


def _replace(op: Builder, match: Match, learned: None) -> Value:
    target = match.attribute("to")
    return match["x"] if match["x"].dtype == target else op.Cast(match["x"], _attributes=match.root.attributes)


MERGE_CASTS = Rule("merge_casts", _pattern, _replace, _check)
