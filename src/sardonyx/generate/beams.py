"""Beam search: the continuations of highest probability, with the rules of `transformers` for scores, lengths and ends.

Each step, the candidates are all tokens after all beams. The best of them, some more than there are beams, are looked at: those
that end a row and are among the best `num_beams` become results, the others the next beams.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import RuntimeException
from sardonyx.generate.decoder import Decoder
from sardonyx.generate.processors import change_scores, limit_scores
from sardonyx.generate.row import Generation, Row
from sardonyx.generate.settings import Settings
from sardonyx.generate.state import State
from sardonyx.generate.stopping import find_word, stop_reason
from sardonyx.generate.text import Tokenizer

__all__ = ["search_beams"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Beam:
    """A sequence with its score: the log-probability of a beam, divided by its length of a result."""

    new: tuple[int, ...]
    """Its tokens behind the prompt."""
    score: np.float32
    """How good it is."""
    reason: str | None = None
    """Why it ended, None where it goes on."""


def search_beams(decoder: Decoder, state: State, logits: Array, row: Row, tokenizer: Tokenizer | None = None) -> list[Generation]:
    """Return the best continuations of a prompt, the best first.

    Args:
        decoder: reads tokens.
        state: what it has read: the prompt.
        logits: of what follows, float32 (1, vocabulary).
        row: the prompt, with the settings.
        tokenizer: makes texts of results.
    """
    settings = row.settings
    beams = [_Beam((), np.float32(0))]
    results: list[_Beam] = []
    while True:
        best = _candidates(settings, row, beams, logits)
        if not best and not results:
            raise RuntimeException("every token is excluded: the settings and processors leave none to choose")
        ends = [_ends(settings, beam.new, row.most, tokenizer) for _, beam in best]
        finished = [
            _Beam(beam.new, np.float32(beam.score / np.float32(len(beam.new) ** settings.length_penalty)), end)
            for (_, beam), end in zip(best[: settings.num_beams], ends, strict=False)
            if end is not None
        ]
        results = sorted([*results, *finished], key=lambda beam: -beam.score)[: settings.num_beams]
        going = [pair for pair, end in zip(best, ends, strict=True) if end is None][: settings.num_beams]
        if not going or _is_over(settings, row.most, results, going[0][1]):
            break
        state.select([source for source, _ in going], keep_fixed=state.rows == len(going))
        beams = [beam for _, beam in going]
        logits = decoder.step(state, [beam.new[-1] for beam in beams])
    return [_generation(beam, row, tokenizer) for beam in results[: settings.num_return_sequences]]


def _candidates(settings: Settings, row: Row, beams: Sequence[_Beam], logits: Array) -> list[tuple[int, _Beam]]:
    """Return the best continuations by one token, with the place of the beam that each continues."""
    count = max(2, 1 + len(settings.eos_token_id)) * settings.num_beams
    scores = np.stack([_scores(settings, row, beam, line) for beam, line in zip(beams, logits, strict=True)])
    flat, vocabulary = scores.reshape(-1), scores.shape[1]
    count = min(count, flat.size)
    keys = flat if not settings.draws else flat + row.sampler.random.gumbel(size=flat.size).astype(np.float32)
    chosen = np.argpartition(keys, flat.size - count)[flat.size - count :]
    chosen = chosen[np.lexsort((chosen, -flat[chosen]))] if not settings.draws else chosen[np.argsort(-keys[chosen])]
    pairs = [(int(place) // vocabulary, int(place) % vocabulary, flat[place]) for place in chosen if flat[place] > -np.inf]
    return [(source, _Beam((*beams[source].new, token), score)) for source, token, score in pairs]


def _scores(settings: Settings, row: Row, beam: _Beam, logits: Array) -> Array:
    """Return the log-probabilities of a beam with each token behind it, float32 (vocabulary,)."""
    shifted = logits - logits.max()
    logs = shifted - np.log(np.exp(shifted).sum())
    ids = [*row.prompt, *beam.new] if settings.changes_scores else ()
    changed = change_scores(settings, ids, len(beam.new), row.most, logs)
    if settings.draws:
        changed = limit_scores(settings, changed, len(settings.eos_token_id) + 1)
    return np.asarray(changed + beam.score, np.float32)


def _ends(settings: Settings, new: Sequence[int], most: int, tokenizer: Tokenizer | None) -> str | None:
    reason = stop_reason(settings, new, most)
    if reason != "stop" and settings.stop_words and tokenizer is not None:
        return "stop" if find_word(tokenizer.decode(new), settings.stop_words) is not None else reason
    return reason


def _is_over(settings: Settings, most: int, results: Sequence[_Beam], best: _Beam) -> bool:
    """Return whether the beams that go on are not expected to improve the results."""
    if len(results) < settings.num_beams:
        return False
    if settings.early_stopping is True:
        return True
    longest = most if settings.early_stopping == "never" and settings.length_penalty > 0 else len(best.new)
    return bool(best.score / np.float32(longest**settings.length_penalty) <= results[-1].score)


def _generation(beam: _Beam, row: Row, tokenizer: Tokenizer | None) -> Generation:
    text = None
    if tokenizer is not None:
        ends_by_token = beam.reason == "stop" and beam.new[-1] in row.settings.eos_token_id
        text = tokenizer.decode(beam.new[:-1] if ends_by_token else beam.new)
        place = find_word(text, row.settings.stop_words)
        text = text if place is None else text[:place]
    return Generation(list(beam.new), text, beam.reason or "length", len(row.prompt), float(beam.score))
