"""Text to tokens and back, by the `tokenizers` package, which is imported when a folder with a tokenizer is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument, NotFound
from sardonyx.forks import without_fork
from sardonyx.generate.stopping import find_word, held_back

__all__ = ["TextMark", "TextStream", "Tokenizer"]

_UNFINISHED = "\ufffd"
"""What a tokenizer gives for bytes that are no whole character yet."""


class Tokenizer:
    """The tokenizer of a folder's `tokenizer.json`."""

    def __init__(self, path: Path) -> None:
        """Read a file.

        Raises:
            NotFound: the package `tokenizers` is not installed.
            InvalidArgument: the file describes no tokenizer.
        """
        try:
            with without_fork():
                import tokenizers  # only who generates text needs it
        except ImportError as error:
            raise NotFound('text needs the package tokenizers: pip install "sardonyx[generate]"') from error
        try:
            self._inner: Any = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises plain Exception for what it cannot read
            raise InvalidArgument(f"{path} describes no tokenizer: {error}") from error

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return the tokens of a text.

        Args:
            text: any text.
            special: whether tokens that mark its beginning and end are added, where the tokenizer does that.

        Raises:
            InvalidArgument: it holds half of a surrogate pair, as text of bytes that are no UTF-8 does.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgument(
                f"character {error.start} of the text, {text[error.start]!r}, is half of a surrogate pair, which is no character; "
                "decode the bytes that it comes from by their encoding"
            ) from error
        return [int(token) for token in self._inner.encode(text, add_special_tokens=special).ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without those that mark beginning and end."""
        return str(self._inner.decode(list(ids), skip_special_tokens=True))

    @property
    def vocabulary(self) -> int:
        """How many tokens it knows."""
        return int(self._inner.get_vocab_size(with_added_tokens=True))


@dataclasses.dataclass(frozen=True, slots=True)
class TextMark:
    """What a `TextStream` was at some time."""

    tokens: int
    """How many tokens it had."""
    start: int
    """The token that its undecided text begins with, with tokens before it that say how it is spelt."""
    read: int
    """The first token whose text is not in `shown` or `pending`."""
    shown: str
    """What was given out."""
    pending: str
    """What was held back."""
    is_stopped: bool
    """Whether a stop word was met."""


class TextStream:
    """The text of tokens that come one after another, given out as soon as it cannot change any more."""

    def __init__(self, tokenizer: Tokenizer, words: Sequence[str] = ()) -> None:
        """Begin with no token.

        Args:
            tokenizer: makes texts of tokens.
            words: texts that end the row; the text ends before them.
        """
        self._tokenizer, self._words = tokenizer, tuple(words)
        self._ids: list[int] = []
        self._start = self._read = 0
        self._shown = ""
        self._pending = ""
        self.is_stopped = False
        """Whether a stop word was met."""

    def mark(self) -> TextMark:
        """Return what it is by now, for `go_back`."""
        return TextMark(len(self._ids), self._start, self._read, self._shown, self._pending, self.is_stopped)

    def go_back(self, mark: TextMark) -> None:
        """Be what it was at a mark."""
        del self._ids[mark.tokens :]
        self._start, self._read = mark.start, mark.read
        self._shown, self._pending, self.is_stopped = mark.shown, mark.pending, mark.is_stopped

    @property
    def text(self) -> str:
        """What was given out."""
        return self._shown

    def push(self, token: int) -> str:
        """Take a token; returns the text that is certain by now, which may be empty."""
        self._ids.append(token)
        before, whole = (
            self._tokenizer.decode(self._ids[self._start : self._read]),
            self._tokenizer.decode(self._ids[self._start :]),
        )
        if whole.endswith(_UNFINISHED):
            return ""
        self._start, self._read = self._read, len(self._ids)
        return self._give(whole[len(before) :], is_last=False)

    def finish(self) -> str:
        """Return what was held back."""
        before, whole = (
            self._tokenizer.decode(self._ids[self._start : self._read]),
            self._tokenizer.decode(self._ids[self._start :]),
        )
        self._start = self._read = len(self._ids)
        return self._give(whole[len(before) :], is_last=True)

    def _give(self, text: str, *, is_last: bool) -> str:
        if self.is_stopped:
            return ""
        self._pending += text
        place = find_word(self._pending, self._words)
        if place is not None:
            self.is_stopped, given, self._pending = True, self._pending[:place], ""
        else:
            kept = 0 if is_last else held_back(self._pending, self._words)
            given, self._pending = self._pending[: len(self._pending) - kept], self._pending[len(self._pending) - kept :]
        self._shown += given
        return given
