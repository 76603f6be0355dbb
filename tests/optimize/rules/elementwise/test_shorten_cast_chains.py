"""Casts before casts, whatever they lose."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.dtypes import DataType
from sardonyx.optimize.rules.elementwise.shorten_cast_chains import SHORTEN_CAST_CHAINS


def text(source, middle, target):
    to = [int(DataType.parse(name)) for name in (middle, target)]
    return f"graph(x: {source}[7]) -> (y: {target}[7]) {{ a = Cast(x) {{to = {to[0]}}} y = Cast(a) {{to = {to[1]}}} }}"


@pytest.mark.parametrize(
    ("source", "middle", "target"),
    [
        ("float", "float16", "float"),
        ("float", "int32", "float"),
        ("int64", "float", "int8"),
    ],
)
def test_fires(source, middle, target):
    """One cast is left, to the last type; numbers agree within what the middle type holds."""
    model, fired = apply_rule(SHORTEN_CAST_CHAINS, text(source, middle, target), rtol=1.0)
    assert fired == 1
    assert operators(model) == ["Cast"]


@pytest.mark.parametrize(
    ("source", "middle", "target"),
    [
        ("float", "bool", "float"),
        ("float", "int32", "string"),
        ("bool", "int8", "float"),
    ],
)
def test_declines(source, middle, target):
    """Bools and strings."""
    assert "a cast is from or to" in declines(SHORTEN_CAST_CHAINS, text(source, middle, target))
