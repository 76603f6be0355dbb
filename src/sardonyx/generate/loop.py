"""The loop that all generation is: choose a token of each row, drop rows that end, read the tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sardonyx.dtypes import Array
from sardonyx.generate.decoder import Decoder
from sardonyx.generate.row import Row, Token
from sardonyx.generate.state import State

__all__ = ["continue_rows"]


def continue_rows(decoder: Decoder, state: State, logits: Array, rows: Sequence[Row]) -> Iterator[list[Token]]:
    """Make tokens until every row has ended; a row that ends early leaves the batch.

    Args:
        decoder: reads tokens.
        state: what it has read of each row.
        logits: of what follows, float32 (rows, vocabulary).
        rows: the rows, in the order of the state's.

    Yields:
        A token of each row that goes on, step by step.
    """
    active = list(rows)
    while active:
        yield [row.push(row.choose(scores)) for row, scores in zip(active, logits, strict=True)]
        kept = [place for place, row in enumerate(active) if row.reason is None]
        if not kept:
            return
        active = [active[place] for place in kept]
        state.select(kept)
        logits = decoder.step(state, [row.new[-1] for row in active])
