"""Facts about finding tokens: Python's `re` and the automaton find the same."""

import random

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.automaton import Automaton
from sardonyx.providers.reference.algorithms.re2 import read_re2
from sardonyx.providers.reference.algorithms.tokens import text_splitter, token_finder


def texts(count=200):
    draw = random.Random(7)
    return ["".join(draw.choice("abcxyzABC019_-. \n\tä٣µﬁ[]^") for _ in range(draw.randrange(20))) for _ in range(count)]


def found_by_automaton(expression, text):
    pattern, found, start = Automaton(read_re2(expression)), [], 0
    while start <= len(text) and (match := pattern.search(text, start)) is not None:
        found.append(text[match[0] : match[1]])
        start = match[1] + (match[1] == match[0])
    return found


ALIKE = (
    *("[a-zA-Z0-9_]+", "[a-c]+", r"\w+", r"[\wx]+", "[_0]+", "[a-]+", "[^a]+", "[a.]+", r"\d+", "[[a]+", "(?i)[a-z]+", "ab"),
    *(
        r"[a-z][a-z0-9]*",
        r"\w{2,}",
        r"\w{1,3}",
        r"\b\w\w+\b",
        r"\b[a-c ]{2,}\b",
        r"\pL+",
        r"(?:\w)(\w)+",
        "a{3}",
        r"\b[a-z]\b",
        ".",
    ),
)
OTHERS = ("a|ab", "a*", r"\w+\b", r"a+b", r"\b\w*\b", r"\Ba+", "(ab)+", "^a+", r"\b\b", r"\s*")


@pytest.mark.parametrize("expression", ALIKE)
def test_patterns_that_re_reads_alike_find_what_the_automaton_finds(expression):
    """They are left to `re`, whose function is a built-in one."""
    find = token_finder(expression)
    assert type(find).__name__ == "builtin_function_or_method"
    for text in texts():
        assert list(find(text)) == found_by_automaton(expression, text)


@pytest.mark.parametrize("expression", OTHERS)
def test_other_patterns_are_left_to_the_automaton(expression):
    """Those that may match in several ways, match nothing, or take `re` long."""
    find = token_finder(expression)
    assert type(find).__name__ == "function"
    for text in texts(20):
        assert list(find(text)) == found_by_automaton(expression, text)


@pytest.mark.parametrize("separators", [[" "], [" ", ","], [r"\s+", "[.,;-]"], ["a", "(?i)b", "[^c-z]"]])
def test_separators_of_one_class_cut_as_the_automaton_does(separators):
    """Empty parts apart, which there may be more or fewer of."""
    cut = text_splitter(separators)
    assert type(cut).__name__ == "builtin_function_or_method"
    slow = text_splitter([*separators, "no(t here|where)"])  # which is no class
    for text in texts():
        assert [*filter(None, cut(text))] == [*filter(None, slow(text))]


def test_separators_cut_one_after_another():
    """What the first has cut the second cuts again."""
    assert [*filter(None, text_splitter(["ab", "abc"])("abcabdab"))] == ["c", "d"]


@pytest.mark.parametrize("make", [token_finder, lambda pattern: text_splitter([pattern])])
def test_a_pattern_that_is_none_is_refused(make):
    """Also one that looks simple."""
    with pytest.raises(InvalidArgument):
        make("[z-a]+")
