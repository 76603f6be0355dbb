"""Continuous batching: requests that come and go share the steps of one decoder.

submit ─► waiting ─► read together ─► rows ─► a token of each per step ─► ended rows leave, waiting ones take their places
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from types import TracebackType
from typing import Any

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.forks import new_lock
from sardonyx.generate.generator import Generator
from sardonyx.generate.row import Generation, Row, Token
from sardonyx.generate.settings import is_whole, settings_of
from sardonyx.generate.state import State

__all__ = ["Batch", "Request", "group_prompts"]

_MOST_PADDED = 1.125
_PLACES_OF_A_RUN = 8
"""To read so many tokens takes hardly longer than to read one: the weights come from memory in the meantime."""


class Request:
    """A prompt that a batch continues; made by `Batch.submit`."""

    def __init__(self, row: Row) -> None:
        """Wait for a place."""
        self.row = row
        self.beginning = row.mark()
        """What the row was before its prompt was read."""
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


class _Rows:
    """What a batch has between two steps; made when a step is whole, so that rows can go back on one that was ended within."""

    def __init__(self, requests: Sequence[Request], state: State | None, made: Sequence[tuple[Request, Token]]) -> None:
        """Take what a step has left.

        Args:
            requests: those that have a place.
            state: what was read of them, all but their last tokens; None where there are none.
            made: tokens that no step has returned.
        """
        self.requests, self.state, self.made = list(requests), state, list(made)
        self.taken: Sequence[Request] = ()
        """Those that the step underway gives a place."""
        self._marks = [request.row.mark() for request in self.requests]

    def take_state(self) -> State | None:
        """Return the state for a step to change; None where there is none, or a step that was ended within has taken it."""
        state, self.state = self.state, None
        if state is None:
            for request, mark in zip(self.requests, self._marks, strict=True):
                request.row.go_back(mark)
        for request in self.taken:
            request.row.go_back(request.beginning)
        self.taken = ()
        return state


class Batch:
    """Runs the requests that are there, step by step; closing it frees the caches of all.

    Steps are for one thread at a time, `submit` and `cancel` for any. A request gets the tokens that it would get alone. A step
    that ends within, by Ctrl-C or as a run fails, has not taken place: the next one reads its rows again and makes the same tokens.
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
        self._waiting: list[Request] = []
        self._lock = new_lock()
        self._rows = _Rows([], None, [])

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
        rows = self._rows
        running, made = list(rows.requests), list(rows.made)
        running, state = self._leave(running, self._known(running, rows.take_state()))
        error: Exception | None = None
        if state is not None:
            logits = self._generator.decoder.step(state, [request.row.new[-1] for request in running])
            error = _choose(running, logits, made)
        if error is None:
            groups = self._groups(self._taken(running))
            taken = rows.taken = [request for group in groups for request in group]
            try:
                parts = [self._generator.start([request.row.prompt for request in group]) for group in groups]
                state = _joined(state, [part for part, _ in parts])
            except Exception as problem:  # noqa: BLE001  # raised below, when what the others have made is kept
                error = problem
                for request in taken:
                    request.error = problem
            else:
                running += taken
                error = _choose(taken, [scores for _, several in parts for scores in several], made)
        running, state = self._leave(running, state)
        self._rows = _Rows(running, state, made if error is not None else [])
        self._forget_waiting(running)
        if error is not None:
            raise error
        return made

    def __iter__(self) -> Iterator[tuple[Request, Token]]:
        """Make tokens until no request is left; more may be submitted meanwhile."""
        while self.is_busy:
            yield from self.step()

    @property
    def is_busy(self) -> bool:
        """Whether a request runs or waits."""
        return bool(self._rows.requests or self._waiting or self._rows.made)

    @property
    def size_bytes(self) -> int:
        """How many bytes the caches of the running requests take."""
        state = self._rows.state
        return 0 if state is None else state.size_bytes

    def close(self) -> None:
        """Cancel all requests, and free their caches."""
        with self._lock:
            requests = [*self._rows.requests, *self._waiting]
            self._waiting.clear()
        for request in requests:
            request.cancel()
        self._rows = _Rows([], None, [])

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _known(self, running: Sequence[Request], state: State | None) -> State | None:
        """Return the state of requests, read again where there is none."""
        if state is not None or not running:
            return state
        groups = [list(running)] if self._generator.prompt_cache is None else [[request] for request in running]
        parts = [self._generator.start([request.row.ids[:-1] for request in group]) for group in groups]
        return _joined(None, [part for part, _ in parts])

    def _leave(self, running: list[Request], state: State | None) -> tuple[list[Request], State | None]:
        """Return the requests that are not done, and the state without the others."""
        kept = [place for place, request in enumerate(running) if not request.is_done]
        if state is None or not kept:
            return [], None
        state.select(kept)
        return [running[place] for place in kept], state

    def _taken(self, running: Sequence[Request]) -> list[Request]:
        """Return the waiting requests that there are places for, which wait until a step with them is whole."""
        self._forget_waiting(running)
        return [request for request in list(self._waiting) if not request.is_done][: self._most_rows - len(running)]

    def _forget_waiting(self, running: Sequence[Request]) -> None:
        """Drop the first of those that wait as far as they run or are done."""
        gone = takewhile(lambda request: request.is_done or request in running, list(self._waiting))
        del self._waiting[: sum(1 for _ in gone)]

    def _groups(self, taken: Sequence[Request]) -> list[list[Request]]:
        """Return which prompts are read at once; each alone where one may begin as a kept one does."""
        if self._generator.prompt_cache is not None:
            return [[request] for request in taken]
        return [[taken[place] for place in group] for group in group_prompts([len(request.row.prompt) for request in taken])]


def group_prompts(lengths: Sequence[int]) -> list[list[int]]:
    """Return which prompts of these lengths are read at once, by their places.

    In a group shorter ones are padded to the longest, so that prompts are read together only where that takes hardly more places
    than to read them apart, `_MOST_PADDED` times as many; a run takes `_PLACES_OF_A_RUN` at least.
    """
    groups: list[list[int]] = []
    places = 0
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[place]
        together = (len(groups[-1]) + 1) * length if groups else 0
        apart = places + max(length, _PLACES_OF_A_RUN)
        if groups and max(together, _PLACES_OF_A_RUN) <= apart * _MOST_PADDED:
            groups[-1].append(place)
        else:
            groups.append([place])
        places = max(len(groups[-1]) * length, _PLACES_OF_A_RUN)
    return groups


def _joined(state: State | None, others: Sequence[State]) -> State | None:
    parts = [*([] if state is None else [state]), *others]
    if len(parts) < 2:
        return parts[0] if parts else None
    return parts[0].joined(parts[1:])


def _choose(requests: Sequence[Request], logits: Sequence[Array] | Array, made: list[tuple[Request, Token]]) -> Exception | None:
    """Make a token of each request by its logits (rows, vocabulary); returns the first error, when all have had their turn."""
    first: Exception | None = None
    for request, scores in zip(requests, logits, strict=True):
        try:
            made.append((request, request.row.push(request.row.choose(scores))))
        except Exception as error:  # noqa: BLE001  # returned, when the others have had their turn
            request.error, first = error, first or error
    return first
