"""Types and dimensions of the text form."""

import pytest

from sardonyx.ir import symbol
from sardonyx.ir.shape import maximum
from sardonyx.ir.text_tokens import Tokens
from sardonyx.ir.text_types import parse_type, print_dim, print_float, print_type


@pytest.mark.parametrize(
    "text",
    [
        "float",
        "float[]",
        "float[2, batch]",
        'int4["a b", ?]',
        "seq(float[?])",
        "seq()",
        "optional(seq(string[2]))",
        "map(int64, float[])",
        "map(string)",
        "sparse_tensor(double[3, n])",
        "float[1 + 2*a, a*b, a^2, -1 + a]",
        "float[floordiv(a, 2), 1 + mod(a, b)]",
        "float[max(a, b), min(a, 3)]",
        'float[1 + "a-b"]',
        "string[_]",
    ],
)
def test_type_survives(text):
    """A type printed after parsing is the same text."""
    printed = print_type(parse_type(Tokens(text), {}), {})
    assert parse_type(Tokens(printed), {}) == parse_type(Tokens(text), {}) or "?" in text
    assert print_type(parse_type(Tokens(printed), {}), {}) == printed


def test_dimension_arithmetic_is_understood():
    """Products, sums and parentheses give the canonical expression."""
    a, b = symbol("a"), symbol("b")
    (dim, other) = parse_type(Tokens("float[(a + 1) * 2 - b, max(a, b)]"), {}).shape
    assert dim == 2 * a + 2 - b
    assert other == maximum(a, b)


def test_symbols_that_are_no_identifiers_are_quoted_in_expressions():
    """A quoted symbol keeps its quotes inside arithmetic."""
    assert print_dim(2 * symbol("a b") + symbol("c"), {}) == '2*"a b" + c'


@pytest.mark.parametrize(("value", "text"), [(1.0, "1.0"), (float("inf"), "inf"), (1e30, "1e+30"), (1e300, "1e+300"), (0.5, "0.5")])
def test_floats_show_that_they_are_no_integers(value, text):
    """A printed float has a point, an exponent or is nan or inf."""
    assert print_float(value) == text


def test_equal_types_are_read_once_and_unknown_dimensions_are_not_equal():
    """A type with names and numbers is the same object each time; `?` is another dimension each time."""
    tokens = Tokens("float[n, 2] float[n, 2] float[?] float[?] end")
    known, again, first, second = (parse_type(tokens, {}) for _ in range(4))
    assert known is again
    assert print_type(known, {}) == "float[n, 2]"
    assert first != second
    assert tokens.read().text == "end"
