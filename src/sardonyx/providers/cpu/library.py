"""The kernels of the process: each is compiled once, and lives as long as a program uses it.

Kernels are found by symbol, which says all that sizes and operands do not; what a symbol cannot say, the sources that write
kernels, is the library's edition, so that a new version never finds the objects of an old one.
"""

from __future__ import annotations

import functools
import hashlib
import weakref
from collections.abc import Mapping
from pathlib import Path

import sardonyx.codegen
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.disk_cache import Cache, shared_cache
from sardonyx.forks import new_lock
from sardonyx.providers.cpu.lowering import Write

__all__ = ["Library", "driver_for", "edition", "library_for"]


class Library:
    """Compiled kernels for one target. Safe for threads."""

    def __init__(self, target: Target) -> None:
        """Make a library without kernels."""
        self._target = target
        self._lock = new_lock()
        self._engines: weakref.WeakValueDictionary[str, Engine] = weakref.WeakValueDictionary()

    def compile(self, writers: Mapping[str, Write], cache: Cache | None = None) -> tuple[dict[str, int], list[Engine]]:
        """Find or compile kernels; the addresses are good as long as the engines live.

        Args:
            writers: symbol -> what writes the kernel.
            cache: where objects are looked up and kept; None is the process's, where it has one.
        """
        with self._lock:
            known = {symbol: engine for symbol in writers if (engine := self._engines.get(symbol)) is not None}
            missing = {symbol: write for symbol, write in writers.items() if symbol not in known}
            if missing:
                engine = Engine(self._target, cache=cache or shared_cache())
                engine.add_kernels(missing, edition())
                known.update(dict.fromkeys(missing, engine))
                self._engines.update(dict.fromkeys(missing, engine))
        return {symbol: engine.address(symbol) for symbol, engine in known.items()}, list(dict.fromkeys(known.values()))


@functools.cache
def library_for(target: Target) -> Library:
    """Return the process's library for a target."""
    return Library(target)


@functools.cache
def driver_for(target: Target) -> Driver:
    """Return the process's driver for a target."""
    return Driver(target, cache=shared_cache())


@functools.cache
def edition() -> str:
    """Return a digest of the sources that write kernels."""
    digest = hashlib.sha256()
    for folder in (Path(sardonyx.codegen.__file__).parent, Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
