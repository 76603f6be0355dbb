"""Operators of com.microsoft on strings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.automaton import Automaton
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.memo import remembered
from sardonyx.providers.reference.algorithms.re2 import compile_re2
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_START, _END = "\x02", "\x03"
"""What `mark` puts around the tokens of a string."""

_compiled = remembered(compile_re2)


@kernel("Tokenizer", domain="com.microsoft")
def tokenizer(
    _node: Call,
    x: Array,
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: Sequence[str] = (),
    tokenexp: str = "",
) -> Array:
    """Cut strings of (C,) or (N, C) into tokens on a new last axis, as long as the most tokens, filled up with `pad_value`.

    Tokens are what `tokenexp` matches, or what lies between matches of the separators, taken one separator after another; one
    separator "" cuts into characters. Tokens of fewer than `mincharnum` characters are dropped. Where no string has a token the
    new axis has length 0, marks or not. com.microsoft Tokenizer-1; patterns are in RE2's syntax, and
    match as much as they can.
    """
    if x.ndim not in (1, 2):
        raise InvalidArgument(f"the input has shape {x.shape}; expected (C,) or (N, C)")
    if mincharnum < 1 or (list(separators) == [""] and mincharnum > 1):
        raise InvalidArgument(f"mincharnum={mincharnum}; expected at least 1, and 1 where one separator '' cuts into characters")
    if not tokenexp and not separators:
        raise InvalidArgument("neither tokenexp nor separators say what a token is; give one of them")
    if not x.size:
        return np.empty(x.shape if x.ndim == 1 else (*x.shape, 0), object)
    texts = x.reshape(-1).tolist()
    tokens = {text: _long_enough(_tokens(text, separators, tokenexp), mincharnum) for text in set(texts)}
    cut = [tokens[text] for text in texts]
    if not any(cut):
        return np.empty((*x.shape, 0), object)
    rows = [[_START, *found, _END] for found in cut] if mark else cut
    longest = max(map(len, rows))
    check_output_size((*x.shape, longest), 8)
    result = np.empty(len(rows) * longest, object)
    result[:] = [token for row in rows for token in (*row, *[pad_value] * (longest - len(row)))]
    return result.reshape(*x.shape, longest)


def _long_enough(tokens: Iterable[str], least: int) -> list[str]:
    return list(filter(None, tokens)) if least == 1 else [token for token in tokens if len(token) >= least]


def _tokens(text: str, separators: Sequence[str], expression: str) -> Iterable[str]:
    if expression:
        return _finder(expression)(text)
    if list(separators) == [""]:
        return text
    pieces = [text]
    for separator in separators:
        pattern = _compiled(separator)
        pieces = [piece for longer in pieces for piece in _between(longer, pattern)]
    return pieces


_ONE_CLASS = re.compile(r"\\w\+|\[(?:[0-9A-Za-z]-[0-9A-Za-z]|\\w|[0-9A-Za-z_])+\]\+")
"""Patterns of one class of ASCII letters, digits and _, once or more: RE2 and `re` match the same, and as much, by them."""


@remembered
def _finder(expression: str) -> Callable[[str], Iterable[str]]:
    """Return what finds the tokens of a string; Python's own machine for the patterns that it reads as RE2 does."""
    pattern = _compiled(expression)
    return re.compile(expression, re.ASCII).findall if _ONE_CLASS.fullmatch(expression) else lambda text: _matches(text, pattern)


def _matches(text: str, pattern: Automaton) -> Iterable[str]:
    """Return what matches, one behind the other, the longest match at each place."""
    start = 0
    while start <= len(text) and (found := pattern.search(text, start)) is not None:
        yield text[found[0] : found[1]]
        start = found[1] + (found[1] == found[0])


def _between(text: str, pattern: Automaton) -> Iterable[str]:
    """Return what lies between matches; a match of no characters takes the one after it along, as ONNX Runtime does."""
    start = 0
    while start < len(text) and (found := pattern.search(text, start)) is not None:
        first, end = found
        yield text[start:first]
        start = end + (end == first)
    yield text[start:]
