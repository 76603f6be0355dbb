"""Topological order."""

from __future__ import annotations

from sardonyx.ir.order import topological_order


def test_what_is_needed_comes_first() -> None:
    """A node comes after those that it needs."""
    assert topological_order("abc", {"a": "bc", "b": "c", "c": ""}.__getitem__) == (["c", "b", "a"], [])


def test_the_order_stays_where_it_is_right() -> None:
    """Nodes that need nothing of one another keep their order."""
    assert topological_order("cab", {"a": "", "b": "c", "c": ""}.__getitem__) == (["c", "a", "b"], [])


def test_cycles_are_left_over() -> None:
    """Nodes on a cycle, and behind one, are given back as they stood."""
    assert topological_order("abcd", {"a": "b", "b": "a", "c": "a", "d": ""}.__getitem__) == (["d"], ["a", "b", "c"])
