"""Binding again: what no changed size decides stays as it was in the binding before.

Sizes that change from run to run, such as the length of a cache, are few, and decide few steps. Of each step is noted which symbols
its plan has asked for; while these are as before, its parameters are. Places in the arena stay too, as long as they are large
enough and not much too large; those that have grown get some space to grow on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias, cast

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.run import driver
from sardonyx.codegen.run.driver import KernelCall, StepTable
from sardonyx.ir import Dim, Expr
from sardonyx.ir.shape import symbols_in
from sardonyx.providers.cpu.planning import plan_step
from sardonyx.providers.cpu.recorded import Recorded, RecordedSizes, Recorder, Replay
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.storage import Home, Storage

__all__ = ["Placed", "Planned", "Rebinder", "TracedSizes"]

Place: TypeAlias = Callable[[Buffer, Sequence[int], Sizes], driver.Buffer]
"""From a buffer, offsets of the arena and sizes to the buffer's address."""

_LEAST_USED = 4
"""The places in the arena stay where they are while no more than one in so many bytes is not used."""
_GROWTH = 16
"""A place that has grown gets a part of its size besides."""
_LEAST_GROWTH = 4096
"""And at least so many bytes."""
_LEAST_SERVED, _MOST_WAITS = 4, 64
"""For how many bindings a recording should serve, and how many are made without one, at most, after such as did not."""

_Words: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"


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

    offsets: Sequence[int]
    """Where the places in the arena are."""
    arena_bytes: int
    """How large the arena is."""
    table: StepTable
    """The steps as the driver reads them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Planned(Placed):
    """A binding whose plans were asked."""

    symbols: Mapping[str, int]
    """The sizes."""
    steps: Sequence[_Step]
    """What each step does."""
    blocks: Sequence[int]
    """For each place in the arena the bytes that it needs."""
    capacities: Sequence[int]
    """The bytes that it has."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Recording:
    """How bindings are computed from another one, of which only some sizes change."""

    base: Planned
    """That one."""
    names: tuple[str, ...]
    """The symbols that may change."""
    others: Mapping[str, int]
    """Those that may not."""
    replay: Replay
    """From the symbols to words of the table."""
    places: _Words
    """Where these words are."""
    sources: _Words
    """Which of the numbers of `replay` each of them is."""

    def bind(self, symbols: Mapping[str, int]) -> Placed | None:
        """Return a binding; None where plans have to be asked."""
        if len(symbols) != len(self.base.symbols) or any(symbols.get(name) != size for name, size in self.others.items()):
            return None
        try:
            numbers = self.replay(*[symbols[name] for name in self.names])
            if numbers is None:
                return None
            words = np.array(numbers, np.int64)
        except (KeyError, OverflowError, ZeroDivisionError):
            return None
        table = self.base.table.with_words(self.places, words[self.sources])
        return Placed(self.base.offsets, self.base.arena_bytes, table)


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
        self._latest: Planned | None = None
        self._recording: _Recording | None = None
        self._changed: AbstractSet[str] = frozenset()
        self._served = self._waits = self._waited = 0

    def bind(self, sizes: Sizes, place: Place, make_table: Callable[[Sequence[KernelCall]], StepTable]) -> Placed:
        """Return a binding.

        Args:
            sizes: what it is for.
            place: gives the address of a buffer, for offsets of the arena and sizes.
            make_table: makes a table where none can be made of the one before.

        Raises:
            InvalidArgument: a step cannot work with such sizes.
        """
        recording = self._recording
        placed = None if recording is None else recording.bind(sizes.symbols)
        if placed is not None:
            self._served += 1
            return placed
        return self._plan(sizes, place, make_table)

    def _plan(self, sizes: Sizes, place: Place, make_table: Callable[[Sequence[KernelCall]], StepTable]) -> Planned:
        """Return a binding made by the plans, and record what those of it do that are asked again and again."""
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
        planned = self._latest = Planned(offsets, arena_bytes, table, sizes.symbols, steps, blocks, capacities)
        if changed and self._is_worth_recording(changed):
            self._recording = self._recorded(planned, changed, place)
        self._changed = changed or frozenset()
        return planned

    def _is_worth_recording(self, changed: AbstractSet[str]) -> bool:
        """Return whether the same sizes have changed as before; after recordings that served few bindings only now and then."""
        if changed != self._changed:
            return False
        if self._waited < self._waits:
            self._waited += 1
            return False
        is_stale = self._recording is not None and self._served < _LEAST_SERVED
        self._waits = min(2 * self._waits + 1, _MOST_WAITS) if is_stale else 0
        self._served = self._waited = 0
        return True

    def _recorded(self, planned: Planned, changed: AbstractSet[str], place: Place) -> _Recording | None:
        """Return how bindings like this one are computed when sizes of `changed` differ; None where a plan cannot be recorded."""
        recorder, names = Recorder(), tuple(sorted(changed & planned.symbols.keys()))
        sizes = RecordedSizes(dict(planned.symbols), names, recorder)
        words: dict[int, Recorded] = {}
        try:
            blocks = self._storage.blocks(sizes)
            if not _fits(blocks, planned.capacities):
                return None
            for index, step in enumerate(planned.steps):
                if not step.symbols.isdisjoint(changed):
                    launch = self._storage.steps[index]
                    params, tasks = plan_step(launch, sizes)
                    buffers = [place(buffer, planned.offsets, sizes) for buffer in launch.buffers] if tasks else []
                    call = dataclasses.replace(step.call, buffers=buffers, params=params, tasks=tasks)
                    words |= _recorded_words(planned.table, index, call, step.call)
        except TypeError:
            return None
        unique = {number.name: number for number in words.values()}
        order = {name: place for place, name in enumerate(unique)}
        others = {name: size for name, size in planned.symbols.items() if name not in names}
        return _Recording(
            planned,
            names,
            others,
            recorder.function(list(unique.values())),
            np.array(list(words), np.int64),
            np.array([order[number.name] for number in words.values()], np.int64),
        )

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
        self, sizes: Sizes, latest: Planned | None, changed: AbstractSet[str] | None
    ) -> tuple[Sequence[int], Sequence[int], Sequence[int], int]:
        """Return what places need and have, where they are, and the size of the arena."""
        if latest is None or changed is None:
            blocks = self._storage.blocks(sizes)
            return (blocks, blocks, *self._storage.place(blocks))
        if all(symbols.isdisjoint(changed) for symbols in self._block_symbols):
            return latest.blocks, latest.capacities, latest.offsets, latest.arena_bytes
        blocks = self._storage.blocks(sizes)
        if _fits(blocks, latest.capacities):
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


def _fits(blocks: Sequence[int], capacities: Sequence[int]) -> bool:
    """Return whether places in the arena may stay: each is large enough, and all together are not much too large."""
    if not all(need <= have for need, have in zip(blocks, capacities, strict=True)):
        return False
    whole = sum(capacities)
    return whole - sum(blocks) <= max(whole // _LEAST_USED, _LEAST_GROWTH * len(blocks))


def _recorded_words(table: StepTable, index: int, call: KernelCall, known: KernelCall) -> dict[int, Recorded]:
    """Return the recorded ones among the words of a step, by their places.

    Raises:
        TypeError: the step with recorded sizes is not what it is with the same sizes unrecorded, `known`.
    """
    recorded, plain = table.words_of(index, call), table.words_of(index, known)
    if recorded is None or plain is None or recorded.keys() != plain.keys():
        raise TypeError("a plan gives another number of words when it is recorded")
    found: dict[int, Recorded] = {}
    for place, word in cast("dict[int, int | Recorded]", recorded).items():
        if isinstance(word, Recorded):
            found[place] = word
        if (word.value if isinstance(word, Recorded) else word) != plain[place]:
            raise TypeError("a plan gives other words when it is recorded")
    return found


def _changed(before: Mapping[str, int], now: Mapping[str, int]) -> set[str]:
    """Return the symbols that have another value, or are known only here or there."""
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
