"""What executors say they keep."""

from __future__ import annotations

from sardonyx.held_memory import HeldKind, HeldMemory
from sardonyx.runtime.executor_memory import ExecutorMemory, joined


def test_joined_memory_adds_up() -> None:
    """Arenas add by memory, providers are named once, and the outputs are those of the first."""
    block = HeldMemory(HeldKind.CODE, 8, 8)
    first = ExecutorMemory((block,), {"CPU": 5}, 7, 1, 10, 100, ("A",))
    second = ExecutorMemory((block,), {"CPU": 6, "Npu": 1}, 6, 2, 20, 200, ("A", "B"))
    assert joined([first, second]) == ExecutorMemory((block, block), {"CPU": 11, "Npu": 1}, 7, 3, 30, 100, ("A", "B"))


def test_nothing_keeps_nothing() -> None:
    """The memory of no executor is empty."""
    assert joined([]) == ExecutorMemory()
