"""Long names in narrow columns: folded where a reader would, and columns made narrower by turns."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["column_widths", "fold"]

_WORDS = re.compile(r"(?<= )")
_PARTS = re.compile(r"(?<=[/._\-,:;+>])")
_INDENT = "  "


def fold(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` characters, broken between words.

    Words that are too long are broken behind / . _ and the like. A line that goes on is indented by two blanks; a line break in the
    text stays.
    """
    lines: list[str] = []
    for given in text.split("\n"):
        margin = given[: len(given) - len(given.lstrip())] + (_INDENT if width > 4 * len(_INDENT) else "")
        current = ""
        for piece in _pieces(given, width - len(margin)):
            if current.strip() and len((current + piece).rstrip()) > width:
                lines.append(current.rstrip())
                current, piece = margin, piece.lstrip()
            current += piece
            while len(current.rstrip()) > width:
                lines.append(current[:width])
                current = margin + current[width:]
        lines.append(current.rstrip())
    return lines


def _pieces(text: str, width: int) -> list[str]:
    """Return the words of a text, those too long in parts."""
    return [part for word in _WORDS.split(text) for part in (_PARTS.split(word) if len(word.rstrip()) > width else (word,))]


def column_widths(natural: Sequence[int], fixed: Sequence[bool], available: int, least: int = 8) -> list[int]:
    """Return widths of columns that fit into `available` together: the widest are made narrower until they do.

    Args:
        natural: how wide each would like to be.
        fixed: which stay as they are.
        available: the characters that there are for all.
        least: what no column is made narrower than.
    """
    widths = list(natural)
    while sum(widths) > available:
        able = [place for place, width in enumerate(widths) if not fixed[place] and width > least]
        if not able:
            break
        widest = max(able, key=lambda place: widths[place])
        widths[widest] -= 1
    return widths
