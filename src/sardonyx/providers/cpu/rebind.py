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
from sardonyx.cancellation import checked
from sardonyx.codegen.run.step_table import KernelCall, StepTable
from sardonyx.ir import Dim, Expr
from sardonyx.ir.shape import symbols_in
from sardonyx.providers.cpu.placed import ArenaPlaces, Placed, Planned, PlannedStep
from sardonyx.providers.cpu.planning import plan_step
from sardonyx.providers.cpu.recording import DimsOf, Place, Recording, record
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.storage import Home, Storage

__all__ = ["Rebinder", "TracedSizes"]

_MOST_RECORDINGS = 4
"""How many are kept: prompts and single tokens in turn, each below and above a size at which a plan decides otherwise."""
_LEAST_SERVED, _MOST_WAITS = 4, 64
"""For how many bindings a recording should serve, and how many are made without one, at most, after such as did not."""

_MakeTable: TypeAlias = Callable[[Sequence[KernelCall]], StepTable]


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
        homes = storage.homes
        self._in_arena = [any(homes[buffer.root][0] is Home.ARENA for buffer in step.buffers) for step in checked(storage.steps)]
        self._latest: Planned | None = None
        self._places: ArenaPlaces | None = None
        self._recordings: tuple[Recording, ...] = ()
        self._changed: AbstractSet[str] = frozenset()
        self._served = self._waits = self._waited = 0

    def bind(self, sizes: Sizes, place: Place, make_table: _MakeTable, dims_of: DimsOf) -> Placed:
        """Return a binding.

        Args:
            sizes: what it is for.
            place: gives the address of a buffer, for offsets of the arena and sizes.
            make_table: makes a table where none can be made of the one before.
            dims_of: gives the sizes of the program's inputs and outputs.

        Raises:
            InvalidArgument: a step cannot work with such sizes.
        """
        return self._replay(sizes, place) or self._plan(sizes, place, make_table, dims_of)

    def recording(self, symbols: Mapping[str, int]) -> Recording | None:
        """Return a recording by which a binding for these sizes is computed; None where there is none."""
        return next((recording for recording in self._recordings if recording.numbers(symbols) is not None), None)

    def _replay(self, sizes: Sizes, place: Place) -> Placed | None:
        """Return a binding by what was recorded; None where plans have to be asked."""
        for recording in self._recordings:
            numbers = recording.numbers(sizes.symbols)
            if numbers is not None and self._places is not None:
                return self._replayed(recording, numbers, self._places, sizes, place)
        return None

    def _replayed(
        self, recording: Recording, numbers: Sequence[int], before: ArenaPlaces, sizes: Sizes, place: Place
    ) -> Placed | None:
        places, traced = recording.places(numbers, self._storage, before), TracedSizes(sizes.symbols)
        calls = {index: self._made(index, places.offsets, traced, place).call for index in recording.asked}
        try:
            placed = recording.bind(numbers, places, calls)
        except OverflowError:
            return None
        if placed is not None:
            self._places = places
            self._served += 1
        return placed

    def _plan(self, sizes: Sizes, place: Place, make_table: _MakeTable, dims_of: DimsOf) -> Planned:
        """Return a binding made by the plans, and record what those of it do that are asked again and again."""
        latest, traced = self._latest, TracedSizes(sizes.symbols)
        changed = None if latest is None else _changed(latest.symbols, sizes.symbols)
        places = self._places_for(sizes, changed)
        has_moved = latest is not None and places is not latest.places
        steps: list[PlannedStep] = []
        changes: dict[int, KernelCall] = {}
        for index, is_in_arena in enumerate(self._in_arena):
            step = None if latest is None else latest.steps[index]
            if step is None or changed is None or not step.symbols.isdisjoint(changed):
                made = self._made(index, places.offsets, traced, place)
            elif has_moved and is_in_arena and step.call.tasks:
                made = self._moved(index, step, places.offsets, sizes, place)
            else:
                steps.append(step)
                continue
            changes[index] = made.call
            steps.append(made)
        table = None if latest is None else latest.table.with_calls(changes)
        if table is None:
            table = make_table([step.call for step in steps])
        planned = self._latest = Planned(places, table, sizes.symbols, steps)
        self._places = places
        if changed and self._is_worth_recording(changed):
            self._recordings = (record(self._storage, planned, changed, place, dims_of), *self._recordings)[:_MOST_RECORDINGS]
        self._changed = changed or frozenset()
        return planned

    def _places_for(self, sizes: Sizes, changed: AbstractSet[str] | None) -> ArenaPlaces:
        """Return where temporaries are, for sizes of which some have changed."""
        if self._places is None or changed is None:
            return ArenaPlaces.of(self._storage, self._storage.blocks(sizes))
        return self._places.for_blocks(self._storage, self._storage.blocks(sizes))

    def _is_worth_recording(self, changed: AbstractSet[str]) -> bool:
        """Return whether the same sizes have changed as before; after recordings that served few bindings only now and then."""
        if changed != self._changed:
            return False
        if self._waited < self._waits:
            self._waited += 1
            return False
        is_stale = self._recordings and self._served < _LEAST_SERVED
        self._waits = min(2 * self._waits + 1, _MOST_WAITS) if is_stale else 0
        self._served = self._waited = 0
        return True

    def _made(self, index: int, offsets: Sequence[int], sizes: TracedSizes, place: Place) -> PlannedStep:
        launch = self._storage.steps[index]
        params, tasks = plan_step(launch, sizes)
        buffers = [place(buffer, offsets, sizes) for buffer in launch.buffers] if tasks else []
        call = KernelCall(self._kernels[launch.symbol], buffers, params, tasks, launch.together, launch.scalars)
        return PlannedStep(call, self._symbols(sizes.take_asked()))

    def _moved(self, index: int, step: PlannedStep, offsets: Sequence[int], sizes: Sizes, place: Place) -> PlannedStep:
        """Return a step that does the same elsewhere in the arena."""
        buffers = [place(buffer, offsets, sizes) for buffer in self._storage.steps[index].buffers]
        return PlannedStep(dataclasses.replace(step.call, buffers=buffers), step.symbols)

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
