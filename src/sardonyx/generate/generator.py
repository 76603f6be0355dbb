"""`Generator`: continues prompts by any decoder, alone or in batches, whole or token by token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument, NotFound
from sardonyx.generate.beams import search_beams
from sardonyx.generate.chat import ChatTemplate
from sardonyx.generate.decoder import Decoder
from sardonyx.generate.encoder import Encoder
from sardonyx.generate.loop import continue_rows
from sardonyx.generate.prefix import PromptCache
from sardonyx.generate.row import Generation, Row, Token
from sardonyx.generate.settings import Settings, is_whole, settings_of
from sardonyx.generate.speculative import check_draft, speculate
from sardonyx.generate.state import State
from sardonyx.generate.text import Tokenizer

__all__ = ["Generator", "Prompt", "TokenStream"]

Prompt: TypeAlias = str | Sequence[int] | Array
"""A text, its tokens, or the features that an encoder reads."""


class TokenStream(Iterator[Token]):
    """The tokens of a generation, made as they are asked for; closing it, or dropping it, frees what it held."""

    def __init__(self, tokens: Iterator[list[Token]], rows: Sequence[Row]) -> None:
        """Take the steps of a generation."""
        self._steps, self._rows = tokens, rows
        self._ready: list[Token] = []

    def __next__(self) -> Token:
        """Return the next token."""
        while not self._ready:
            self._ready = list(next(self._steps))
        return self._ready.pop(0)

    def close(self) -> None:
        """End the generation, and free caches and buffers."""
        self._ready = []
        close = getattr(self._steps, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> TokenStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def results(self) -> list[Generation]:
        """What was made so far, one for each prompt."""
        return [row.result() for row in self._rows]


class Generator:
    """A model that continues prompts; one generation at a time, from one thread."""

    def __init__(
        self,
        decoder: Decoder,
        *,
        encoder: Encoder | None = None,
        settings: Settings | None = None,
        tokenizer: Tokenizer | None = None,
        chat_template: ChatTemplate | None = None,
        start_ids: Sequence[int] = (),
        prompt_cache: PromptCache | None = None,
        lacking: NotFound | None = None,
    ) -> None:
        """Put together what `load` finds in a folder.

        Args:
            decoder: reads tokens.
            encoder: reads prompts before it, None where the decoder does.
            settings: how to generate where a call does not say otherwise.
            tokenizer: makes tokens of texts, None where prompts are tokens.
            chat_template: makes texts of conversations.
            start_ids: what the decoder begins with, where an encoder reads the prompt.
            prompt_cache: keeps what prompts were read; None for none.
            lacking: what to raise where a text or a conversation is given: the package that is not installed; None where nothing
                lacks.
        """
        self.decoder, self.encoder = decoder, encoder
        self.settings = Settings() if settings is None else settings
        self.tokenizer, self.chat_template = tokenizer, chat_template
        self.prompt_cache = prompt_cache
        self._start_ids, self._lacking = list(start_ids), lacking

    def generate(
        self,
        prompt: Prompt | Sequence[str] | Sequence[Sequence[int]],
        *,
        decoder_prompt: Sequence[int] | None = None,
        draft: Generator | None = None,
        draft_tokens: int = 4,
        **settings: Any,
    ) -> list[Generation]:
        """Continue one prompt or several.

        Args:
            prompt: a text, the tokens of one, or a list of either; features, float (rows, …), for an encoder that reads them.
            decoder_prompt: what the decoder begins with where an encoder reads the prompt; as the model's configuration says where
                None.
            draft: a smaller model of the same vocabulary that proposes tokens; the tokens are those of this model, made in fewer
                runs.
            draft_tokens: how many tokens are proposed at a time.
            settings: fields of `Settings` (Any: each has its own type).

        Returns:
            The continuations of the first prompt, the best first, then those of the next.

        Raises:
            InvalidArgument: a prompt, a setting or their combination is not one that the model can run.
            RuntimeException: no token can be chosen.
        """
        chosen = settings_of(self.settings, settings)
        if chosen.num_beams > 1:
            return self._search(prompt, decoder_prompt, chosen, draft)
        stream = self._stream(prompt, decoder_prompt, chosen, draft, draft_tokens)
        for _ in stream:
            pass
        return stream.results

    def stream(
        self,
        prompt: Prompt | Sequence[str] | Sequence[Sequence[int]],
        *,
        decoder_prompt: Sequence[int] | None = None,
        draft: Generator | None = None,
        draft_tokens: int = 4,
        **settings: Any,
    ) -> TokenStream:
        """Continue prompts token by token; arguments and errors as of `generate`, without beams.

        Returns:
            An iterator over tokens, each with its text and the number of its prompt. It may be closed at any time.
        """
        chosen = settings_of(self.settings, settings)
        if chosen.num_beams > 1:
            raise InvalidArgument(
                f"beams (num_beams={chosen.num_beams}) are known at their end only; call generate, or give num_beams=1"
            )
        return self._stream(prompt, decoder_prompt, chosen, draft, draft_tokens)

    def chat(self, messages: Sequence[Mapping[str, object]], **settings: Any) -> Generation:
        """Answer a conversation.

        Args:
            messages: objects with "role" and "content", in order.
            settings: as for `generate`.

        Raises:
            InvalidArgument: the folder has no chat template or tokenizer, or as for `generate`.
        """
        return self.generate(self.chat_prompt(messages), **settings)[0]

    def chat_prompt(self, messages: Sequence[Mapping[str, object]]) -> list[int]:
        """Return the tokens of a conversation that ends where the model's answer begins.

        Raises:
            InvalidArgument: the folder has no chat template or tokenizer, or the template refuses the messages.
        """
        if self.chat_template is None or self.tokenizer is None:
            if self._lacking is not None:
                raise self._lacking
            raise InvalidArgument(
                "a conversation needs a chat template (tokenizer_config.json, chat_template.jinja) and tokenizer.json"
            )
        return self.tokenizer.encode(self.chat_template.render(messages), special=False)

    def encode(self, prompt: str | Sequence[int]) -> list[int]:
        """Return the tokens of a prompt.

        Raises:
            NotFound: it is a text, and the package that makes tokens of it is not installed.
            InvalidArgument: it is a text and there is no tokenizer, or is neither text nor tokens.
        """
        if isinstance(prompt, str):
            if self.tokenizer is None:
                if self._lacking is not None:
                    raise self._lacking
                raise InvalidArgument(
                    "a prompt that is text needs a tokenizer: load a folder with tokenizer.json, or give token ids"
                )
            return self.tokenizer.encode(prompt)
        try:
            array = np.asarray(prompt)
            if array.ndim == 1 and (array.dtype.kind in "iu" or all(is_whole(token) for token in array)):
                return [int(token) for token in array]
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"a prompt is a text or its tokens: {error}") from error
        raise InvalidArgument(
            f"a prompt is a text or a list of token ids, got {type(prompt).__name__} of {array.dtype} {array.shape}"
        )

    def start(self, rows: Sequence[Sequence[int]], fixed: Mapping[str, Array] | None = None) -> tuple[State, Array]:
        """Read prompts as `Decoder.start` does, and one alone from where it differs from those that are kept."""
        if self.prompt_cache is not None and len(rows) == 1 and not fixed:
            return self.prompt_cache.start(self.decoder, rows[0])
        return self.decoder.start(rows, fixed)

    def _stream(
        self, prompt: Any, decoder_prompt: Sequence[int] | None, settings: Settings, draft: Generator | None, draft_tokens: int
    ) -> TokenStream:
        prompts, fixed = self._read(prompt, decoder_prompt, settings.num_return_sequences)
        rows = [
            Row(ids, settings, place=place, longest=self.decoder.longest, tokenizer=self.tokenizer)
            for place, ids in enumerate(prompts)
        ]
        if draft is not None:
            if not _is_generator(draft):
                raise InvalidArgument(f"draft is a model as `load` returns it, got {type(draft).__name__}")
            if not is_whole(draft_tokens) or draft_tokens < 1:
                raise InvalidArgument(f"draft_tokens is a whole number of at least 1, got {draft_tokens!r}")
            check_draft(self.decoder, draft.decoder)
            return TokenStream(self._speculated(draft.decoder, rows, draft_tokens), rows)
        return TokenStream(self._steps(rows, fixed), rows)

    def _steps(self, rows: Sequence[Row], fixed: Mapping[str, Array]) -> Iterator[list[Token]]:
        for group in self._groups(rows) if rows else ():
            places = [row.place for row in group]
            state, logits = self.start([row.prompt for row in group], {name: array[places] for name, array in fixed.items()})
            yield from continue_rows(self.decoder, state, logits, group)
            if self.prompt_cache is not None and not fixed and state.rows == 1:
                self.prompt_cache.keep(state)

    def _groups(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Return which rows share a batch: all, or those of one length where the model cannot place others."""
        if self.decoder.places_rows:
            return [list(rows)]
        lengths = {len(row.prompt): None for row in rows}
        return [[row for row in rows if len(row.prompt) == length] for length in lengths]

    def _speculated(self, draft: Decoder, rows: Sequence[Row], count: int) -> Iterator[list[Token]]:
        for row in rows:
            state, logits = self.start([row.prompt])
            yield from speculate(self.decoder, draft, state, logits, row, count)
            if self.prompt_cache is not None:
                self.prompt_cache.keep(state)

    def _search(self, prompt: Any, decoder_prompt: Sequence[int] | None, settings: Settings, draft: object) -> list[Generation]:
        if draft is not None:
            raise InvalidArgument("a draft model proposes tokens of one sequence; give num_beams=1 with it")
        prompts, fixed = self._read(prompt, decoder_prompt, 1)
        found: list[Generation] = []
        for place, ids in enumerate(prompts):
            row = Row(ids, settings, place=place, longest=self.decoder.longest, tokenizer=self.tokenizer)
            state, logits = self.start([ids], {name: array[place : place + 1] for name, array in fixed.items()})
            found += search_beams(self.decoder, state, logits, row, self.tokenizer)
        return found

    def _read(self, prompt: Any, decoder_prompt: Sequence[int] | None, copies: int) -> tuple[list[list[int]], dict[str, Array]]:
        """Return the decoder's prompts, each as often as it is to be continued, and what is fed to it in every run."""
        if self.encoder is None:
            if decoder_prompt is not None:
                raise InvalidArgument("decoder_prompt is for models with an encoder; this one has none")
            if self.decoder.takes_states:
                raise InvalidArgument(
                    "the decoder reads an encoder's states, and there is no encoder; load the folder that has both"
                )
            prompts = [self.encode(item) for item in _several(prompt)]
            return [ids for ids in prompts for _ in range(copies)], {}
        if self.encoder.reads_tokens:
            encoded = self.encoder.encode_tokens([self.encode(item) for item in _several(prompt)])
        else:
            encoded = self.encoder.encode_features(_features(prompt, self.encoder.feature_rank))
        start = list(self._start_ids if decoder_prompt is None else decoder_prompt)
        if not start:
            raise InvalidArgument(
                "a decoder with an encoder needs a token to begin with: decoder_start_token_id, or decoder_prompt"
            )
        places = np.repeat(np.arange(len(encoded["encoder_states"])), copies)
        names = self.decoder.names_of(encoded)
        return [list(start) for _ in places], {name: encoded[role][places] for role, name in names.items()}


def _is_generator(draft: object) -> bool:
    return isinstance(draft, Generator)


def _several(prompt: Any) -> list[Any]:
    """Return prompts as a list, one alone too."""
    if isinstance(prompt, str):
        return [prompt]
    if hasattr(prompt, "__array__"):  # tensors of other packages too
        array = np.asarray(prompt)
        return list(array) if array.ndim > 1 else [array]
    if not isinstance(prompt, Sequence):
        raise InvalidArgument(f"a prompt is a text, token ids, or a list of either, got {type(prompt).__name__}")
    if not prompt:
        return [prompt]
    return list(prompt) if isinstance(prompt[0], (str, Sequence)) or np.ndim(prompt[0]) == 1 else [prompt]


def _features(prompt: Any, rank: int) -> Array:
    if isinstance(prompt, str):
        raise InvalidArgument("the encoder reads features, float (rows, …), such as spectrograms; it got a text")
    array = np.asarray(prompt)
    return array[None] if rank and array.ndim == rank - 1 else array
