"""The kernels of the process: each is compiled once, and lives as long as a program uses it.

Kernels are found by symbol, which says all that sizes and operands do not; what a symbol cannot say, the sources that write
kernels, is the library's edition, so that a new version never finds the objects of an old one.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sardonyx.cancellation import holding
from sardonyx.codegen import llvm
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.disk_cache import Cache, DiskCache, shared_cache
from sardonyx.forks import new_lock, without_fork
from sardonyx.providers.cpu.lowering import Write
from sardonyx.sources import digest_of
from sardonyx.trace import event

if TYPE_CHECKING:
    from sardonyx.codegen.run.timed_driver import TimedDriver

__all__ = [
    "Library",
    "decision_facts",
    "driver_for",
    "edition",
    "kernel_cache",
    "library_for",
    "take_facts",
    "timed_driver_for",
]


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
        with holding(self._lock):
            known = {symbol: engine for symbol in writers if (engine := self._engines.get(symbol)) is not None}
            missing = {symbol: write for symbol, write in writers.items() if symbol not in known}
            if missing:
                engine = Engine(self._target, cache=cache or kernel_cache())
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
    return Driver(target, cache=kernel_cache(), edition=edition())


@functools.cache
def timed_driver_for(target: Target) -> TimedDriver | None:
    """Return the process's driver that reads the clock between steps; None where machine code cannot read it."""
    with without_fork():
        from sardonyx.codegen.run.timed_driver import TimedDriver, can_time  # which only profiles need

    return TimedDriver(target, cache=kernel_cache()) if can_time(target) else None


def edition() -> str:
    """Return a digest of the sources that write kernels, or, where they cannot be read, what no other process returns."""
    return _sources() or _no_edition()


def decision_facts() -> tuple[str, ...]:
    """Return the edition and LLVM's version, which follow from the sources and the packages that are installed."""
    return edition(), llvm.version()


def take_facts(facts: tuple[str, ...]) -> None:
    """Take what `decision_facts` returned in a process with the same sources and packages, without reading them all."""
    known_edition, version = facts
    if _SOURCES.known is None:
        _SOURCES.known = known_edition
    llvm.know_version(version)


def kernel_cache() -> DiskCache | None:
    """Return the process's cache; None where it is switched off, or could not tell the kernels of one edition from another's."""
    if _sources() is None:
        return None
    return shared_cache()


class _Sources:
    """The digest of the sources, once it is known."""

    known: str | None = None


_SOURCES = _Sources()


@functools.cache
def _no_edition() -> str:
    return f"unknown-{os.urandom(16).hex()}"


def _sources() -> str | None:
    if _SOURCES.known is None:
        _SOURCES.known = _digest()
    return _SOURCES.known


@functools.cache
def _digest() -> str | None:
    digest = digest_of("sardonyx.codegen", "sardonyx.providers.cpu")
    if digest is None:
        event("disk_cache.off", detail="the sources of the kernels cannot be read")
    return digest
