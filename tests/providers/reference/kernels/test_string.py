"""Facts about the operators on strings."""

import numpy as np
import pytest
from support.cancelling import checks_of
from support.run_op import run_op

from sardonyx.errors import InvalidArgument


def words(*values):
    result = np.empty(len(values), object)
    result[:] = values
    return result


def test_concat_broadcasts():
    """Element by element, also for empty and scalar tensors."""
    assert run_op("StringConcat", words("a", "b").reshape(2, 1), words("x", "")).tolist() == [["ax", "a"], ["bx", "b"]]
    assert run_op("StringConcat", np.array("a", object), np.array("b", object)).tolist() == "ab"
    with pytest.raises(InvalidArgument, match="do not broadcast"):
        run_op("StringConcat", words("a", "b"), words("a", "b", "c"))


def test_normalizer_drops_stop_words_then_changes_case():
    """Whether case counts is an attribute."""
    text = words("Monday", "TUESDAY")
    run = {"stopwords": ("monday",), "case_change_action": "LOWER"}
    assert run_op("StringNormalizer", text, **run).tolist() == ["tuesday"]
    assert run_op("StringNormalizer", text, is_case_sensitive=1, **run).tolist() == ["monday", "tuesday"]
    assert run_op("StringNormalizer", text[None], case_change_action="UPPER").tolist() == [["MONDAY", "TUESDAY"]]


def test_normalizer_leaves_one_empty_string():
    """If all words are dropped there is one, of the input's rank."""
    assert run_op("StringNormalizer", words("a"), stopwords=("a",)).tolist() == [""]
    assert run_op("StringNormalizer", words("a")[None], stopwords=("a",)).tolist() == [[""]]


def test_normalizer_knows_turkish():
    """Dotted and dotless i stay apart."""
    text = words("Iİ", "ıi")
    assert run_op("StringNormalizer", text, locale="tr_TR.UTF-8", case_change_action="LOWER").tolist() == ["ıi", "ıi"]
    assert run_op("StringNormalizer", text, locale="az", case_change_action="UPPER").tolist() == ["Iİ", "Iİ"]
    assert run_op("StringNormalizer", words("I"), locale="en_US", case_change_action="LOWER").tolist() == ["i"]


@pytest.mark.parametrize("attributes", [{"locale": "not a locale"}, {"case_change_action": "TITLE"}])
def test_normalizer_rejects_unknown_names(attributes):
    """Of locales and of actions."""
    with pytest.raises(InvalidArgument):
        run_op("StringNormalizer", words("a"), **attributes)


def test_normalizer_rejects_matrices():
    """The input has one row."""
    with pytest.raises(InvalidArgument, match="expected"):
        run_op("StringNormalizer", np.array([["a"], ["b"]], object))


def test_split_pads_and_counts():
    """White space at the ends is no part; an empty string has none."""
    parts, counts = run_op("StringSplit", words(" a  b ", "", "c"), outputs=2)
    assert (parts.tolist(), counts.tolist()) == ([["a", "b"], ["", ""], ["c", ""]], [2, 0, 1])
    parts, counts = run_op("StringSplit", words("a,,b", ","), delimiter=",", outputs=2)
    assert (parts.tolist(), counts.tolist()) == ([["a", "", "b"], ["", "", ""]], [3, 2])


def test_split_stops_at_maxsplit():
    """The rest stays in the last part."""
    assert run_op("StringSplit", words("a b  c "), maxsplit=1, outputs=2)[0].tolist() == [["a", "b  c"]]
    assert run_op("StringSplit", words("a,b,c"), delimiter=",", maxsplit=1, outputs=2)[0].tolist() == [["a", "b,c"]]
    assert run_op("StringSplit", np.zeros((2, 0), object), outputs=2)[0].shape == (2, 0, 0)


def test_full_match_takes_the_whole_string():
    """One bool for each string."""
    assert run_op("RegexFullMatch", words("ab", "abc").reshape(1, 2), pattern="a(b|c)").tolist() == [[True, False]]


TOKENS = {
    "ngram_counts": (0, 2),
    "ngram_indexes": (2, 0, 1),
    "pool_int64s": (5, 6, 5, 6),
    "min_gram_length": 1,
    "max_gram_length": 2,
}
WEIGHTS = (0.5, 2.0, 4.0)


@pytest.mark.parametrize(("mode", "want"), [("TF", [2, 1, 3]), ("IDF", [2, 4, 0.5]), ("TFIDF", [4, 4, 1.5])])
def test_tf_idf_weighs_counts(mode, want):
    """Columns are those of ngram_indexes."""
    row = np.array([6, 5, 6, 5, 5], np.int32)
    result = run_op("TfIdfVectorizer", row, mode=mode, max_skip_count=0, weights=WEIGHTS, **TOKENS)
    assert (result.dtype, result.tolist()) == (np.float32, want)
    assert run_op("TfIdfVectorizer", row[None], mode=mode, max_skip_count=0, weights=WEIGHTS, **TOKENS).tolist() == [want]


def test_tf_idf_of_strings_and_of_no_rows():
    """The pool tells the type of the input."""
    pool = {name: value for name, value in TOKENS.items() if name != "pool_int64s"} | {"pool_strings": ("a", "b", "a", "b")}
    assert run_op("TfIdfVectorizer", words("a", "b"), mode="TF", max_skip_count=0, **pool).tolist() == [1, 1, 1]
    assert run_op("TfIdfVectorizer", np.zeros((0, 4), np.int64), mode="TF", max_skip_count=0, **TOKENS).shape == (0, 3)
    with pytest.raises(InvalidArgument, match="pool's type"):
        run_op("TfIdfVectorizer", words("a"), mode="TF", max_skip_count=0, **TOKENS)


@pytest.mark.parametrize(
    "change",
    [{"mode": "DF"}, {"min_gram_length": 3}, {"ngram_indexes": (0, 1)}, {"ngram_indexes": (0, 1, 1 << 60)}, {"weights": (1.0,)}],
)
def test_tf_idf_rejects_attributes_that_do_not_fit(change):
    """An unknown mode, an empty range of lengths, a wrong number of indexes or weights, an output beyond all memory."""
    with pytest.raises(InvalidArgument):
        run_op("TfIdfVectorizer", np.array([[5, 6]]), **(TOKENS | {"mode": "TF", "max_skip_count": 0} | change))


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes"),
    [
        ("StringConcat", 2, {}),
        ("StringSplit", 1, {}),
        ("StringSplit", 1, {"delimiter": "-"}),
        ("StringNormalizer", 1, {"case_change_action": "LOWER"}),
        ("RegexFullMatch", 1, {"pattern": "[a-z]+"}),
    ],
)
def test_many_strings_are_left_when_the_run_is_to_end(operator, inputs, attributes):
    """It is asked for between some thousands of them."""
    asked = [
        checks_of(lambda count=count: run_op(operator, *[words(*["Ab-c"] * count)] * inputs, **attributes)) for count in (1, 20_000)
    ]
    assert asked[1] >= asked[0] + 4


def test_many_strings_are_split_some_at_a_time():
    """Rows of any length, with parts in their places."""
    texts = [" ".join("abc"[: number % 4]) for number in range(9000)]
    parts, counts = run_op("StringSplit", np.array(texts, object).reshape(3, -1))
    assert parts.shape == (3, 3000, 3)
    assert counts.ravel().tolist() == [number % 4 for number in range(9000)]
    assert parts.reshape(-1, 3).tolist() == [[*"abc"[: number % 4], *[""] * (3 - number % 4)] for number in range(9000)]
    assert {type(part) for part in parts.ravel()} == {str}


def test_many_strings_are_matched_some_at_a_time():
    """Each by itself."""
    texts = np.array([str(number) for number in range(10_000)], object)
    assert np.flatnonzero(run_op("RegexFullMatch", texts, pattern="9+")).tolist() == [9, 99, 999, 9999]
