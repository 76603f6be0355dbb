"""Operators on strings: tensors of Python's `str` in object arrays."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.cancellation import checked_blocks
from sardonyx.config import LIMITS
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.memo import remembered
from sardonyx.providers.reference.algorithms.ngrams import pool_of
from sardonyx.providers.reference.algorithms.re2 import compile_re2
from sardonyx.providers.reference.algorithms.vectorizer import Vectorizer, vectorizer_of
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["case_changer", "vectorizer_of_attributes"]


def _spans(count: int) -> Iterator[slice]:
    """Yield slices of `count` strings, some at a time; raises as `check_cancelled` between."""
    for places in checked_blocks(range(count)):
        yield slice(places[0], places[-1] + 1) if places else slice(0)


def _strings(values: Sequence[str], shape: Sequence[int]) -> Array:
    result = np.empty(len(values), object)
    result[:] = values
    return result.reshape(shape)


@kernel("StringConcat", since=20)
def string_concat(_node: Call, x: Array, y: Array) -> Array:
    """Join strings element by element, with broadcasting. ONNX StringConcat-20."""
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError as error:
        raise InvalidArgument(f"shapes {x.shape} and {y.shape} do not broadcast to each other") from error
    check_output_size(shape, 8)
    _check_length(math.prod(shape), x, y)
    result = np.empty(math.prod(shape), object)
    left, right = (np.broadcast_to(part, shape).reshape(-1) for part in (x, y))
    for span in _spans(result.size):
        np.add(left[span], right[span], out=result[span])
    return result.reshape(shape)


def _check_length(count: int, *parts: Array) -> None:
    """Refuse `count` joined strings beyond `LIMITS.tensor_bytes`: joined with itself again and again, a short one is long."""
    total = 0
    for part in parts:
        flat = part.reshape(-1)
        length = sum(sum(map(len, flat[span].tolist())) for span in _spans(flat.size))
        total += length * (count // max(1, part.size))
    if total > LIMITS.tensor_bytes:
        raise InvalidArgument(
            f"the joined strings would have {total} characters; at most {LIMITS.tensor_bytes} are allowed: check their lengths, "
            "or raise SARDONYX_MAX_TENSOR_BYTES"
        )


_LOCALE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8})*(\.[\w-]+)?(@\w+)?|C|POSIX|")
_TURKIC = ("tr", "az")


@functools.lru_cache(64)
def _case_changers(locale: str) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """Lower and upper case of a locale: Turkish and Azerbaijani keep dotted and dotless i apart, all others are Unicode's."""
    if _LOCALE.fullmatch(locale) is None:
        raise InvalidArgument(f"locale={locale!r} is not the name of one; expected one such as 'en_US' or 'tr_TR.UTF-8'")
    if re.split(r"[_.@-]", locale)[0].lower() not in _TURKIC:
        return str.lower, str.upper
    return (
        lambda text: text.replace("İ", "i").replace("I", "ı").lower(),
        lambda text: text.replace("i", "İ").replace("ı", "I").upper(),
    )


def case_changer(locale: str, action: str) -> Callable[[str], str]:
    """Return what changes the case of a text as case_change_action says; raises InvalidArgument for what is none."""
    lower, upper = _case_changers(locale)
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": lower, "UPPER": upper}
    if action not in changes:
        raise InvalidArgument(f"case_change_action={action!r}; expected NONE, LOWER or UPPER")
    return changes[action]


@kernel("StringNormalizer", since=10)
def string_normalizer(
    _node: Call,
    x: Array,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Array:
    """Drop stop words from (C,) or (1, C), then change the case; if nothing is left, one empty string. ONNX StringNormalizer-10."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and len(x) != 1):
        raise InvalidArgument(f"the input has shape {x.shape}; expected (C,) or (1, C)")
    change = case_changer(locale, case_change_action)
    words = x.reshape(-1).tolist()
    if stopwords:
        compared: Callable[[str], str] = str if is_case_sensitive else case_changer(locale, "LOWER")
        dropped = set(map(compared, stopwords))
        words = [word for block in checked_blocks(words) for word in block if compared(word) not in dropped]
    result = [text for block in checked_blocks(words) for text in map(change, block)] or [""]
    return _strings(result, (-1,) if x.ndim == 1 else (1, -1))


@kernel("StringSplit", since=20)
def string_split(_node: Call, x: Array, *, delimiter: str = "", maxsplit: int | None = None) -> tuple[Array, Array]:
    """Split each string, at white space if there is no delimiter: parts on a new last axis, padded with "", and counts.

    An empty string has no parts. The parts of all strings are one list: a list for each would be walked by the garbage collector.
    ONNX StringSplit-20.
    """
    most, flat = -1 if maxsplit is None else maxsplit, x.reshape(-1)
    parts: list[str] = []
    counts = np.empty(x.size, np.int64)
    for span in _spans(x.size):
        texts = flat[span].tolist()
        found = [text.split(delimiter, most) for text in texts] if delimiter else [text.strip().split(None, most) for text in texts]
        found = [each if text else [] for each, text in zip(found, texts, strict=True)]
        counts[span] = [len(each) for each in found]
        parts += [part for each in found for part in each]
    longest, first = int(counts.max(initial=0)), 0
    check_output_size((*x.shape, longest), 8)
    padded = np.empty((x.size, longest), object)
    for span in _spans(x.size):
        used = np.arange(longest) < counts[span, None]
        last = first + int(np.count_nonzero(used))
        padded[span] = ""
        padded[span][used] = _strings(parts[first:last], (-1,))
        first = last
    return padded.reshape(*x.shape, longest), counts.reshape(x.shape)


_compiled = remembered(compile_re2)


@kernel("RegexFullMatch", since=20)
def regex_full_match(_node: Call, x: Array, *, pattern: str = "") -> Array:
    """Say for each string whether the whole of it matches the pattern, in RE2's syntax: bool. ONNX RegexFullMatch-20.

    Takes time linear in the length of a string, whatever the pattern.
    """
    matches = _compiled(pattern).fullmatch
    flat, found = x.reshape(-1), np.empty(x.size, np.bool_)
    for span in _spans(x.size):
        found[span] = [bool(matches(text)) for text in flat[span].tolist()]
    return found.reshape(x.shape)


@remembered
def _vectorizer(
    strings: Sequence[str],
    integers: Sequence[int],
    counts: Sequence[int],
    indexes: Sequence[int],
    weights: Sequence[float],
    mode: str,
    shortest: int,
    longest: int,
    max_skip_count: int,
) -> Vectorizer:
    if mode not in ("TF", "IDF", "TFIDF") or not 1 <= shortest <= longest or max_skip_count < 0:
        raise InvalidArgument(
            f"mode={mode!r}, lengths {shortest} to {longest}, max_skip_count={max_skip_count}; "
            "expected TF, IDF or TFIDF, 1 <= min <= max, and skips >= 0"
        )
    if bool(strings) == bool(integers) or not counts:
        raise InvalidArgument("expected ngram_counts and exactly one of pool_strings and pool_int64s")
    pool = pool_of(_strings(strings, (-1,)) if strings else np.array(integers, np.int64), counts)
    if weights and len(weights) != pool.gram_count:
        raise InvalidArgument(f"{len(weights)} weights for a pool of {pool.gram_count} n-grams; expected one for each")
    return vectorizer_of(
        pool,
        _columns(indexes, pool.gram_count),
        np.array(weights, np.float32) if weights and mode != "TF" else None,
        adds_up=mode != "IDF",
        lengths=(shortest, longest),
        max_skip_count=max_skip_count,
    )


def vectorizer_of_attributes(attributes: Mapping[str, Any]) -> Vectorizer:
    """Return what counts for a TfIdfVectorizer; raises InvalidArgument for attributes that do not fit. Any: of many types."""
    lists = [attributes.get(name, ()) for name in ("pool_strings", "pool_int64s", "ngram_counts", "ngram_indexes", "weights")]
    return _vectorizer(*lists, *[attributes[name] for name in ("mode", "min_gram_length", "max_gram_length", "max_skip_count")])


def _columns(indexes: Sequence[int], gram_count: int) -> Array:
    columns = np.array(indexes, np.int64)
    if len(columns) != gram_count or (columns < 0).any():
        raise InvalidArgument(f"{len(columns)} ngram_indexes for a pool of {gram_count} n-grams; expected one each, >= 0")
    return columns


@kernel("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    _node: Call,
    x: Array,
    *,
    mode: str,
    min_gram_length: int,
    max_gram_length: int,
    max_skip_count: int,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_strings: Sequence[str] = (),
    pool_int64s: Sequence[int] = (),
    weights: Sequence[float] = (),
) -> Array:
    """Count the pool's n-grams in each row of (N, C), or in (C,): float32, one column for each of ngram_indexes.

    IDF puts the n-gram's weight where it occurs at all, TFIDF its weight times the count. ONNX TfIdfVectorizer-9.
    """
    if x.ndim not in (1, 2) or (x.dtype.kind == "O") != bool(pool_strings):
        raise InvalidArgument(f"the input has shape {x.shape} and type {x.dtype}; expected (N, C) or (C,), of the pool's type")
    made = _vectorizer(
        *(pool_strings, pool_int64s, ngram_counts, ngram_indexes, weights),
        *(mode, min_gram_length, max_gram_length, max_skip_count),
    )
    rows = x[None] if x.ndim == 1 else x
    check_output_size((len(rows), made.width), 4)
    output = np.zeros((len(rows), made.width), np.float32)
    made.write(rows, output)
    return output.reshape((*x.shape[:-1], made.width))
