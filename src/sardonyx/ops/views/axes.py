"""Axes counted from the front."""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx.errors import InvalidGraph

__all__ = ["distinct_axes", "normalize_axes", "normalize_axis"]


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """Return the axis counted from the front; raises InvalidGraph outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise InvalidGraph(f"{name}={axis} is outside [{-rank}, {rank - 1}] for a tensor of rank {rank}; name an axis that it has")
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Iterable[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Return the axes counted from the front, in their order; raises InvalidGraph for one out of range."""
    return tuple(normalize_axis(axis, rank, name) for axis in axes)


def distinct_axes(axes: Iterable[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Return what `normalize_axes` does; raises InvalidGraph for an axis named twice, too."""
    found = normalize_axes(axes, rank, name)
    if len(set(found)) < len(found):
        raise InvalidGraph(f"{name}={list(found)} names an axis twice; name each axis once")
    return found
