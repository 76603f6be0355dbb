"""The cheapest way to divide a network in two: maximum flow by Dinic's algorithm."""

from __future__ import annotations

import collections

__all__ = ["INFINITE", "Network"]

INFINITE = 1 << 62
"""A capacity that no cut pays."""


class Network:
    """Vertices and directed edges with capacities; vertex 0 is the source, vertex 1 the sink."""

    def __init__(self) -> None:
        """Make a network of source and sink alone."""
        self._edges: list[list[int]] = [[], []]
        self._heads: list[int] = []
        self._room: list[int] = []

    def add_vertex(self) -> int:
        """Add a vertex and return its number."""
        self._edges.append([])
        return len(self._edges) - 1

    def add_edge(self, tail: int, head: int, capacity: int) -> None:
        """Let `capacity` be paid by a cut that has `tail` on the source's side and `head` on the sink's."""
        if capacity <= 0 or tail == head:
            return
        for start, end, room in ((tail, head, capacity), (head, tail, 0)):
            self._edges[start].append(len(self._heads))
            self._heads.append(end)
            self._room.append(room)

    def cut(self) -> list[bool]:
        """Return for each vertex whether a least cut has it on the source's side; O(vertices^2 x edges), in practice far less."""
        levels = self._levels()
        while levels[1] >= 0:
            self._fill(levels)
            levels = self._levels()
        return [level >= 0 for level in levels]

    def _levels(self) -> list[int]:
        """Return how many edges with room lie between the source and each vertex; -1 where there is no way."""
        levels = [-1] * len(self._edges)
        levels[0] = 0
        queue = collections.deque([0])
        while queue:
            vertex = queue.popleft()
            for edge in self._edges[vertex]:
                head = self._heads[edge]
                if self._room[edge] > 0 and levels[head] < 0:
                    levels[head] = levels[vertex] + 1
                    queue.append(head)
        return levels

    def _fill(self, levels: list[int]) -> None:
        """Send flow along shortest ways until each has an edge without room."""
        following = [0] * len(self._edges)
        path: list[int] = []
        vertex = 0
        while True:
            if vertex == 1:
                self._push(path)
                path, vertex = [], 0
                continue
            edge = self._step(vertex, following, levels)
            if edge is not None:
                path.append(edge)
                vertex = self._heads[edge]
            elif path:
                vertex = self._heads[path.pop() ^ 1]
                following[vertex] += 1
            else:
                return

    def _step(self, vertex: int, following: list[int], levels: list[int]) -> int | None:
        edges = self._edges[vertex]
        while following[vertex] < len(edges):
            edge = edges[following[vertex]]
            if self._room[edge] > 0 and levels[self._heads[edge]] == levels[vertex] + 1:
                return edge
            following[vertex] += 1
        return None

    def _push(self, path: list[int]) -> None:
        amount = min(self._room[edge] for edge in path)
        for edge in path:
            self._room[edge] -= amount
            self._room[edge ^ 1] += amount
