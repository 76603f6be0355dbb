r"""Facts about regular expressions in RE2's syntax."""

import pytest

from sardonyx import errors
from sardonyx.providers.reference.algorithms.re2 import compile_re2


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("a|bc", ["a", "bc"], ["abc", "ac", ""]),
        ("", [""], ["a"]),
        (".", ["a", "é"], ["\n", ""]),
        ("(?s).", ["\n"], []),
        ("a$", ["a"], ["a\n"]),
        ("(?m)a$\nb", ["a\nb"], []),
        (r"\Aa\z", ["a"], ["a\n"]),
        (r"\d", ["3"], ["٣"]),
        (r"\w+", ["a_1"], ["é"]),
        (r"[^\W\d]", ["a"], ["1", "é"]),
        (r"\s", [" ", "\t"], ["\v", "\u00a0"]),
        (r"\B", [""], []),
        (r"a\b.*", ["a", "a é", "aé"], ["ab"]),
        ("a(?i)b|C", ["ab", "aB", "c", "C"], ["Ab"]),
        ("(?i:a)b", ["Ab", "ab"], ["AB"]),
        ("(?i)(?-i:a)b", ["aB"], ["Ab"]),
        ("(?i)[^a-c]", ["d"], ["A", "b"]),
        ("(?P<x>a)(?<y>b)", ["ab"], []),
        ("(?U)a+b*?", ["aab"], []),
        ("a{2}|b{1,2}|c{2,}", ["aa", "b", "bb", "ccc"], ["a", "c"]),
        ("a{,2}", ["a{,2}"], ["a", "aa"]),
        ("{", ["{"], []),
        ("[]a]", ["]", "a"], []),
        ("[a-]", ["-", "a"], ["b"]),
        ("[a&&b]", ["&", "a"], []),
        (r"[[:alpha:]_\d]", ["a", "_", "1"], ["é"]),
        ("[[:^digit:]]", ["a"], ["1"]),
        (r"\pL\p{Lu}\P{Lu}", ["aÉb"], ["aéb", "1AA"]),
        (r"\p{Greek}\P{Greek}[\p{Han}]", ["αa漢"], ["aα漢", "αaa"]),
        (r"(?i)\p{Lu}", ["a", "A"], ["1"]),
        (r"\x41\x{1F600}\101\0", ["A😀A\0"], []),
        (r"\Qa.b\E*", ["a.", "a.bb"], ["axb"]),
        (r"\Q[", ["["], []),
        (r"\.\_\-", ["._-"], []),
        (r"\n\t\a", ["\n\t\a"], []),
    ],
)
def test_patterns_mean_what_re2_means(pattern, matching, others):
    """Whole texts match, or do not."""
    compiled = compile_re2(pattern)
    assert [text for text in matching if not compiled.fullmatch(text)] == []
    assert [text for text in others if compiled.fullmatch(text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(a",
        "a)",
        "[a",
        "a**",
        "a*+",
        "*a",
        "a{1001}",
        "(a{100}){100}",
        "a{3,1}",
        r"(a)\1",
        r"\8",
        r"\Z",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?>a)",
        "(?#a)",
        "(?P=x)",
        "(?(1)a)",
        "[b-a]",
        "[[:word2:]]",
        r"\xG0",
        r"\x{110000}",
        r"\p{Xx}",
        r"\p{L",
        "a\\",
        "(?z)",
    ],
)
def test_what_re2_lacks_is_rejected(pattern):
    """Look-around, backreferences, possessive and conditional groups, and what is malformed."""
    with pytest.raises(errors.InvalidArgument, match="is not valid RE2 syntax at"):
        compile_re2(pattern)


def test_what_only_re2_has_is_said():
    """A single byte is valid, but not supported."""
    with pytest.raises(errors.NotImplemented):
        compile_re2(r"\C")


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|aa)+b", "(a*)*b", "((a?){30})(a{30})b", "(.*)(.*)(.*)(.*)b"])
def test_no_pattern_takes_more_than_linear_time(pattern):
    """What sends a backtracking matcher through all ways to split a text is over at once."""
    compiled = compile_re2(pattern)
    assert not compiled.fullmatch("a" * 100_000)
    assert compiled.fullmatch("a" * 40 + "b")


def test_deep_nesting_is_rejected():
    """A pattern cannot exhaust the stack."""
    with pytest.raises(errors.InvalidArgument, match="nested"):
        compile_re2("(" * 5000 + ")" * 5000)
