"""Prompts that begin as earlier ones did are not read again: their caches are kept, up to a limit of memory."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import Array
from sardonyx.generate.decoder import Decoder
from sardonyx.generate.state import State

__all__ = ["PromptCache"]


class PromptCache:
    """States of rows that were read, the one used last first; not for two threads at a time."""

    def __init__(self, most_bytes: int) -> None:
        """Keep nothing yet.

        Args:
            most_bytes: how much memory the caches that are kept may take; the ones unused for longest go first.
        """
        self._most_bytes = most_bytes
        self._states: list[State] = []
        self.reused_tokens = 0
        """How many tokens of prompts were not read, since they were known."""

    @property
    def size_bytes(self) -> int:
        """How much memory is kept."""
        return sum(state.size_bytes for state in self._states)

    def start(self, decoder: Decoder, prompt: Sequence[int]) -> tuple[State, Array]:
        """Read a prompt as `Decoder.start` does, from where it differs from all that is kept."""
        known, common = None, 0
        for state in self._states:
            length = min(_common(state.ids[0], prompt), len(prompt) - 1)
            if length > common:
                known, common = state, length
        if known is None or not decoder.has_cache:
            return decoder.start([prompt])
        self._states.remove(known)
        self._states.insert(0, known)
        state = known.copy()
        state.cut(common)
        self.reused_tokens += common
        return state, decoder.extend(state, [prompt[common:]])[:, -1].copy()

    def keep(self, state: State) -> None:
        """Take over the state of one row, whose user is done with it; what it extends is no longer kept."""
        if state.rows != 1 or state.size_bytes > self._most_bytes:
            return
        ids = state.ids[0]
        if any(other.ids[0][: len(ids)] == ids for other in self._states):
            return
        self._states = [other for other in self._states if ids[: len(other.ids[0])] != other.ids[0]]
        self._states.insert(0, state)
        while self.size_bytes > self._most_bytes:
            self._states.pop()

    def clear(self) -> None:
        """Free what is kept."""
        self._states.clear()


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two sequences have in common at their beginning."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))
