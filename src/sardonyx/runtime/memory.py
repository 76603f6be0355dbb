"""How much memory tensors take, and the pools that the arenas of runs come from."""

from __future__ import annotations

import math
from collections.abc import Callable

from sardonyx.aside import is_left_behind
from sardonyx.dtypes import DataType, bit_width
from sardonyx.errors import EPFail, RuntimeException, blamed, describe
from sardonyx.forks import new_lock
from sardonyx.provider import HOST, DeviceBuffer, Memory, TensorSpec
from sardonyx.runtime.plan import Plan, ProgramStep

__all__ = ["ArenaPool", "arena_pools", "out_of_memory", "size_bytes"]


def size_bytes(spec: TensorSpec) -> int:
    """Return bytes of a dense tensor in memory, where sub-byte elements take a byte each."""
    width = 64 if spec.dtype is DataType.STRING else max(8, bit_width(spec.dtype))
    return math.prod(spec.shape) * width // 8


def out_of_memory(what: str) -> RuntimeException:
    """Return the error for memory that the system did not give; `what` is what it was for, with its bytes."""
    return RuntimeException(
        f"there is not enough memory for {what}: give smaller inputs or a smaller batch, run fewer sessions at a time, or raise "
        "the memory limit of the process"
    )


def arena_pools(plan: Plan, shared: ArenaPool | None = None) -> dict[str, ArenaPool]:
    """Return an empty pool for each memory of `plan`, by the memory's name; for the host `shared`, where there is one.

    Errors of a device's memory name the provider that uses it first.
    """
    owners = {step.memory.name: step.provider for step in reversed(plan.steps) if isinstance(step, ProgramStep)}
    owners[HOST.name] = ""
    pools = {memory.name: ArenaPool(memory, owner=owners[memory.name]) for memory in plan.memories}
    return pools | ({HOST.name: shared} if shared is not None and HOST.name in pools else {})


class ArenaPool:
    """Buffers of one memory that runs borrow and give back; one run holds one at a time. Safe for threads."""

    def __init__(self, memory: Memory, keep: int = 4, owner: str = "", *, most_bytes: int = 0) -> None:
        """Make an empty pool; errors name `owner`, a provider, where it is given.

        It keeps at most `keep` idle buffers, and with those that are lent no more than have been lent at a time: runs one after
        another need one, however their sizes change. It never has more than `most_bytes`; 0 for any number.
        """
        self._most_bytes = most_bytes
        self._memory = memory
        self._keep, self._owner = keep, owner
        self._idle: list[tuple[int, DeviceBuffer]] = []
        self._lock = new_lock()
        self._held_bytes = 0
        self._lent = self._most_lent = 0
        self.is_shared = False
        """Whether several sessions use it."""

    @property
    def held_bytes(self) -> int:
        """How many bytes its buffers have, idle ones and those that runs have borrowed."""
        return self._held_bytes

    def borrow(self, size_bytes: int) -> tuple[int, DeviceBuffer]:
        """Take a buffer of at least `size_bytes`: the smallest idle one that fits, else a new one. Returns (size, buffer)."""
        with self._lock:
            self._lent += 1
            if self._lent > self._most_lent:
                self._most_lent = self._lent
            if len(self._idle) == 1 and self._idle[0][0] >= size_bytes:
                return self._idle.pop()
            idle = self._pick(lambda size: size >= size_bytes)
            if idle is not None:
                return idle
            self._drop_spare(self._most_lent - self._lent)
        try:
            if self._most_bytes:
                self._make_space(size_bytes)
            buffer = self._allocate(size_bytes)
        except BaseException:
            with self._lock:
                self._lent -= 1
            raise
        with self._lock:
            self._held_bytes += size_bytes
        return size_bytes, buffer

    def _pick(self, fits: Callable[[int], bool]) -> tuple[int, DeviceBuffer] | None:
        """Take out the smallest idle buffer whose size fits; None where there is none. The lock is held."""
        fitting = [entry for entry in self._idle if fits(entry[0])]
        if not fitting:
            return None
        chosen = min(fitting, key=lambda entry: entry[0])
        self._idle = [entry for entry in self._idle if entry is not chosen]
        return chosen

    def _make_space(self, size_bytes: int) -> None:
        """Drop idle buffers where there would be too many bytes; raises RuntimeException where that is not enough."""
        if self._held_bytes + size_bytes > self._most_bytes:
            self.trim()
        if self._held_bytes + size_bytes > self._most_bytes:
            raise RuntimeException(
                f"a run needs {size_bytes} bytes for its intermediate tensors, but the registered allocator has a max_mem of "
                f"{self._most_bytes}, of which other runs use {self._held_bytes}: register one with more, or give smaller inputs"
            )

    def _allocate(self, size_bytes: int) -> DeviceBuffer:
        try:
            return self._memory.allocate(size_bytes)
        except Exception as error:
            if isinstance(error, MemoryError) and not self._owner:
                raise out_of_memory(f"the intermediate tensors of a run, {size_bytes} bytes") from error
            if not self._owner:
                raise
            message = f"{self._owner} failed to allocate {size_bytes} bytes of {self._memory.name}: {describe(error)}"
            raise blamed(EPFail(message), self._owner) from error

    def give_back(self, entry: tuple[int, DeviceBuffer]) -> None:
        """Return what `borrow` gave; the smallest is dropped where enough are idle, and what a run that has ended may still use."""
        with self._lock:
            self._lent -= 1
            if is_left_behind(entry[1]):
                self._held_bytes -= entry[0]
                return
            self._idle.append(entry)
            if len(self._idle) > 1:
                self._drop_spare(min(self._keep, self._most_lent - self._lent))

    def _drop_spare(self, kept: int) -> None:
        """Drop the smallest idle buffers but for `kept` ones. The lock is held."""
        if len(self._idle) > kept:
            self._idle.sort(key=lambda item: item[0])
            self._held_bytes -= sum(size for size, _ in self._idle[: len(self._idle) - kept])
            self._idle = self._idle[len(self._idle) - kept :]

    def take(self, size_bytes: int) -> DeviceBuffer:
        """Return a buffer for good: an idle one of this pool alone that fits and is not much larger, else a new one."""
        with self._lock:
            idle = None if self.is_shared else self._pick(lambda size: size_bytes <= size <= 2 * size_bytes)
            if idle is not None:
                self._held_bytes -= idle[0]
                return idle[1]
        return self._allocate(size_bytes)

    def trim(self) -> int:
        """Drop all idle buffers and return how many bytes they held."""
        with self._lock:
            dropped, self._idle = self._idle, []
            self._most_lent = self._lent
            size_bytes = sum(size for size, _ in dropped)
            self._held_bytes -= size_bytes
        return size_bytes
