"""Binding again: what no changed size decides stays as it was in the binding before.

Sizes that change from run to run, such as the length of a cache, are few, and decide few steps. Of each step is noted which symbols
its plan has asked for; while these are as before, its parameters are. Places in the arena stay too, as long as they are large
enough and not much too large; those that have grown get some space to grow on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.run import driver
from sardonyx.codegen.run.driver import KernelCall, StepTable
from sardonyx.ir import Dim, Expr
from sardonyx.ir.shape import symbols_in
from sardonyx.providers.cpu.planning import plan_step
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.storage import Home, Storage

__all__ = ["Placed", "Rebinder", "TracedSizes"]

Place: TypeAlias = Callable[[Buffer, Sequence[int], Sizes], driver.Buffer]
"""From a buffer, offsets of the arena and sizes to the buffer's address."""

_LEAST_USED = 0.75
"""What part of the places in the arena must be in use for them to stay where they are."""
_GROWTH = 16
"""A place that has grown gets a part of its size besides."""
_LEAST_GROWTH = 4096
"""And at least so many bytes."""


class TracedSizes(Sizes):
    """Sizes that note what they are asked for."""

    __slots__ = ("asked",)

    def __init__(self, symbols: dict[str, int]) -> None:
        """Make sizes from the value of each symbol."""
        super().__init__(symbols)
        self.asked: dict[Expr, int] = {}

    def __call__(self, dim: Dim) -> int:
        """Return the value of `dim`."""
        if not isinstance(dim, Expr):
            return dim
        found = self.asked.get(dim)
        if found is None:
            found = self.asked[dim] = super().__call__(dim)
        return found

    def take_asked(self) -> set[Expr]:
        """Return the expressions that were asked for since this was called before."""
        asked, self.asked = self.asked, {}
        return set(asked)


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """What one step does for given sizes."""

    call: KernelCall
    """The kernel with its buffers and parameters."""
    symbols: frozenset[str]
    """The symbols that decide these, besides places in the arena."""


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """A binding."""

    symbols: Mapping[str, int]
    """The sizes."""
    steps: Sequence[_Step]
    """What each step does."""
    blocks: Sequence[int]
    """For each place in the arena the bytes that it needs."""
    capacities: Sequence[int]
    """The bytes that it has."""
    offsets: Sequence[int]
    """Where it is."""
    arena_bytes: int
    """How large the arena is."""
    table: StepTable
    """The steps as the driver reads them."""


class Rebinder:
    """Bindings of one program, each made of the one before. Safe for threads."""

    def __init__(self, storage: Storage, kernels: Mapping[str, int]) -> None:
        """Have bound nothing yet.

        Args:
            storage: where buffers lie, and the steps, none of which lies in a body.
            kernels: the address of each kernel.
        """
        self._storage, self._kernels = storage, kernels
        self._symbols_of: dict[Expr, frozenset[str]] = {}
        self._in_arena = [any(storage.homes[buffer.root][0] is Home.ARENA for buffer in step.buffers) for step in storage.steps]
        self._block_symbols = [self._symbols(dims) for dims in storage.block_dims()]
        self._latest: Placed | None = None

    def bind(self, sizes: Sizes, place: Place, make_table: Callable[[Sequence[KernelCall]], StepTable]) -> Placed:
        """Return a binding.

        Args:
            sizes: what it is for.
            place: gives the address of a buffer, for offsets of the arena and sizes.
            make_table: makes a table where none can be made of the one before.

        Raises:
            InvalidArgument: a step cannot work with such sizes.
        """
        latest, traced = self._latest, TracedSizes(sizes.symbols)
        changed = None if latest is None else _changed(latest.symbols, sizes.symbols)
        blocks, capacities, offsets, arena_bytes = self._place_blocks(sizes, latest, changed)
        steps: list[_Step] = []
        changes: dict[int, KernelCall] = {}
        for index, is_in_arena in enumerate(self._in_arena):
            step = None if latest is None else latest.steps[index]
            if step is None or changed is None or not step.symbols.isdisjoint(changed):
                made = self._made(index, offsets, traced, place)
            elif latest is not None and is_in_arena and step.call.tasks and offsets is not latest.offsets:
                made = self._moved(index, step, offsets, sizes, place)
            else:
                steps.append(step)
                continue
            changes[index] = made.call
            steps.append(made)
        table = None if latest is None else latest.table.with_calls(changes)
        if table is None:
            table = make_table([step.call for step in steps])
        self._latest = Placed(sizes.symbols, steps, blocks, capacities, offsets, arena_bytes, table)
        return self._latest

    def _made(self, index: int, offsets: Sequence[int], sizes: TracedSizes, place: Place) -> _Step:
        launch = self._storage.steps[index]
        params, tasks = plan_step(launch, sizes)
        buffers = [place(buffer, offsets, sizes) for buffer in launch.buffers] if tasks else []
        call = KernelCall(self._kernels[launch.symbol], buffers, params, tasks, launch.together, launch.scalars)
        return _Step(call, self._symbols(sizes.take_asked()))

    def _moved(self, index: int, step: _Step, offsets: Sequence[int], sizes: Sizes, place: Place) -> _Step:
        """Return a step that does the same elsewhere in the arena."""
        buffers = [place(buffer, offsets, sizes) for buffer in self._storage.steps[index].buffers]
        return _Step(dataclasses.replace(step.call, buffers=buffers), step.symbols)

    def _place_blocks(
        self, sizes: Sizes, latest: Placed | None, changed: AbstractSet[str] | None
    ) -> tuple[Sequence[int], Sequence[int], Sequence[int], int]:
        """Return what places need and have, where they are, and the size of the arena."""
        if latest is None or changed is None:
            blocks = self._storage.blocks(sizes)
            return (blocks, blocks, *self._storage.place(blocks))
        if all(symbols.isdisjoint(changed) for symbols in self._block_symbols):
            return latest.blocks, latest.capacities, latest.offsets, latest.arena_bytes
        blocks = self._storage.blocks(sizes)
        has_room = all(need <= have for need, have in zip(blocks, latest.capacities, strict=True))
        spare = sum(latest.capacities) - sum(blocks)
        if has_room and spare <= max((1 - _LEAST_USED) * sum(latest.capacities), _LEAST_GROWTH * len(blocks)):
            return blocks, latest.capacities, latest.offsets, latest.arena_bytes
        capacities = [
            need + max(need // _GROWTH, _LEAST_GROWTH) if old < need < 2 * old else need
            for need, old in zip(blocks, latest.blocks, strict=True)
        ]
        return (blocks, capacities, *self._storage.place(capacities))

    def _symbols(self, dims: AbstractSet[Expr]) -> frozenset[str]:
        return frozenset().union(*(self._symbols_in(dim) for dim in dims))

    def _symbols_in(self, dim: Expr) -> frozenset[str]:
        found = self._symbols_of.get(dim)
        if found is None:
            found = self._symbols_of[dim] = frozenset(symbols_in(dim))
        return found


def _changed(before: Mapping[str, int], now: Mapping[str, int]) -> set[str]:
    """Return the symbols that have another value, or are known only here or there."""
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
