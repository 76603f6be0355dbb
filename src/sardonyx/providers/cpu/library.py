"""The kernels of the process: each is compiled once, and lives as long as a program uses it.

Kernels are found by symbol, which says all that sizes and operands do not; what a symbol cannot say, the sources that write
kernels, is the library's edition, so that a new version never finds the objects of an old one.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx.cancellation import holding
from sardonyx.codegen import llvm
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.elf import Code
from sardonyx.codegen.run.jit import Engine, kernel_key
from sardonyx.codegen.target import Target
from sardonyx.disk_cache import Cache, DiskCache, shared_cache
from sardonyx.forks import new_lock, without_fork
from sardonyx.sources import digest_of
from sardonyx.trace import event

if TYPE_CHECKING:
    from sardonyx.codegen.run.timed_driver import TimedDriver
    from sardonyx.providers.cpu.lowering import Write

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

        def add(engine: Engine, missing: Sequence[str]) -> None:
            engine.add_kernels({symbol: writers[symbol] for symbol in missing}, edition())

        return self._found(writers, add, cache or kernel_cache())

    def link(self, objects: Mapping[str, bytes]) -> tuple[dict[str, int], list[Engine]]:
        """Return what `compile` does, of kernels whose machine code is at hand, by symbol."""
        return self._found(objects, lambda engine, missing: engine.link({symbol: objects[symbol] for symbol in missing}), None)

    def link_code(self, code: Code) -> tuple[dict[str, int], list[Engine]]:
        """Return what `compile` does, of kernels that are laid out together; none is put into memory where all are there."""
        return self._found((symbol for symbol, _ in code.symbols), lambda engine, missing: engine.link_code(code), None)

    def objects(self, symbols: Iterable[str]) -> dict[str, bytes] | None:
        """Return the machine code of kernels as the process's cache has it; None where it lacks one."""
        cache, found = kernel_cache(), {}
        for symbol in symbols:
            content = None if cache is None else cache.load(kernel_key(edition(), symbol, self._target))
            if content is None:
                return None
            found[symbol] = content
        return found

    def _found(
        self, symbols: Iterable[str], add: Callable[[Engine, Sequence[str]], None], cache: Cache | None
    ) -> tuple[dict[str, int], list[Engine]]:
        """Return addresses and engines of kernels, of which `add` makes known those that no engine has."""
        with holding(self._lock):
            known: dict[str, Engine] = {}
            missing: list[str] = []
            for symbol in symbols:
                engine = self._engines.get(symbol)
                if engine is None:
                    missing.append(symbol)
                else:
                    known[symbol] = engine
            if missing:
                engine = Engine(self._target, cache=cache)
                add(engine, missing)
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
