"""Tokens of the IR text form: what the parser reads, each with its place for error messages."""

from __future__ import annotations

import functools
import json
import re
from typing import Any, NamedTuple, NoReturn

from sardonyx.errors import InvalidGraph

__all__ = ["Token", "Tokens", "quoted", "spelled"]

_TOKEN = re.compile(
    r"""
    (?P<blank>(?:\s|\#[^\n]*)+)
  | (?P<name>(?:[A-Za-z_/]|::)(?:[\w/.]|::)*)
  | (?P<unnamed>%\w+)
  | (?P<anonymous>\?\w*)
  | (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
  | (?P<int>\d+)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<mark>->|\.\.\.|[][(){}<>,:=@+\-*^.])
    """,
    re.VERBOSE | re.ASCII,
)
_NAME = re.compile(r"(?:[A-Za-z_/]|::)(?:[\w/.]|::)*", re.ASCII)
_UNSURE = re.compile(r'["?#]')
_BARE = ("mark", "name")


class Token(NamedTuple):
    """A word of the text."""

    kind: str
    """name, unnamed, anonymous, int, float, string, mark or end."""
    text: str
    """What it says; strings without quotes and escapes."""
    position: int
    """Where it begins, in characters from the start of the text."""


def quoted(text: str) -> str:
    """Return `text` in double quotes with JSON's escapes.

    Lone surrogates, which stand for bytes that are no UTF-8, are escaped too.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


def spelled(name: str) -> str:
    """Return `name` as it is where the text form takes it bare, else in quotes.

    "_" means none, so a value of that name is quoted.
    """
    return name if name != "_" and _NAME.fullmatch(name) else quoted(name)


@functools.cache
def _split(kinds: str) -> tuple[str, ...]:
    return tuple(kinds.split())


class Tokens:
    """A text as a row of tokens with a reading head.

    `known` is its readers': what a `bracketed` text stands for, and how many tokens it has.
    """

    def __init__(self, text: str) -> None:
        """Split `text`; raises InvalidGraph at a character that begins no token."""
        self._text = text
        self._tokens: list[Token] = []
        self._next = 0
        self.known: dict[str, tuple[Any, int]] = {}
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                self._fail(position, f"found {text[position]!r}, which begins no name, number, string or mark")
            if found.lastgroup == "string":
                self._tokens.append(Token("string", self._unquoted(found.group(), position), position))
            elif found.lastgroup != "blank":
                self._tokens.append(Token(found.lastgroup or "", found.group(), position))
            position = found.end()
        self._tokens.append(Token("end", "the end of the text", len(text)))

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or one `ahead` of it, without reading it."""
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)] if ahead else self._tokens[self._next]

    def read(self) -> Token:
        """Read the next token; the end of the text is read any number of times."""
        token = self._tokens[self._next]
        self._next += token.kind != "end"
        return token

    def at(self, *texts: str, ahead: int = 0) -> bool:
        """Return whether the token `ahead` is one of these marks or bare names."""
        token = self.peek(ahead)
        return token.text in texts and token.kind in _BARE

    def accept(self, text: str) -> bool:
        """Read the next token if it is the mark or bare name `text`; whether it was."""
        token = self._tokens[self._next]
        found = token.text == text and token.kind in _BARE
        self._next += found
        return found

    def expect(self, text: str, why: str = "") -> Token:
        """Read the mark or bare name `text`; raises InvalidGraph where something else stands."""
        token = self._tokens[self._next]
        if not self.accept(text):
            self.fail(f"{text!r}{f' {why}' if why else ''}")
        return token

    def read_kind(self, kinds: str, expected: str) -> Token:
        """Read a token of one of the `kinds`, separated by blanks; raises InvalidGraph naming what was `expected`."""
        if self._tokens[self._next].kind not in _split(kinds):
            self.fail(expected)
        return self.read()

    def bracketed(self) -> str:
        """Return the text of the next tokens where these are `name[…]` with numbers and bare names only, else ""."""
        if not self.at("[", ahead=1):
            return ""
        begin = self._tokens[self._next].position
        text = self._text[begin : self._text.find("]", begin) + 1]
        return "" if _UNSURE.search(text) else text

    @property
    def count_read(self) -> int:
        """How many tokens were read."""
        return self._next

    def skip(self, count: int) -> None:
        """Read so many tokens, which are there."""
        self._next += count

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        """Raise InvalidGraph: `expected` was not found at `token` (the next one if None)."""
        token = self.peek() if token is None else token
        found = token.text if token.kind == "end" else quoted(token.text) if token.kind == "string" else repr(token.text)
        self._fail(token.position, f"expected {expected}, found {found}")

    def refuse(self, message: str, token: Token) -> NoReturn:
        """Raise InvalidGraph with `message` at the place of `token`."""
        self._fail(token.position, message)

    def _fail(self, position: int, message: str) -> NoReturn:
        line = self._text.count("\n", 0, position) + 1
        column = position - (self._text.rfind("\n", 0, position) + 1) + 1
        raise InvalidGraph(f"line {line}, column {column}: {message}")

    def _unquoted(self, text: str, position: int) -> str:
        try:
            return str(json.loads(text))
        except json.JSONDecodeError as error:
            self._fail(position + error.pos, f"the string {text} has a bad escape: {error.msg}")
