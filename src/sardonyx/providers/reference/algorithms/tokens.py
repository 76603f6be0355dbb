r"""What finds tokens in a text by patterns in RE2's syntax: Python's `re` for patterns that it matches alike, else an automaton.

`re` takes the first way that matches, RE2 the longest, and `re` may take time that grows with the square of a text's length. Both
do the same, in time that grows with the length, by

    classes, one repeated class at the end                      [a-z][a-z0-9]*   \w+
    the same between places where a word begins and ends        \b\w\w+\b
    separators of one class, repeated or not                    " "   [.,;]   \s+
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence

from sardonyx.providers.reference.algorithms.automaton import Automaton, Chain, Edge, EdgeKind, One, Piece, Repeat
from sardonyx.providers.reference.algorithms.re2 import read_re2

__all__ = ["text_splitter", "token_finder"]


def token_finder(expression: str) -> Callable[[str], Iterable[str]]:
    """Return what lists the matches in a text, the longest one at each place, one behind the other."""
    piece = read_re2(expression)
    alike = _alike(_pieces(piece))
    if alike is not None:
        return re.compile(alike).findall
    pattern = Automaton(piece)
    return lambda text: _matches(text, pattern)


def text_splitter(separators: Sequence[str]) -> Callable[[str], Iterable[str]]:
    """Return what lists the parts of a text between the matches of one separator after another, some of them empty."""
    pieces = [*map(read_re2, separators)]
    classes = [_class_of(_pieces(piece)) for piece in pieces]
    known = [found for found in classes if found is not None]
    if len(known) == len(classes):
        return re.compile("|".join(known)).split
    patterns = [*map(Automaton, pieces)]
    return lambda text: _between_all(text, patterns)


def _pieces(piece: Piece) -> list[Piece]:
    """Return the pieces of a chain, and of the chains in it, one behind the other; a chain of one that is repeated is that one."""
    if isinstance(piece, Repeat):
        inner = _pieces(piece.piece)
        return [dataclasses.replace(piece, piece=inner[0])] if len(inner) == 1 else [piece]
    return [inner for each in piece.pieces for inner in _pieces(each)] if isinstance(piece, Chain) else [piece]


def _alike(pieces: Sequence[Piece]) -> str | None:
    """Return a pattern by which `re` finds what RE2 does, None where there may be none."""
    is_whole_word = len(pieces) > 2 and all(isinstance(end, Edge) and end.kind is EdgeKind.WORD for end in (pieces[0], pieces[-1]))
    inner = pieces[1:-1] if is_whole_word else pieces
    *fixed, last = inner
    if not all(isinstance(piece, One) for piece in fixed):
        return None
    classes = [piece.matcher.pattern for piece in fixed if isinstance(piece, One)]
    if isinstance(last, One):
        classes.append(last.matcher.pattern)
    elif isinstance(last, Repeat) and isinstance(last.piece, One) and len(classes) + last.low:
        high = "" if last.high is None else last.high
        classes.append(f"{last.piece.matcher.pattern}{{{last.low},{high}}}")
    else:
        return None
    text = "".join(classes)
    return rf"(?a:\b){text}(?a:\b)" if is_whole_word else text


def _class_of(pieces: Sequence[Piece]) -> str | None:
    """Return the class of a separator that is one, alone or repeated without end: parts between neighbours are empty."""
    (piece,) = pieces if len(pieces) == 1 else (None,)
    if isinstance(piece, Repeat) and piece.low == 1 and piece.high is None:
        piece = piece.piece
    return piece.matcher.pattern if isinstance(piece, One) else None


def _matches(text: str, pattern: Automaton) -> Iterable[str]:
    """Return what matches, one behind the other, the longest match at each place."""
    start = 0
    while start <= len(text) and (found := pattern.search(text, start)) is not None:
        yield text[found[0] : found[1]]
        start = found[1] + (found[1] == found[0])


def _between_all(text: str, patterns: Sequence[Automaton]) -> Iterable[str]:
    pieces = [text]
    for pattern in patterns:
        pieces = [piece for longer in pieces for piece in _between(longer, pattern)]
    return pieces


def _between(text: str, pattern: Automaton) -> Iterable[str]:
    """Return what lies between matches; a match of no characters takes the one after it along, as ONNX Runtime does."""
    start = 0
    while start < len(text) and (found := pattern.search(text, start)) is not None:
        first, end = found
        yield text[start:first]
        start = end + (end == first)
    yield text[start:]
