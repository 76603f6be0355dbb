"""Facts about com.microsoft's operators on strings, as ONNX Runtime runs them."""

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument


def tokens(*texts, mark=0, mincharnum=1, pad_value="#", **rules):
    x = np.empty(len(texts), object)
    x[:] = texts
    found = run_op("Tokenizer", x, domain="com.microsoft", mark=mark, mincharnum=mincharnum, pad_value=pad_value, **rules)
    return found.tolist()


def test_tokens_are_what_an_expression_matches():
    """Whole matches count, groups or not, if they are long enough."""
    assert tokens("Hello, a1 bb", "", tokenexp="[a-z0-9]+") == [["ello", "a1", "bb"], ["#", "#", "#"]]
    assert tokens("Hello, a1 bb", tokenexp="[a-zA-Z]+", mincharnum=3) == [["Hello"]]
    assert tokens("ab cd", tokenexp="([a-z])d") == [["cd"]]
    assert tokens("abab", tokenexp="a*") == [["a", "a"]]


def test_tokens_lie_between_separators():
    """Separators are patterns, and cut one after another."""
    assert tokens("a b c", "d  e", separators=[" "]) == [["a", "b", "c"], ["d", "e", "#"]]
    assert tokens("ab b,c,,ddd", separators=[" ", ","], mincharnum=2) == [["ab", "ddd"]]
    assert tokens("abcabdab", separators=["ab", "abc"]) == [["c", "d"]]
    assert tokens("abcabdab", separators=["abc", "ab"]) == [["d"]]
    assert tokens("a.b", separators=["\\."]) == [["a", "b"]]


def test_patterns_match_as_much_as_they_can():
    """As in ONNX Runtime, not the first alternative but the longest counts."""
    assert tokens("xabyaz", separators=["a|ab"]) == [["x", "y", "z"]]
    assert tokens("xabyab", tokenexp="a|x|ab") == [["x", "ab", "ab"]]
    assert tokens("aab", tokenexp="a*?b?") == [["aab"]]


def test_separators_may_match_nothing():
    """Such a match takes the next character along."""
    assert tokens("aXbX", separators=["X*"]) == [[]]


def test_one_empty_separator_cuts_into_characters():
    """Characters are code points."""
    assert tokens("日本", "é", separators=[""]) == [["日", "本"], ["é", "#"]]


def test_marks_enclose_tokens():
    """Strings without tokens have marks too, unless none has a token."""
    assert tokens("ab", "", separators=[" "], mark=1) == [["\x02", "ab", "\x03"], ["\x02", "\x03", "#"]]
    assert tokens("", "", separators=[" "], mark=1) == [[], []]


def test_shapes_get_an_axis():
    """(N, C) becomes (N, C, D), (C,) becomes (C, D), of no strings too."""
    rules = {"domain": "com.microsoft", "mark": 0, "mincharnum": 1, "pad_value": "", "separators": (" ",)}
    assert run_op("Tokenizer", np.array([["a b"], ["c"]], object), **rules).shape == (2, 1, 2)
    assert run_op("Tokenizer", np.empty(0, object), **rules).shape == (0, 0)
    assert run_op("Tokenizer", np.empty((2, 0), object), **rules).shape == (2, 0, 0)


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({}, "neither tokenexp nor separators"),
        ({"separators": [" "], "mincharnum": 0}, "mincharnum=0"),
        ({"separators": [""], "mincharnum": 2}, "mincharnum=2"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules, problem):
    """The message names the attribute."""
    with pytest.raises(InvalidArgument, match=problem):
        tokens("a", **rules)


def test_an_expression_that_is_none_is_refused():
    """Also one that looks simple."""
    with pytest.raises(InvalidArgument):
        tokens("a", tokenexp="[z-a]+")
