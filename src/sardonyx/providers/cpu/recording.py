"""Bindings computed from another one, of which only some sizes change, without asking the plans of its steps.

plans with recorded sizes  ─►  replay: sizes  ─►  numbers ─┬─► words of the table
                                                           └─► bytes of places in the arena  ─►  words that point there
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias, cast

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.run import step_table
from sardonyx.codegen.run.step_table import KernelCall, StepTable
from sardonyx.providers.cpu.placed import ArenaPlaces, Placed, Planned
from sardonyx.providers.cpu.planning import plan_step
from sardonyx.providers.cpu.recorded import Operation, Recorded, RecordedSizes, Recorder, Replay
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.storage import Home, Storage

__all__ = ["Dims", "DimsOf", "Place", "Recording", "record"]

Place: TypeAlias = Callable[[Buffer, Sequence[int], Sizes], step_table.Buffer]
"""From a buffer, offsets of the arena and sizes to the buffer's address."""
Dims: TypeAlias = "tuple[Sequence[int | Recorded | None], Sequence[Sequence[int | Recorded]]]"
"""The sizes of all inputs in a row, None for those that no symbol is known of, and those of each output."""
DimsOf: TypeAlias = Callable[[Sizes], Dims]
"""Evaluates them."""
_Words: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"


@dataclasses.dataclass(frozen=True, slots=True)
class Recording:
    """How bindings are computed from another one."""

    base: Planned
    """That one."""
    names: tuple[str, ...]
    """The symbols that may change."""
    others: Mapping[str, int]
    """Those that may not."""
    replay: Replay
    """From the symbols to numbers."""
    words: tuple[_Words, _Words]
    """The words of the table that are numbers: where they are, and which numbers."""
    blocks: Sequence[int | None]
    """For each place in the arena which number its bytes are; None where they stay."""
    pointers: tuple[_Words, _Words]
    """The words of other steps that point into the arena: where they are, and to which place."""
    asked: Sequence[int]
    """The steps whose plans cannot be recorded, and are to be asked each time."""
    operations: Sequence[Operation]
    """What computes the numbers, and the sizes in `dims`."""
    results: Sequence[Recorded]
    """The numbers, by the names that `operations` has for them."""
    dims: Dims | None
    """The sizes of inputs and outputs; None where they cannot be recorded."""

    def numbers(self, symbols: Mapping[str, int]) -> tuple[int, ...] | None:
        """Return the numbers for other sizes; None where plans have to be asked."""
        if len(symbols) != len(self.base.symbols) or any(symbols.get(name) != size for name, size in self.others.items()):
            return None
        try:
            return self.replay(*[symbols[name] for name in self.names])
        except (KeyError, ZeroDivisionError):
            return None

    def places(self, numbers: Sequence[int], storage: Storage, before: ArenaPlaces) -> ArenaPlaces:
        """Return where temporaries are, those `before` where these will do."""
        stay = self.base.places.blocks
        return before.for_blocks(
            storage,
            [have if number is None else numbers[number] for have, number in zip(stay, self.blocks, strict=True)],
        )

    def bind(self, numbers: Sequence[int], places: ArenaPlaces, calls: Mapping[int, KernelCall]) -> Placed | None:
        """Return a binding, with the calls of the steps that are asked; None where one has more or fewer parameters than before.

        Raises:
            OverflowError: a number does not fit a word.
        """
        at, sources = self.words
        table = self.base.table.with_words(at, np.array(numbers, np.int64)[sources])
        known = self.base.places
        if places is not known:
            at, targets = self.pointers
            table.add_to_words(at, np.subtract(places.offsets, known.offsets, dtype=np.int64)[targets])
        return Placed(places, table) if all(table.set_call(index, call) for index, call in calls.items()) else None


def record(storage: Storage, planned: Planned, changed: AbstractSet[str], place: Place, dims_of: DimsOf) -> Recording:
    """Return how bindings like `planned` are computed when sizes of `changed` differ."""
    recorder, names = Recorder(), tuple(sorted(changed & planned.symbols.keys()))
    sizes = RecordedSizes(dict(planned.symbols), names, recorder)
    words: dict[int, Recorded] = {}
    asked: list[int] = []
    for index, step in enumerate(planned.steps):
        if step.symbols.isdisjoint(changed):
            continue
        launch = storage.steps[index]
        try:
            params, tasks = plan_step(launch, sizes)
            buffers = [place(buffer, planned.places.offsets, sizes) for buffer in launch.buffers] if tasks else []
            call = dataclasses.replace(step.call, buffers=buffers, params=params, tasks=tasks)
            words |= _recorded_words(planned.table, index, call, step.call)
        except (TypeError, struct.error):
            asked.append(index)
    blocks = cast("list[int | Recorded]", storage.blocks(sizes))
    numbers = {each.name: each for each in (*words.values(), *blocks) if isinstance(each, Recorded)}
    order = {name: number for number, name in enumerate(numbers)}
    replay = recorder.function(list(numbers.values()))
    dims = _dims(dims_of, sizes)
    return Recording(
        planned,
        names,
        {name: size for name, size in planned.symbols.items() if name not in names},
        replay,
        (np.array(list(words), np.int64), np.array([order[word.name] for word in words.values()], np.int64)),
        [order[block.name] if isinstance(block, Recorded) else None for block in blocks],
        _pointers(storage, planned, asked),
        asked,
        recorder.operations,
        list(numbers.values()),
        dims,
    )


def _dims(dims_of: DimsOf, sizes: RecordedSizes) -> Dims | None:
    try:
        return dims_of(sizes)
    except TypeError:
        return None


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


def _pointers(storage: Storage, planned: Planned, asked: Sequence[int]) -> tuple[_Words, _Words]:
    """Return the words that point into the arena, and to which place, of all steps but those that are asked."""
    found: dict[int, int] = {}
    for index, (launch, step) in enumerate(zip(storage.steps, planned.steps, strict=True)):
        for number, buffer in enumerate(launch.buffers if step.call.tasks and index not in asked else ()):
            home, tenant = storage.homes[buffer.root]
            if home is Home.ARENA:
                found[planned.table.offset_word(index, number)] = tenant
    return np.array(list(found), np.int64), np.array(list(found.values()), np.int64)
