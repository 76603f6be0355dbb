"""One row of a batch: its prompt, the tokens that were made, and how the next is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.generate.sampling import Sampler
from sardonyx.generate.settings import Settings
from sardonyx.generate.stopping import stop_reason
from sardonyx.generate.text import TextMark, TextStream, Tokenizer

__all__ = ["Generation", "Row", "RowMark", "Token", "most_tokens"]

_USUAL_MOST = 256


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A token that was made."""

    id: int
    """Its number in the vocabulary."""
    text: str
    """The text that is certain with it; "" without a tokenizer, and while a character or a stop word may be unfinished."""
    row: int = 0
    """The prompt that it continues, by its place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Generation:
    """The continuation of a prompt."""

    ids: list[int]
    """The tokens that were made, the one that ended the row included."""
    text: str | None
    """Their text, without what ended the row; None without a tokenizer."""
    reason: str
    """Why it ended: "stop" (a token, sequence or text that ends rows) or "length" (the most tokens, or the model's range); "open"
    where it has not, as in a stream that goes on or was closed."""
    prompt_tokens: int
    """How many tokens the prompt has."""
    score: float | None = None
    """Of a beam: its log-probability by its length to the power of `length_penalty`."""


@dataclasses.dataclass(frozen=True, slots=True)
class RowMark:
    """What a row was at some time."""

    made: int
    """How many tokens it had behind its prompt."""
    reason: str | None
    """Why it had ended, None where it had not."""
    text: TextMark | None
    """What its text was; None without a tokenizer."""
    random: Mapping[str, Any] | None
    """The state of its random numbers, as NumPy has it (Any: NumPy's); None where none are drawn."""


class Row:
    """A sequence in the making."""

    def __init__(
        self,
        prompt: list[int],
        settings: Settings,
        *,
        place: int = 0,
        longest: int | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        """Begin with a prompt.

        Args:
            prompt: its tokens.
            settings: how to continue it.
            place: its number among the prompts, which is part of its seed.
            longest: the most tokens that the model reads; None where there is no limit.
            tokenizer: makes text of tokens.

        Raises:
            InvalidArgument: stop words are given and no tokenizer.
        """
        if settings.stop_words and tokenizer is None:
            raise InvalidArgument(
                "stop_words are texts, which need a tokenizer; give stop_sequences, or load a folder with tokenizer.json"
            )
        self.prompt, self.settings, self.place = prompt, settings, place
        self.most = most_tokens(settings, len(prompt), longest)
        self.new: list[int] = []
        self.reason: str | None = None
        self.stream = None if tokenizer is None else TextStream(tokenizer, settings.stop_words)
        self.sampler = Sampler(settings, self.most, place)

    @property
    def ids(self) -> list[int]:
        """The prompt and what was made."""
        return [*self.prompt, *self.new]

    def choose(self, logits: Array) -> int:
        """Return the next token by the logits of this row, float32 (vocabulary,)."""
        changes = self.settings.changes_scores
        return self.sampler.choose(self.ids if changes else (), len(self.new), logits)

    def push(self, token: int) -> Token:
        """Take a token as made, and find out whether the row ends with it."""
        self.new.append(token)
        self.reason = stop_reason(self.settings, self.new, self.most)
        if self.stream is None:
            return Token(token, "", self.place)
        ends_by_token = self.reason == "stop" and token in self.settings.eos_token_id
        text = "" if ends_by_token else self.stream.push(token)
        if self.stream.is_stopped:
            self.reason = "stop"
        elif self.reason is not None:
            text += self.stream.finish()
        return Token(token, text, self.place)

    def mark(self) -> RowMark:
        """Return what it is by now, for `go_back`."""
        random = self.sampler.random.bit_generator.state if self.settings.draws else None
        return RowMark(len(self.new), self.reason, None if self.stream is None else self.stream.mark(), random)

    def go_back(self, mark: RowMark) -> None:
        """Be what it was at a mark, the numbers that will be drawn included."""
        del self.new[mark.made :]
        self.reason = mark.reason
        if self.stream is not None and mark.text is not None:
            self.stream.go_back(mark.text)
        if mark.random is not None:
            self.sampler.random.bit_generator.state = mark.random

    def result(self) -> Generation:
        """Return what was made."""
        text = None if self.stream is None else self.stream.text
        return Generation(list(self.new), text, self.reason or "open", len(self.prompt))


def most_tokens(settings: Settings, prompt_tokens: int, longest: int | None) -> int:
    """Return how many tokens a row gets at most.

    Raises:
        InvalidArgument: the prompt fills the model's range.
    """
    left = None if longest is None else longest - prompt_tokens + 1
    if left is not None and left < 1:
        raise InvalidArgument(f"the prompt has {prompt_tokens} tokens, and the model reads {longest} at most; shorten the prompt")
    most = _USUAL_MOST if settings.max_new_tokens is None else settings.max_new_tokens
    return most if left is None else min(most, left)
