"""Permutations of dimensions: output dimension i of a transpose is input dimension permutation[i]."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from sardonyx.ir import Node, Shape
from sardonyx.ops.views.reshape import Transpose

__all__ = [
    "Permutation",
    "changes_layout",
    "identity",
    "inverse",
    "moves_nothing",
    "permutation_of",
    "permuted",
    "reordering",
    "then",
    "weight_of",
]

Permutation: TypeAlias = tuple[int, ...]
"""Output dimension -> input dimension."""

_UNKNOWN_RANK = 5
"""The weight of a value of unknown rank."""


def identity(rank: int) -> Permutation:
    """Return the permutation that changes nothing."""
    return tuple(range(rank))


def inverse(permutation: Permutation) -> Permutation:
    """Return the permutation that undoes `permutation`."""
    found = [0] * len(permutation)
    for index, axis in enumerate(permutation):
        found[axis] = index
    return tuple(found)


def then(first: Permutation, second: Permutation) -> Permutation:
    """Return one permutation for a transpose by `first` and one by `second` after it."""
    return tuple(first[axis] for axis in second)


def permuted(shape: Shape, permutation: Permutation) -> Shape:
    """Return `shape` after a transpose."""
    return tuple(shape[axis] for axis in permutation)


def permutation_of(node: Node | None) -> Permutation | None:
    """Return the permutation of a Transpose of ai.onnx; None for other nodes, and where the rank is not known."""
    if node is None or node.op_type != "Transpose" or node.domain:
        return None
    given = Transpose.of(node).permutation
    if given is not None:
        return given
    data = node.inputs[0]
    return None if data is None or data.shape is None else tuple(reversed(range(len(data.shape))))


def changes_layout(permutation: Permutation) -> bool:
    """Return whether it leads from channels-first to channels-last, or back."""
    rank = len(permutation)
    return rank >= 3 and permutation in ((0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1)))


def moves_nothing(permutation: Permutation, shape: Shape | None) -> bool:
    """Return whether a transpose of a tensor of `shape` leaves its elements in their order: only dimensions of 1 change places."""
    kept = [axis for axis in permutation if shape is None or shape[axis] != 1]
    return kept == sorted(kept)


def weight_of(shape: Shape | None) -> int:
    """Return what transposing a tensor of `shape` is taken to cost: how many dimensions it has that are not 1."""
    return _UNKNOWN_RANK if shape is None else sum(dim != 1 for dim in shape)


def reordering(before: Sequence[Hashable], after: Sequence[Hashable]) -> Permutation:
    """Return the permutation that takes dimensions labelled `before` to the order `after`."""
    places = {label: index for index, label in enumerate(before)}
    return tuple(places[label] for label in after)
