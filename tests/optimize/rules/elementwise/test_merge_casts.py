"""Casts by way of a type that holds every value."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.dtypes import DataType
from sardonyx.optimize.rules.elementwise.merge_casts import MERGE_CASTS


def text(source, middle, target):
    to = [int(DataType.parse(name)) for name in (middle, target)]
    return f"graph(x: {source}[7]) -> (y: {target}[7]) {{ a = Cast(x) {{to = {to[0]}}} y = Cast(a) {{to = {to[1]}}} }}"


@pytest.mark.parametrize(
    ("source", "middle", "target"),
    [
        ("float", "double", "float16"),
        ("int8", "int32", "float"),
        ("uint8", "int16", "int8"),
        ("int16", "float", "double"),
        ("float16", "float", "int32"),
        ("int32", "double", "int64"),
        ("bfloat16", "float", "double"),
    ],
)
def test_fires_with_the_same_numbers(source, middle, target):
    """A cast to a wider type before another cast is skipped."""
    model, fired = apply_rule(MERGE_CASTS, text(source, middle, target), rtol=0)
    assert fired == 1
    assert operators(model) == ["Cast"]


def test_cast_there_and_back_goes():
    """A cast to a wider type and back leaves the value itself."""
    model, fired = apply_rule(MERGE_CASTS, text("float16", "float", "float16"), rtol=0)
    assert fired == 1
    assert operators(model) == ["Identity"]


@pytest.mark.parametrize(
    ("source", "middle", "target", "reason"),
    [
        ("float", "float16", "float", "float16 does not hold every value of float"),
        ("int64", "double", "int32", "int64 to int32 wraps, double to int32 does not"),
        ("uint8", "float", "int8", "uint8 to int8 wraps, float to int8 does not"),
        ("int32", "float", "double", "float does not hold every value of int32"),
        ("int8", "uint8", "int16", "uint8 does not hold every value of int8"),
        ("float", "double", "string", "casts to string have rules of their own"),
        ("float", "double", "float8e4m3fn", "casts to float8e4m3fn have rules of their own"),
        ("bool", "float", "int32", "float does not hold every value of bool"),
        ("float", "bool", "float", "bool does not hold every value of float"),
    ],
)
def test_declines(source, middle, target, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(MERGE_CASTS, text(source, middle, target))


def test_declines_an_unknown_type():
    """Where the type of the value is unknown the rule leaves it alone."""
    assert "unknown" in declines(MERGE_CASTS, "graph(x) -> (y) { a = Cast(x) {to = 11} y = Cast(a) {to = 1} }")
