"""Operators of com.microsoft on strings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.memo import remembered
from sardonyx.providers.reference.algorithms.tokens import text_splitter, token_finder
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["token_cutter"]

_START, _END = "\x02", "\x03"
"""What `mark` puts around the tokens of a string."""


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
    cut = token_cutter(separators, tokenexp, mincharnum)
    if not x.size:
        return np.empty((*x.shape, 0), object)
    texts = x.reshape(-1).tolist()
    rows = [*map(cut, texts)]
    longest = max(map(len, rows))
    if not longest:
        return np.empty((*x.shape, 0), object)
    if mark:
        rows, longest = [[_START, *found, _END] for found in rows], longest + 2
    check_output_size((*x.shape, longest), 8)
    tokens = itertools.chain.from_iterable([row + [pad_value] * (longest - len(row)) for row in rows])
    return np.fromiter(tokens, object, len(rows) * longest).reshape(*x.shape, longest)


@remembered
def token_cutter(separators: Sequence[str], expression: str, least: int) -> Callable[[str], list[str]]:
    """Return what cuts a text into tokens of at least so many characters; raises InvalidArgument for what does not say how."""
    if least < 1 or (list(separators) == [""] and least > 1):
        raise InvalidArgument(f"mincharnum={least}; expected at least 1, and 1 where one separator '' cuts into characters")
    if not expression and not separators:
        raise InvalidArgument("neither tokenexp nor separators say what a token is; give one of them")
    find = token_finder(expression) if expression else list if list(separators) == [""] else text_splitter(separators)
    return lambda text: [*filter(None, find(text))] if least == 1 else [token for token in find(text) if len(token) >= least]
