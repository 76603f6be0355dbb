"""Tables from keys to places, for operators that encode categories: built once for a node, looked up for whole arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

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
    """The place of each string, -1 for others."""
    keys: Array
    """The numbers in ascending order, NaN last."""
    places: Array
    """The place of each of `keys`."""


class _Places(dict[str, int]):
    """Places of strings; a class of its own so that no function in Python is called for those that are known."""

    def __missing__(self, key: object) -> int:
        """Return -1 for a string that is no key; raises TypeError for what is no string."""
        if not isinstance(key, str):
            raise TypeError(f"{key!r} is no string")
        return -1


def table_of(keys: Array) -> Table:
    """Return the table of a 1-D array of strings or numbers; of equal keys the last one counts."""
    if keys.dtype.kind == "O":
        return Table(len(keys), True, _Places((key, place) for place, key in enumerate(keys.tolist())), keys[:0], keys[:0])
    ordered, last = np.unique(keys[::-1], return_index=True)
    return Table(len(keys), False, {}, ordered, len(keys) - 1 - last)


def looked_up(table: Table, elements: Array) -> Array:
    """Return the place of each element among the keys, -1 where it is none: int64 of elements' shape.

    Raises:
        TypeError: the keys are strings, and an element is none.
    """
    if table.holds_strings:
        found = map(table.by_string.__getitem__, elements.reshape(-1).tolist())
        return np.fromiter(found, np.int64, elements.size).reshape(elements.shape)
    if not len(table.keys):
        return np.full(elements.shape, -1, np.int64)
    at = np.searchsorted(table.keys, elements).clip(max=len(table.keys) - 1)
    candidates = table.keys[at]
    hit = candidates == elements
    if table.keys.dtype.kind == "f" and elements.dtype.kind == "f":
        hit |= np.isnan(candidates) & np.isnan(elements)
    return np.where(hit, table.places[at], -1)
