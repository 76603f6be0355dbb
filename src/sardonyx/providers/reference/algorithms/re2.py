r"""Regular expressions in the syntax of RE2, read into the pieces of an automaton.

It differs from Python's: RE2 has no look-around and no backreferences, its \d \w \s \b are ASCII, its $ is the end of the text, its
flags may change inside a group, {,n} is literal text. Only whether a whole text matches is asked: groups capture nothing, and
whether a repeat is lazy makes no difference.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable

from sardonyx import errors
from sardonyx.providers.reference.algorithms.automaton import Automaton, Chain, Choice, Edge, EdgeKind, One, Piece, Repeat
from sardonyx.providers.reference.algorithms.code_points import (
    EVERYTHING,
    PERL_CLASSES,
    POSIX_CLASSES,
    Ranges,
    category,
    complement,
    in_brackets,
)
from sardonyx.providers.reference.algorithms.unicode_scripts import script

__all__ = ["compile_re2", "read_re2"]

_MOST_REPEATS = 1000
_DEEPEST = 200
_CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_EDGES = {"A": EdgeKind.BEGIN, "z": EdgeKind.END, "b": EdgeKind.WORD, "B": EdgeKind.NOT_WORD}
_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_REPEAT = re.compile(r"\{(\d+)(,(\d*))?\}")
_GROUP_NAME = re.compile(r"\?P?<(\w+)>")
_OCTAL = re.compile(r"[0-7]{1,2}")
_HEXADECIMAL = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})")
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w*):\]")
_FLAGS = re.compile(r"\?([imsU]*)(-[imsU]+)?([:)])")


@dataclasses.dataclass(frozen=True, slots=True)
class _Flags:
    """What (?ims) sets: ignore case, ^ and $ at each line, `.` takes newlines. (?U), lazy repeats, changes no full match."""

    i: bool = False
    m: bool = False
    s: bool = False


def compile_re2(pattern: str) -> Automaton:
    """Compile a pattern in RE2's syntax; raises InvalidArgument, with the place, for what RE2 does not accept."""
    return Automaton(read_re2(pattern))


def read_re2(pattern: str) -> Piece:
    """Return the piece that a pattern in RE2's syntax is; raises as `compile_re2`."""
    reader = _Reader(pattern)
    piece, _ = reader.alternatives(_Flags(), 0)
    if reader.at < len(reader.pattern):
        raise reader.error("there is a ')' without its '('")
    return piece


class _Reader:
    """Reads a pattern from left to right. Methods return a piece, and how often a repeat in it repeats."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def error(self, problem: str) -> errors.InvalidArgument:
        return errors.InvalidArgument(f"pattern {self.pattern!r} is not valid RE2 syntax at {self.at}: {problem}")

    def _next_is(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def _take(self) -> str:
        if self.at >= len(self.pattern):
            raise self.error("it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def alternatives(self, flags: _Flags, depth: int) -> tuple[Piece, int]:
        """Parse everything up to the end of the group, or of the pattern."""
        if depth > _DEEPEST:
            raise self.error(f"groups are nested more than {_DEEPEST} deep")
        branches: list[list[Piece]] = [[]]
        repeats, most = 1, 1
        while self.at < len(self.pattern) and not self._next_is(")"):
            if self._next_is("|"):
                self.at += 1
                branches.append([])
                continue
            changed = self._flag_change(flags)
            if changed is None:
                piece, repeats = self._repeated(*self._atom(flags, depth))
                branches[-1].append(piece)
            else:
                flags = changed
                if branches[-1]:
                    branches[-1][-1], repeats = self._repeated(branches[-1][-1], repeats)
            most = max(most, repeats)
        chains = tuple([Chain(tuple(branch)) for branch in branches])
        return (chains[0] if len(chains) == 1 else Choice(chains)), most

    def _flag_change(self, flags: _Flags) -> _Flags | None:
        """Return the flags after a (?flags) at this place, or None if there is none."""
        found = _FLAGS.match(self.pattern, self.at + 1) if self._next_is("(?") else None
        if found is None or found[3] != ")" or found[0] == "?)":
            return None
        self.at = found.end()
        return _with_flags(flags, found)

    def _repeated(self, atom: Piece, repeats: int) -> tuple[Piece, int]:
        found = self._repeat()
        if found is None:
            return atom, repeats
        self.at += self._next_is("?")
        if self._repeat() is not None:
            raise self.error("a repetition follows a repetition; put the inner one into a group")
        low, high = found
        most = max(low, high or 0, 1)
        if repeats * most > _MOST_REPEATS:
            raise self.error(f"it repeats more than {_MOST_REPEATS} times")
        return Repeat(atom, low, high), repeats * most

    def _repeat(self) -> tuple[int, int | None] | None:
        """Return the least and the most of the repetition at this place, None if there is none; the reader stands behind it."""
        if self.at < len(self.pattern) and self.pattern[self.at] in _REPEATS:
            return _REPEATS[self._take()]
        found = _REPEAT.match(self.pattern, self.at)
        if found is None:
            return None
        low, high = int(found[1]), int(found[3] or found[1])
        if max(low, high) > _MOST_REPEATS or low > high:
            raise self.error(f"the repetition {found[0]} is out of range; expected 0 <= low <= high <= {_MOST_REPEATS}")
        self.at = found.end()
        return low, None if found[2] == "," else high

    def _atom(self, flags: _Flags, depth: int) -> tuple[Piece, int]:
        if self._repeat() is not None:
            raise self.error("a repetition has nothing before it")
        character = self._take()
        special = _SPECIAL.get(character)
        if special is not None:
            return special(self, flags, depth)
        return _literal(character, flags), 1

    def _dot(self, flags: _Flags, _depth: int) -> tuple[Piece, int]:
        return _one(in_brackets(EVERYTHING, negated=False) if flags.s else r"[^\n]"), 1

    def _caret(self, flags: _Flags, _depth: int) -> tuple[Piece, int]:
        return Edge(EdgeKind.LINE_BEGIN if flags.m else EdgeKind.BEGIN), 1

    def _dollar(self, flags: _Flags, _depth: int) -> tuple[Piece, int]:
        return Edge(EdgeKind.LINE_END if flags.m else EdgeKind.END), 1

    def _group(self, flags: _Flags, depth: int) -> tuple[Piece, int]:
        if self._next_is("?"):
            flags = self._group_head(flags)
        piece, repeats = self.alternatives(flags, depth + 1)
        if not self._next_is(")"):
            raise self.error("a '(' has no ')'")
        self.at += 1
        return piece, repeats

    def _group_head(self, flags: _Flags) -> _Flags:
        """Read ?:, ?flags:, ?P<name> or ?<name>; the flags inside the group."""
        name = _GROUP_NAME.match(self.pattern, self.at)
        if name is not None:
            self.at = name.end()
            return flags
        found = _FLAGS.match(self.pattern, self.at)
        if found is None or found[3] != ":":
            raise self.error(f"RE2 has no group '({self.pattern[self.at : self.at + 3]}': no look-around, condition or comment")
        self.at = found.end()
        return _with_flags(flags, found)

    def _escape(self, flags: _Flags, depth: int) -> tuple[Piece, int]:
        if self._next_is("Q"):
            return self._quoted(flags, depth)
        if self.at < len(self.pattern) and self.pattern[self.at] in _EDGES:
            return Edge(_EDGES[self._take()]), 1
        found = self._class_escape()
        if found is not None:
            return _class(found[0], flags, negated=found[1]), 1
        return _literal(chr(self._character_escape()), flags), 1

    def _quoted(self, flags: _Flags, depth: int) -> tuple[Piece, int]:
        r"""Read \Q...\E: its text is put into the pattern with a backslash before each sign, and read from there."""
        end = self.pattern.find(r"\E", self.at)
        end = end if end >= 0 else len(self.pattern)
        plain = self.pattern[self.at + 1 : end]
        quoted = "".join(f"\\{sign}" if sign.isascii() and not sign.isalnum() else sign for sign in plain)
        self.pattern = self.pattern[: self.at - 1] + quoted + self.pattern[end + 2 :]
        self.at -= 1
        return self._atom(flags, depth) if plain else (Chain(()), 1)

    def _class_escape(self) -> tuple[Ranges, bool] | None:
        r"""Return the class of \d, \pL, \p{^Lu} and their like behind a backslash, and whether it is negated.

        None if it is none.
        """
        letter = self.pattern[self.at : self.at + 1]
        if letter.lower() in PERL_CLASSES:
            self.at += 1
            return PERL_CLASSES[letter.lower()], letter.isupper()
        if letter not in ("p", "P"):
            return None
        self.at += 1
        name = self._take()
        if name == "{":
            end = self.pattern.find("}", self.at)
            if end < 0:
                raise self.error("a '{' has no '}'")
            name, self.at = self.pattern[self.at : end], end + 1
        return self._category(name.removeprefix("^")), name.startswith("^") != (letter == "P")

    def _category(self, name: str) -> Ranges:
        if name == "Any":
            return EVERYTHING
        ranges = script(name) if len(name) > 2 else category(name)
        if ranges is None:
            raise self.error(f"there is no Unicode class {name!r}")
        return ranges

    def _character_escape(self) -> int:
        r"""Return the code point of \n, \x41, \x{1F600}, \101 or an escaped sign behind a backslash."""
        character = self._take()
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "x":
            return self._hexadecimal()
        octal = _OCTAL.match(self.pattern, self.at)
        if character == "0" or (character in "1234567" and octal is not None):
            self.at = octal.end() if octal is not None else self.at
            return int(character + (octal[0] if octal is not None else ""), 8)
        if character == "C":
            raise errors.NotImplemented(rf"\C, a single byte, in pattern {self.pattern!r}: strings here are text")
        if character.isalnum() or ord(character) >= 0x80:
            raise self.error(f"RE2 has no escape '\\{character}', and no backreferences")
        return ord(character)

    def _hexadecimal(self) -> int:
        found = _HEXADECIMAL.match(self.pattern, self.at)
        value = int(found[1] or found[2], 16) if found is not None else -1
        if found is None or value > 0x10FFFF:
            raise self.error(r"\x needs two hexadecimal digits, or {...} up to 10FFFF")
        self.at = found.end()
        return value

    def _brackets(self, flags: _Flags, _depth: int) -> tuple[Piece, int]:
        negated = self._next_is("^")
        self.at += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self._next_is("]"):
            ranges += self._bracket_item()
            first = False
        self.at += 1
        return _class(tuple(ranges), flags, negated=bool(negated)), 1

    def _bracket_item(self) -> Ranges:
        posix = _POSIX_CLASS.match(self.pattern, self.at)
        if posix is not None:
            if posix[2] not in POSIX_CLASSES:
                raise self.error(f"there is no class [:{posix[2]}:]")
            self.at = posix.end()
            return complement(POSIX_CLASSES[posix[2]]) if posix[1] else POSIX_CLASSES[posix[2]]
        if self._next_is("\\"):
            self.at += 1
            found = self._class_escape()
            if found is not None:
                return complement(found[0]) if found[1] else found[0]
            low = self._character_escape()
        else:
            low = ord(self._take())
        if not self._next_is("-") or self._next_is("-]"):
            return ((low, low),)
        self.at += 1
        high = ord(self._take())
        if high == ord("\\"):
            high = self._character_escape()
        if high < low:
            raise self.error(f"the range {chr(low)}-{chr(high)} runs backwards")
        return ((low, high),)


def _with_flags(flags: _Flags, found: re.Match[str]) -> _Flags:
    on = dict.fromkeys(found[1].replace("U", ""), True)
    off = dict.fromkeys((found[2] or "")[1:].replace("U", ""), False)
    return dataclasses.replace(flags, **on, **off)


@functools.cache
def _one(text: str) -> One:
    """Parse one character that Python's `re` matches with `text`."""
    return One(re.compile(text))


def _class(ranges: Ranges, flags: _Flags, *, negated: bool) -> One:
    text = in_brackets(ranges, negated=negated)
    return _one(f"(?i:{text})" if flags.i else text)


def _literal(character: str, flags: _Flags) -> One:
    text = re.escape(character)
    return _one(f"(?i:{text})" if flags.i and character.lower() != character.upper() else text)


_SPECIAL: dict[str, Callable[[_Reader, _Flags, int], tuple[Piece, int]]] = {
    ".": _Reader._dot,
    "^": _Reader._caret,
    "$": _Reader._dollar,
    "(": _Reader._group,
    "[": _Reader._brackets,
    "\\": _Reader._escape,
}
"""The characters that are not literal, and what reads on behind them."""
