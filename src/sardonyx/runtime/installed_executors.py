"""Executors of other packages, by entry point.

    [project.entry-points."sardonyx.executors"]
    devices_first = "our_package.executors:DevicesFirst"

An entry point names a function, or a class, that makes what runs a plan: of the plan, a number of threads, and the arenas of the
host that sessions share or None. Its name is a value of `session.executor`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from sardonyx.dtypes import OnnxValue
from sardonyx.errors import Fail, InvalidArgument, describe
from sardonyx.forks import without_fork
from sardonyx.installed import installed_points, search_path
from sardonyx.runtime.executor_memory import ExecutorMemory
from sardonyx.runtime.memory import ArenaPool
from sardonyx.runtime.plan import Plan

__all__ = ["GROUP", "InstalledExecutor", "MakesExecutor", "RunsPlan", "installed_executors"]

GROUP = "sardonyx.executors"
"""The group of entry points."""


class RunsPlan(Protocol):
    """What a package brings: it runs one plan, for any number of threads at a time."""

    @property
    def shares(self) -> Collection[tuple[int, int]]:
        """(output, input), by number, that may be one and the same array; those of the plan."""

    def run(
        self, inputs: Sequence[OnnxValue], captures: Sequence[OnnxValue] = (), targets: Sequence[OnnxValue] = ()
    ) -> list[OnnxValue]:
        """Compute the graph's outputs, on the host; see `sardonyx.runtime.executor.Executor.run`."""

    def trim(self, *, arenas_only: bool = False) -> int:
        """Give back idle arenas, and bindings unless told otherwise; returns the bytes of the arenas."""

    def memory(self) -> ExecutorMemory:
        """Return what it keeps between runs."""


class MakesExecutor(Protocol):
    """Makes what runs a plan; what an entry point names."""

    def __call__(self, plan: Plan, threads: int, shared: ArenaPool | None = None) -> RunsPlan:
        """Return what runs `plan`.

        Args:
            plan: what it runs.
            threads: how many threads it may use.
            shared: the arenas of the host, where several sessions use the same.
        """


def installed_executors() -> tuple[str, ...]:
    """Return the names of installed executors."""
    return tuple(point.name for point in installed_points(GROUP, search_path()))


class InstalledExecutor:
    """An executor of a package, which sessions run and make again like sardonyx's own."""

    def __init__(self, plan: Plan, name: str, threads: int, shared: ArenaPool | None = None) -> None:
        """Make one; arguments as of `MakesExecutor`.

        Raises:
            InvalidArgument: no package has one of the name.
            Fail: a package has, but it cannot be loaded.
        """
        self._arguments = plan, name, threads, shared
        self.inner = _loaded(name, search_path())(plan, threads, shared)
        """What the package made."""

    @property
    def shares(self) -> Collection[tuple[int, int]]:
        """(output, input), by number, that may be one and the same array."""
        return self.inner.shares

    def run(
        self, inputs: Sequence[OnnxValue], captures: Sequence[OnnxValue] = (), targets: Sequence[OnnxValue] = ()
    ) -> list[OnnxValue]:
        """Compute the graph's outputs, on the host; see `Executor.run`."""
        return self.inner.run(inputs, captures, targets)

    def trim(self, *, arenas_only: bool = False) -> int:
        """Give back idle arenas, and bindings unless told otherwise; returns the bytes of the arenas."""
        return self.inner.trim(arenas_only=arenas_only)

    def memory(self) -> ExecutorMemory:
        """Return what it keeps between runs."""
        return self.inner.memory()

    def maker(self) -> Callable[[], InstalledExecutor]:
        """Return what makes executors of the same plan that keep nothing of runs yet, and keeps nothing of this one's."""
        return functools.partial(InstalledExecutor, *self._arguments)


@functools.lru_cache(maxsize=16)
def _loaded(name: str, path: tuple[str, ...]) -> MakesExecutor:
    for point in installed_points(GROUP, path):
        if point.name == name:
            break
    else:
        raise InvalidArgument(f"no installed package has an executor {name!r}")
    try:
        with without_fork():
            made: MakesExecutor = point.load()
    except Exception as error:
        package = point.dist.name if point.dist is not None else "an installed package"
        text = f"{point.value}, which {package} names as {name!r} of {GROUP}, cannot be loaded: {describe(error)}"
        raise Fail(f"{text}; repair or uninstall the package") from error
    return made
