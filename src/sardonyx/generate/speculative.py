"""Speculative decoding: a small model proposes tokens, the large one reads them all in one run and keeps those that it agrees with.

Greedy rows get the tokens that the large model alone gives; drawn rows get tokens of its distribution: a proposal x of the draft's
distribution q is kept with probability min(1, p(x) / q(x)), and otherwise replaced by a token drawn from max(0, p - q) (Leviathan,
Kalman, Matias: Fast Inference from Transformers via Speculative Decoding, 2023, algorithm 1).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.generate.decoder import Decoder
from sardonyx.generate.row import Row, Token
from sardonyx.generate.state import State

__all__ = ["check_draft", "speculate"]


def check_draft(target: Decoder, draft: Decoder) -> None:
    """Raise InvalidArgument where a draft model cannot propose tokens to another."""
    if target.vocabulary != draft.vocabulary:
        raise InvalidArgument(
            f"the draft model has a vocabulary of {draft.vocabulary} tokens and the model one of {target.vocabulary}; a draft "
            "shares its tokenizer"
        )
    if not target.has_cache or not draft.has_cache:
        raise InvalidArgument("speculative decoding needs caches in both models: it goes back to where they agree")
    if target.takes_states or draft.takes_states:
        raise InvalidArgument("speculative decoding is for models without an encoder")


def speculate(target: Decoder, draft: Decoder, state: State, logits: Array, row: Row, count: int) -> Iterator[list[Token]]:
    """Make tokens until the row has ended; behind the range of the draft the target makes them alone.

    Args:
        target: the model whose tokens are wanted.
        draft: the model that proposes.
        state: what the target has read: the prompt.
        logits: the target's, of what follows, float32 (1, vocabulary).
        row: the row.
        count: how many tokens are proposed in a round, at least 1.

    Yields:
        The tokens of each round, at least one.

    Raises:
        InvalidArgument: the target gives logits of the last token only.
    """
    guesses = draft.start([row.prompt])[0] if _space(draft, row.prompt) else None
    yield [row.push(row.choose(logits[0]))]
    while row.reason is None:
        most = min(count, row.most - len(row.new) - 1, _space(draft, row.ids))
        proposed, chances = ([], []) if guesses is None else _propose(draft, guesses, row, most)
        scores = target.extend(state, [[row.new[-1], *proposed]])[0]
        if len(scores) != len(proposed) + 1:
            raise InvalidArgument("the model gives logits of the last token only; speculative decoding needs those of every token")
        made = [row.push(token) for token in _accepted(row, proposed, chances, scores)]
        kept = len(row.ids) - 1
        state.cut(kept)
        if guesses is not None and len(guesses.ids[0]) > kept:
            guesses.cut(kept)
        yield made


def _space(draft: Decoder, ids: Sequence[int]) -> int:
    """Return how many tokens a draft can propose behind others."""
    return sys.maxsize if draft.longest is None else max(draft.longest - len(ids) + 1, 0)


def _propose(draft: Decoder, guesses: State, row: Row, most: int) -> tuple[list[int], list[Array]]:
    """Return tokens that the draft would make, and the distribution that each was chosen by."""
    proposed: list[int] = []
    chances: list[Array] = []
    while len(proposed) < most:
        ids = [*row.ids, *proposed]
        logits = draft.extend(guesses, [ids[len(guesses.ids[0]) :]])[0, -1]
        found = row.sampler.chances(ids, len(row.new) + len(proposed), logits)
        proposed.append(_drawn(found, row))
        chances.append(found)
    return proposed, chances


def _accepted(row: Row, proposed: list[int], chances: list[Array], scores: Array) -> Iterator[int]:
    """Yield the proposals that the target keeps, and one token of its own, until the row ends."""
    start, made = row.ids, len(row.new)
    for place, (token, guessed) in enumerate(zip(proposed, chances, strict=True)):
        wanted = row.sampler.chances([*start, *proposed[:place]], made + place, scores[place])
        if row.sampler.random.random() * guessed[token] >= wanted[token]:
            rest = np.maximum(wanted - guessed, 0)
            yield _drawn(rest if rest.sum() > 0 else wanted, row)
            return
        yield token
        if row.reason is not None:
            return
    yield _drawn(row.sampler.chances([*start, *proposed], made + len(proposed), scores[len(proposed)]), row)


def _drawn(chances: Array, row: Row) -> int:
    """Return a token drawn by weights, float64 (vocabulary,)."""
    if not row.settings.draws:
        return int(chances.argmax())
    sums = np.cumsum(chances)
    return int(min(np.searchsorted(sums, row.sampler.random.random() * sums[-1], side="right"), np.flatnonzero(chances)[-1]))
