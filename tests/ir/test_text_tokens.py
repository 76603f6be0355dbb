"""Tokens of the text form."""

import pytest

from sardonyx.errors import InvalidGraph
from sardonyx.ir.text_tokens import Tokens, quoted, spelled


@pytest.mark.parametrize("name", ["x", "/model/layers.0/MatMul_output_0", "onnx::Conv_12", "a.b", "com.microsoft.Gelu", "::x"])
def test_usual_names_are_bare(name):
    """Names that exporters make need no quotes and are one token."""
    assert spelled(name) == name
    assert Tokens(name).read()[:2] == ("name", name)


@pytest.mark.parametrize("name", ["", "_", "1", "a b", "x-1", "é", 'q"', "a:b", "\udcff"])
def test_other_names_are_quoted(name):
    """Any other name is quoted, and comes back."""
    assert spelled(name) == quoted(name)
    assert Tokens(quoted(name)).read()[:2] == ("string", name)


def test_marks_are_split():
    """Arrows and ellipses are single tokens, signs are not part of numbers."""
    tokens = Tokens("->... -1.5e-3?a %1")
    assert [tokens.read().text for _ in range(6)] == ["->", "...", "-", "1.5e-3", "?a", "%1"]


def test_reading_past_the_end_stays_there():
    """The end can be read any number of times."""
    tokens = Tokens("")
    assert [tokens.read().kind for _ in range(3)] == ["end"] * 3


def test_expect_names_what_stands_there():
    """A mark that is missing raises with the place and what was found."""
    with pytest.raises(InvalidGraph, match=r"line 2, column 3: expected '\(' before inputs, found 'x'"):
        _at_second_line().expect("(", "before inputs")


def _at_second_line():
    tokens = Tokens("a\n  x")
    tokens.read()
    return tokens


def test_bracketed_text_is_numbers_and_names_only():
    """Strings may hold a bracket, and unknown dimensions are others each time."""
    texts = ["float[n, 2*m] x", 'float["a]b"]', "float[?]", "float, y: int[3]", "seq(float[3])", "float[n #]\n]"]
    assert [Tokens(text).bracketed() for text in texts] == ["float[n, 2*m]", "", "", "", "", ""]
    tokens = Tokens(texts[0])
    tokens.skip(8)
    assert (tokens.count_read, tokens.read().text) == (8, "x")
