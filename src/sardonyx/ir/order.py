"""Topological order that keeps the order there is wherever several are right."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

__all__ = ["topological_order"]

T = TypeVar("T", bound=Hashable)


def topological_order(nodes: Sequence[T], needs: Callable[[T], Iterable[T]]) -> tuple[list[T], list[T]]:
    """Order `nodes` so that each comes after those that it needs, which are among them; O(nodes + edges).

    Returns:
        The nodes in order, stable where several orders are right, and those on cycles or after one, as they stood.
    """
    rank = {node: index for index, node in enumerate(nodes)}
    needed = [list(needs(node)) for node in nodes]
    waiting = [len(items) for items in needed]
    followers: list[list[int]] = [[] for _ in nodes]
    for index, items in enumerate(needed):
        for item in items:
            followers[rank[item]].append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order: list[T] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(nodes[index])
        for follower in followers[index]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, follower)
    return order, [node for node, count in zip(nodes, waiting, strict=True) if count > 0]
