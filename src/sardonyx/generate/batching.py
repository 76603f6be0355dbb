"""Continuous batching: requests that come and go share the steps of one decoder.

submit ─► waiting ─► read together ─► rows ─► a token of each per step ─► ended rows leave, waiting ones take their places
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.forks import new_lock
from sardonyx.generate.generator import Generator
from sardonyx.generate.row import Generation, Row, Token
from sardonyx.generate.settings import is_whole, settings_of
from sardonyx.generate.state import State

__all__ = ["Batch", "Request"]


class Request:
    """A prompt that a batch continues; made by `Batch.submit`."""

    def __init__(self, row: Row) -> None:
        """Wait for a place."""
        self.row = row
        self.is_cancelled = False
        """Whether nobody wants it any more."""
        self.error: Exception | None = None
        """What ended it, where that was an error: of a processor, or of the run that read its prompt."""

    @property
    def is_done(self) -> bool:
        """Whether no more tokens come."""
        return self.is_cancelled or self.error is not None or self.row.reason is not None

    @property
    def result(self) -> Generation:
        """What was made so far."""
        return self.row.result()

    def cancel(self) -> None:
        """Give its place and its caches back before the next step; any thread may call it."""
        self.is_cancelled = True


class Batch:
    """Runs the requests that are there, step by step; closing it frees the caches of all.

    Steps are for one thread at a time, `submit` and `cancel` for any. A request gets the tokens that it would get alone.
    """

    def __init__(self, generator: Generator, most_rows: int = 8) -> None:
        """Take a model.

        Args:
            generator: the model, with settings for requests that do not say otherwise.
            most_rows: how many requests share a step; more wait.

        Raises:
            InvalidArgument: the model has an encoder, or cannot place rows of different lengths in one batch.
        """
        if not is_whole(most_rows) or most_rows < 1:
            raise InvalidArgument(f"most_rows is a whole number of at least 1, got {most_rows!r}")
        if generator.encoder is not None:
            raise InvalidArgument("continuous batching is for decoders without an encoder; give generate a list of prompts")
        if not generator.decoder.places_rows:
            raise InvalidArgument(
                "the model takes no attention_mask with position_ids, so rows of different lengths cannot share a step"
            )
        self._generator, self._most_rows = generator, most_rows
        self._waiting: deque[Request] = deque()
        self._lock = new_lock()
        self._running: list[Request] = []
        self._made: list[tuple[Request, Token]] = []
        self._state: State | None = None

    def submit(self, prompt: str | Sequence[int], **settings: Any) -> Request:
        """Have a prompt continued, beginning with the next step.

        Args:
            prompt: a text or its tokens.
            settings: fields of `Settings` but beams (Any: each has its own type).

        Raises:
            InvalidArgument: the prompt or a setting is not one that the model can run.
        """
        chosen = settings_of(self._generator.settings, settings)
        if chosen.num_beams > 1 or chosen.num_return_sequences > 1:
            raise InvalidArgument("a request of a batch has one result and no beams; submit it several times, or call generate")
        decoder, ids = self._generator.decoder, self._generator.encode(prompt)
        decoder.check([ids])
        request = Request(Row(ids, chosen, longest=decoder.longest, tokenizer=self._generator.tokenizer))
        with self._lock:
            self._waiting.append(request)
        return request

    def step(self) -> list[tuple[Request, Token]]:
        """Make a token of every request that has a place; returns them, none where nobody waits.

        Raises:
            Exception: what a processor or the choice of a token raised, or the run that read a prompt. It is the `error` of its
                request, which is done; the others have their tokens, which the next step returns with its own.
        """
        self._leave()
        if self._state is not None:
            logits = self._generator.decoder.step(self._state, [request.row.new[-1] for request in self._running])
            self._choose(self._running, logits)
        self._admit()
        self._leave()
        made, self._made = self._made, []
        return made

    def __iter__(self) -> Iterator[tuple[Request, Token]]:
        """Make tokens until no request is left; more may be submitted meanwhile."""
        while self.is_busy:
            yield from self.step()

    @property
    def is_busy(self) -> bool:
        """Whether a request runs or waits."""
        return bool(self._running or self._waiting or self._made)

    @property
    def size_bytes(self) -> int:
        """How many bytes the caches of the running requests take."""
        return 0 if self._state is None else self._state.size_bytes

    def close(self) -> None:
        """Cancel all requests, and free their caches."""
        with self._lock:
            requests = [*self._running, *self._waiting]
            self._waiting.clear()
        for request in requests:
            request.cancel()
        self._running, self._made, self._state = [], [], None

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _leave(self) -> None:
        """Free the places of requests that are done."""
        kept = [place for place, request in enumerate(self._running) if not request.is_done]
        if self._state is None or len(kept) == len(self._running):
            return
        self._running = [self._running[place] for place in kept]
        if kept:
            self._state.select(kept)
        else:
            self._state = None

    def _admit(self) -> None:
        """Read the prompts of waiting requests as far as there are places, and make their first tokens."""
        with self._lock:
            taken: list[Request] = []
            while self._waiting and len(self._running) + len(taken) < self._most_rows:
                request = self._waiting.popleft()
                if not request.is_cancelled:
                    taken.append(request)
        if not taken:
            return
        try:
            parts = [self._generator.start([request.row.prompt for request in group]) for group in self._groups(taken)]
        except Exception as error:
            for request in taken:
                request.error = error
            raise
        states = [part for part, _ in parts] if self._state is None else [self._state, *(part for part, _ in parts)]
        self._state = states[0] if len(states) == 1 else states[0].joined(states[1:])
        self._running += taken
        self._choose(taken, np.concatenate([scores for _, scores in parts]))

    def _choose(self, requests: Sequence[Request], logits: Array) -> None:
        """Make a token of each request by its logits (rows, vocabulary); the first error is raised when all have had their turn."""
        errors: list[Exception] = []
        for request, scores in zip(requests, logits, strict=True):
            try:
                self._made.append((request, request.row.push(request.row.choose(scores))))
            except Exception as error:  # noqa: BLE001  # raised below, when the others have had their turn
                request.error = error
                errors.append(error)
        if errors:
            raise errors[0]

    def _groups(self, taken: list[Request]) -> list[list[Request]]:
        """Return which prompts are read at once: all, or each alone where a prompt may begin as a kept one does."""
        return [taken] if self._generator.prompt_cache is None else [[request] for request in taken]
