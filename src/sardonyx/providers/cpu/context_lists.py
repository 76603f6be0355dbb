"""Long lists among the attributes of a partition that is saved: arrays of the file, where its graph is text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import EPFail
from sardonyx.ir import ArrayAttribute, Attribute, AttributeKind, Node

__all__ = ["ListEntry", "put_lists", "take_lists"]

ListEntry: TypeAlias = Any
"""Where a list belongs, as JSON, of which a file may hold any: [number of the node, name of the attribute, its kind, texts]."""

_MOST_ITEMS = 256
_DTYPES = {AttributeKind.INTS: np.int64, AttributeKind.FLOATS: np.float32, AttributeKind.STRINGS: np.int32}
"""The kind of a list -> the type of its array; texts are places in a list of different ones."""


def take_lists(nodes: Iterable[Node]) -> tuple[list[Array], list[ListEntry]]:
    """Take long lists out of the attributes of `nodes`; return their arrays, and where each belongs."""
    arrays: list[Array] = []
    entries: list[ListEntry] = []
    for index, node in enumerate(nodes):
        for name, attribute in list(node.attributes.items()):
            found = _long_list(attribute)
            if found is not None:
                del node.attributes[name]
                arrays.append(np.ascontiguousarray(found.array, _DTYPES[found.kind]))
                entries.append([index, name, int(found.kind), list(found.texts)])
    return arrays, entries


def _long_list(attribute: Attribute) -> ArrayAttribute | None:
    if isinstance(attribute, ArrayAttribute):
        return attribute
    kind, value = attribute.kind, attribute.value
    if kind not in _DTYPES or not isinstance(value, tuple) or len(value) <= _MOST_ITEMS:
        return None
    if kind is AttributeKind.STRINGS:
        places = {text: place for place, text in enumerate(dict.fromkeys(value))}
        return ArrayAttribute(kind, np.array([places[text] for text in value], np.int32), tuple(places))
    array = np.array(value, _DTYPES[kind])
    return ArrayAttribute(kind, array) if kind is AttributeKind.INTS or tuple(array.tolist()) == value else None


def put_lists(nodes: Sequence[Node], arrays: Sequence[Array], entries: Sequence[ListEntry]) -> None:
    """Give the nodes of a file their lists again.

    Raises:
        EPFail: what the file says of them cannot be.
    """
    try:
        for (index, name, number, texts), array in zip(entries, arrays, strict=True):
            kind, held = AttributeKind(number), tuple(map(str, texts))
            if array.dtype != _DTYPES[kind] or (kind is AttributeKind.STRINGS) != bool(held):
                raise ValueError(f"{array.dtype} for {kind.name}")
            if held and array.size and not 0 <= array.min() <= array.max() < len(held):
                raise ValueError(f"texts {array.min()} to {array.max()} of {len(held)}")
            nodes[index].attributes[str(name)] = ArrayAttribute(kind, array.reshape(-1), held)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise EPFail(f"a compiled partition has lists of attributes that cannot be ({error}); make the context anew") from error
