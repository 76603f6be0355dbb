"""The cheapest way to divide a network."""

from __future__ import annotations

import itertools
import random

from sardonyx.partition.min_cut import INFINITE, Network


def _price(edges: list[tuple[int, int, int]], side: list[bool]) -> int:
    return sum(capacity for tail, head, capacity in edges if side[tail] and not side[head])


def test_the_cut_is_the_least_of_all() -> None:
    """On random networks of 7 vertices, by trying every division."""
    draw = random.Random(0)
    for _ in range(50):
        edges = [(draw.randrange(7), draw.randrange(7), draw.randrange(1, 20)) for _ in range(14)]
        network = Network()
        for _ in range(5):
            network.add_vertex()
        for tail, head, capacity in edges:
            network.add_edge(tail, head, capacity)
        found = network.cut()
        best = min(_price(edges, [True, False, *rest]) for rest in itertools.product((True, False), repeat=5))
        assert (found[0], found[1]) == (True, False)
        assert _price(edges, found) == best


def test_an_infinite_edge_is_never_cut() -> None:
    """What it joins stays together."""
    network = Network()
    a, b = network.add_vertex(), network.add_vertex()
    network.add_edge(0, a, 5)
    network.add_edge(a, b, INFINITE)
    network.add_edge(b, 1, 7)
    assert network.cut() == [True, False, False, False]


def test_without_a_way_nothing_is_paid() -> None:
    """All that the source reaches is on its side."""
    network = Network()
    a = network.add_vertex()
    network.add_edge(0, a, 1)
    assert network.cut() == [True, False, True]
