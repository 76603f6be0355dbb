"""What a decoder has read so far, for each row of a batch: tokens, caches, the encoder's states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.generate.cache import GrowingCache, SharedCache, take_rows

__all__ = ["State"]


class State:
    """The rows of a batch; made by `Decoder.start`, and freed with the last reference to it."""

    def __init__(
        self,
        ids: Sequence[Sequence[int]],
        cache: GrowingCache | SharedCache | None,
        fixed: Mapping[str, Array] | None = None,
    ) -> None:
        """Describe rows.

        Args:
            ids: the tokens that each row has read.
            cache: their caches; None for a decoder without.
            fixed: name of an input -> what is fed to it in every run, with the batch as its first axis: the encoder's states and
                mask.
        """
        self.ids = [list(row) for row in ids]
        self.cache = cache
        self.fixed = dict(fixed or {})
        self.cross: dict[str, tuple[Array, int]] = {}
        """Key of a cache of the encoder's states -> its array, and the axis of its batch."""
        self.padding = np.zeros(len(self.ids), np.int64)
        """How many columns of a growing cache lie before each row's first token; int64 (rows,)."""
        self.is_used = False
        """Whether a run has filled it."""

    @property
    def rows(self) -> int:
        """How many sequences."""
        return len(self.ids)

    @property
    def size_bytes(self) -> int:
        """How many bytes its caches take."""
        return (0 if self.cache is None else self.cache.size_bytes) + sum(array.nbytes for array, _ in self.cross.values())

    def select(self, rows: Sequence[int], *, keep_fixed: bool = False) -> None:
        """Keep these rows, in this order; a row may be kept more than once.

        Args:
            rows: places of rows.
            keep_fixed: leave the encoder's states as they are, since the rows, as many as before, all have the same ones.
        """
        if list(rows) == list(range(self.rows)):
            return
        if self.cache is not None:
            self.cache.select(rows)
        self.ids = [list(self.ids[row]) for row in rows]
        if not keep_fixed:
            self.fixed = {name: take_rows(array, 0, rows) for name, array in self.fixed.items()}
            self.cross = {key: (take_rows(array, axis, rows), axis) for key, (array, axis) in self.cross.items()}
        self.padding = self.padding[np.asarray(rows, np.int64)]
        unused = int(self.padding.min(initial=0 if not rows else self.padding[0]))
        if isinstance(self.cache, GrowingCache) and unused:
            self.cache.cut(unused, self.cache.length)
            self.padding -= unused

    def cut(self, length: int) -> None:
        """Forget what the only row has read after its first `length` tokens.

        Raises:
            InvalidArgument: there are more rows.
        """
        if self.rows != 1:
            raise InvalidArgument(f"the state of one row can be cut, this one has {self.rows}")
        del self.ids[0][length:]
        if isinstance(self.cache, GrowingCache):
            self.cache.cut(0, length)
        elif self.cache is not None:
            self.cache.cut(length)

    def copy(self) -> State:
        """Return the same in memory of its own; what is fixed is shared."""
        made = State(self.ids, None if self.cache is None else self.cache.copy(), self.fixed)
        made.cross, made.is_used, made.padding = dict(self.cross), self.is_used, self.padding.copy()
        return made

    def joined(self, others: Sequence[State]) -> State:
        """Return one state of the rows of this and the others, in memory of its own.

        Raises:
            InvalidArgument: the encoder's states of the rows differ in size.
        """
        parts = [self, *others]
        cache: GrowingCache | SharedCache | None = None
        if isinstance(self.cache, GrowingCache):
            cache = self.cache.joined([part.cache for part in others if isinstance(part.cache, GrowingCache)])
        elif isinstance(self.cache, SharedCache):
            cache = self.cache.joined([part.cache for part in others if isinstance(part.cache, SharedCache)])
        made = State([row for part in parts for row in part.ids], cache)
        made.fixed = {name: _stacked(name, [part.fixed[name] for part in parts], 0) for name in self.fixed}
        made.cross = {
            key: (_stacked(key, [part.cross[key][0] for part in parts], axis), axis) for key, (_, axis) in self.cross.items()
        }
        made.is_used = self.is_used
        if isinstance(cache, GrowingCache):
            made.padding = cache.length - np.array([len(row) for row in made.ids], np.int64)
        return made


def _stacked(name: str, arrays: Sequence[Array], axis: int) -> Array:
    shapes = {tuple(size for place, size in enumerate(array.shape) if place != axis) for array in arrays}
    if len(shapes) > 1:
        raise InvalidArgument(
            f"rows whose {name!r} have different sizes, {sorted(shapes)}, cannot share a batch; run them one by one"
        )
    return np.concatenate(arrays, axis=axis)
