"""Nodes that are claimed as sizes."""

from sardonyx.ir.shape import symbol
from sardonyx.providers.cpu.size_claims import symbols_of


def test_symbols_of_elements_are_named_once() -> None:
    """In the order in which they come."""
    n = symbol("N")
    assert symbols_of(((n, 3), (symbol("M") * n,))) == ["N", "M"]
