"""Classes of characters as ranges of code points: those of Perl, POSIX and Unicode's general categories."""

from __future__ import annotations

import functools
import sys
import unicodedata

__all__ = ["EVERYTHING", "PERL_CLASSES", "POSIX_CLASSES", "Ranges", "category", "complement", "in_brackets"]

Ranges = tuple[tuple[int, int], ...]
"""First and last code points, in any order; they may overlap."""

EVERYTHING: Ranges = ((0, sys.maxunicode),)


def _ascii(text: str) -> Ranges:
    """Return ranges written as pairs of characters: "09AZaz"."""
    return tuple((ord(low), ord(high)) for low, high in zip(text[::2], text[1::2], strict=True))


PERL_CLASSES: dict[str, Ranges] = {"d": _ascii("09"), "s": _ascii("\t\n\f\r  "), "w": _ascii("09AZ__az")}
"""The letter behind the backslash -> its class; all ASCII in RE2."""

POSIX_CLASSES: dict[str, Ranges] = {
    "alnum": _ascii("09AZaz"),
    "alpha": _ascii("AZaz"),
    "ascii": ((0, 127),),
    "blank": _ascii("\t\t  "),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _ascii("09"),
    "graph": _ascii("!~"),
    "lower": _ascii("az"),
    "print": _ascii(" ~"),
    "punct": _ascii("!/:@[`{~"),
    "space": _ascii("\t\r  "),
    "upper": _ascii("AZ"),
    "word": _ascii("09AZ__az"),
    "xdigit": _ascii("09AFaf"),
}
"""The name in [:name:] -> its class."""


@functools.cache
def _categories() -> dict[str, Ranges]:
    """Return every general category, and its first letter alone, as ranges; one pass over Unicode."""
    found: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, unicodedata.category("\0")
    for point in range(1, sys.maxunicode + 2):
        name = unicodedata.category(chr(point)) if point <= sys.maxunicode else ""
        if name != current:
            for key in (current, current[0]):
                found.setdefault(key, []).append((start, point - 1))
            start, current = point, name
    return {name: tuple(ranges) for name, ranges in found.items()}


def category(name: str) -> Ranges | None:
    """Return the characters of a general category such as L or Lu, or None where Unicode has none of that name."""
    return _categories().get(name)


def complement(ranges: Ranges) -> Ranges:
    """Return every code point that is in none of the ranges."""
    result = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            result.append((start, low - 1))
        start = max(start, high + 1)
    if start <= sys.maxunicode:
        result.append((start, sys.maxunicode))
    return tuple(result)


def in_brackets(ranges: Ranges, *, negated: bool) -> str:
    """Return the ranges as a class that Python's `re` reads, with every character written by its number."""
    if not ranges:
        return rf"[\x00-\U{sys.maxunicode:08x}]" if negated else "(?!)"
    body = "".join(f"\\U{low:08x}" if low == high else f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    return f"[{'^' if negated else ''}{body}]"
