"""Tables from keys to places, for operators that encode categories: built once for a node, looked up for whole arrays."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np

from sardonyx.cancellation import checked_blocks
from sardonyx.dtypes import Array

__all__ = ["Table", "looked_up", "table_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Where each key stands."""

    count: int
    """How many keys there are."""
    holds_strings: bool
    """Whether the keys are strings; else numbers."""
    by_string: Mapping[str, int]
    """The place of each string."""
    keys: Array
    """The numbers in ascending order, NaN last."""
    places: Array
    """The place of each of `keys`."""


def table_of(keys: Array) -> Table:
    """Return the table of a 1-D array of strings or numbers; of equal keys the last one counts."""
    if keys.dtype.kind == "O":
        return Table(len(keys), True, {key: place for place, key in enumerate(keys.tolist())}, keys[:0], keys[:0])
    ordered, last = np.unique(keys[::-1], return_index=True)
    return Table(len(keys), False, {}, ordered, len(keys) - 1 - last)


def looked_up(table: Table, elements: Array) -> Array:
    """Return the place of each element among the keys, -1 where it is none: int64 of elements' shape.

    Raises:
        TypeError: the keys are strings, and an element is none.
    """
    if table.holds_strings:
        texts = elements.reshape(-1).tolist()
        places = (map(table.by_string.get, block, itertools.repeat(-1)) for block in checked_blocks(texts))
        found = np.fromiter(itertools.chain.from_iterable(places), np.int64, len(texts))
        if (found < 0).any() and not all(
            issubclass(kind, str) for block in checked_blocks(texts) for kind in set(map(type, block))
        ):
            raise TypeError(f"{next(text for text in texts if not isinstance(text, str))!r} is no string")
        return found.reshape(elements.shape)
    if not len(table.keys):
        return np.full(elements.shape, -1, np.int64)
    at = np.searchsorted(table.keys, elements).clip(max=len(table.keys) - 1)
    candidates = table.keys[at]
    hit = candidates == elements
    if table.keys.dtype.kind == "f" and elements.dtype.kind == "f":
        hit |= np.isnan(candidates) & np.isnan(elements)
    return np.where(hit, table.places[at], -1)
