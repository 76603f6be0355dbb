"""What options say about arenas: which ones a run gives back when it ends, and which ones sessions share.

memory.enable_memory_arena_shrinkage = "cpu:0"       of RunOptions: those of the host
session.use_env_allocators = "1"                     of SessionOptions: with the allocator that was registered for the process
"""

from __future__ import annotations

from sardonyx.errors import InvalidArgument
from sardonyx.forks import new_lock
from sardonyx.provider import HOST
from sardonyx.runtime.memory import ArenaPool
from sardonyx.session.settings.keys import SHRINKAGE
from sardonyx.values.memory_info import OrtArenaCfg, registered_allocators

__all__ = ["shared_pool", "shrinks_arenas"]


def shrinks_arenas(text: str, *, has_arenas: bool) -> bool:
    """Return whether a run with this text of `SHRINKAGE` gives back the arenas of the host.

    Args:
        text: of the run's options; "" where they do not say.
        has_arenas: whether the session's options let it have arenas.

    Raises:
        InvalidArgument: the text is no list of devices, or names a device that has no arenas here.
    """
    wanted = SHRINKAGE.read({SHRINKAGE.name: text})
    for device, number in wanted:
        if (device, number) != ("cpu", "0") or not has_arenas:
            why = "only cpu:0 has" if has_arenas else "enable_cpu_mem_arena is off"
            raise InvalidArgument(f"{SHRINKAGE.name} names {device}:{number}, which has no arena: {why}")
    return bool(wanted)


_LOCK = new_lock()
_POOLS: list[tuple[OrtArenaCfg, ArenaPool]] = []


def shared_pool() -> ArenaPool | None:
    """Return the arenas of the allocator that was registered for the host last; None where none was."""
    registered = list(registered_allocators().values())
    if not registered:
        return None
    with _LOCK:
        if not _POOLS or _POOLS[0][0] is not registered[-1]:
            pool = ArenaPool(HOST, most_bytes=registered[-1].max_mem)
            pool.is_shared = True
            _POOLS[:] = [(registered[-1], pool)]
        return _POOLS[0][1]
