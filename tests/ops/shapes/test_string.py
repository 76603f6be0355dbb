"""Facts about strings."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, dtype_of, infer_op, infer_shape, plain

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor

TEXT = tensor(DataType.STRING, (A, 3))


def test_concatenation_broadcasts() -> None:
    """Strings are joined as numbers are added."""
    assert infer_shape("StringConcat", TEXT, tensor(DataType.STRING, ())) == (A, 3)


def test_matches_are_bools() -> None:
    """A bool for each string."""
    assert dtype_of("RegexFullMatch", TEXT) is DataType.BOOL


def test_split_adds_an_axis() -> None:
    """As many columns as the most parts, and a count for each string."""
    parts, counts = infer_op("StringSplit", TEXT, outputs=2)
    assert plain(parts) == (A, 3, UNKNOWN_DIM)
    assert (counts.dtype, counts.shape) == (DataType.INT64, (A, 3))


def test_stop_words_shorten() -> None:
    """Without stop words nothing is dropped."""
    assert infer_shape("StringNormalizer", TEXT) == (A, 3)
    assert infer_shape("StringNormalizer", TEXT, stopwords=("a",)) == (A, UNKNOWN_DIM)


def test_ngrams_have_a_column_each() -> None:
    """The largest index decides."""
    assert infer_shape("TfIdfVectorizer", TEXT, ngram_indexes=(0, 4, 2)) == (A, 5)
