"""A table of steps, as the driver reads it.

A step is a kernel, its buffers, its params and a number of tasks. Its buffers are given relative to bases: addresses that
change from run to run (the arena, what the user passes in, what he gets), so that one table serves all runs:

    head | bases | relocations | steps | pointers | scalars, params …          words of 64 bits
                    │               │       ▲          ▲
                    │ pointer =     └───────┴──────────┘  kernel, pointers, params, tasks
                    └ base + offset

A table must not run twice at a time, since its pointers are its own: concurrent runs take copies.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from sardonyx.codegen.run.pool_words import MOST_TASKS
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "BASES",
    "BUFFERS",
    "DONE",
    "FIRST",
    "FLUSH",
    "KERNEL",
    "LAST",
    "PACE",
    "PACE_WORDS",
    "PARAMS",
    "PAUSED",
    "POOL",
    "RELOCATIONS",
    "REPORT",
    "SKIP",
    "STATUS",
    "STEP",
    "STEPS",
    "STEP_WORDS",
    "TASK",
    "TASKS",
    "THREADS",
    "TOGETHER",
    "Buffer",
    "KeptTable",
    "KernelCall",
    "StepTable",
]

_Words: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

STATUS = 0
"""The base that is the word in which a kernel reports a failure."""

DONE, PAUSED = -1, -2
"""What a run returns that has done all steps, or that has paused."""

STEPS, RELOCATIONS, THREADS, POOL, REPORT, SKIP, FIRST, LAST, STEP, TASK, FLUSH, PACE = range(12)
"""The words of the head; what `pace` works with begins at the last one."""
PACE_WORDS = 6
"""How many words the state of `pace` takes."""
BASES = PACE + PACE_WORDS
"""Where the bases are, STATUS first."""
KERNEL, BUFFERS, PARAMS, TASKS, TOGETHER = range(5)
"""The words of a step."""
STEP_WORDS = 5


@dataclass(frozen=True, slots=True)
class Buffer:
    """An address that a step works on."""

    base: int
    """The number of the base that it is relative to."""
    offset_bytes: int = 0
    """How far behind the base it is."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of a kernel."""

    kernel: int
    """The address of the kernel; its engine must outlive the table."""
    buffers: Sequence[Buffer]
    """What it works on, in the order of the kernel's buffers."""
    params: Sequence[int]
    """Its parameters; numbers with a fraction as `float_word`."""
    tasks: int = 1
    """How many tasks it is; 0 does nothing."""
    together: int = 0
    """The most tasks that may run at a time, from one multiple of it to the next, and end before the rest; 0 for any number."""
    scalars: Sequence[int] = ()
    """Words that lie before its parameters, the first one next to them: see `Kernel.scalar`."""


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table without addresses, which can leave the process."""

    words: _Words
    """Its words; pointers into the table are relative to its beginning."""
    first_step: int
    """The word where steps begin."""
    end: int
    """The word behind them."""
    bases: int
    """How many bases it has besides STATUS."""


class StepTable:
    """Steps in the form that the driver reads. `bases` counts the bases besides STATUS, which are numbered from 1.

    With `flush` kernels compute with zeros for denormal numbers.
    """

    def __init__(self, steps: Sequence[KernelCall], bases: int, *, threads: int = 1, flush: bool = False) -> None:
        self.threads = threads
        self.address = 0
        """Where the words are."""
        self._bases = struct.Struct(f"={bases}q")
        pointers = [buffer for step in steps for buffer in step.buffers]
        params = [word for step in steps for word in (*reversed(step.scalars), *step.params)]
        first_relocation = BASES + 1 + bases
        first_step = first_relocation + 3 * len(pointers)
        first_pointer = first_step + STEP_WORDS * len(steps)
        first_param = first_pointer + len(pointers)
        self._first_step = first_step
        self._counts = [(len(step.buffers), len(step.params), len(step.scalars)) for step in steps]
        self._places: list[tuple[int, int]] = []
        words = [0] * first_relocation
        words[STEPS], words[RELOCATIONS], words[THREADS], words[LAST] = first_step, len(pointers), threads, len(steps)
        words[FLUSH] = int(flush)
        for place, buffer in enumerate(pointers, first_pointer):
            words += (place, BASES + buffer.base, buffer.offset_bytes)
        pointer, param = first_pointer, first_param
        for step in steps:
            param += len(step.scalars)
            self._places.append((first_relocation + 3 * (pointer - first_pointer), param))
            words += (step.kernel, 8 * pointer, 8 * param, step.tasks, min(step.together or MOST_TASKS, MOST_TASKS))
            pointer += len(step.buffers)
            param += len(step.params)
        self._end = len(words)
        words += [0] * len(pointers) + params
        self._adopt(np.array(words, np.int64), 0)

    def copy(self) -> StepTable:
        """Return the same steps in memory of their own, for a concurrent run."""
        other = object.__new__(StepTable)
        other.threads, other._bases, other._end = self.threads, self._bases, self._end
        other._first_step, other._counts, other._places = self._first_step, self._counts, self._places
        other._adopt(self._words.copy(), self.address)
        return other

    def kept(self) -> KeptTable:
        """Return the table as it is kept: with the addresses of this process, which `of_kept` replaces."""
        words = self._words.copy()
        for word in (BUFFERS, PARAMS):
            words[self._first_step + word : self._end : STEP_WORDS] -= self.address
        words[BASES + STATUS] = words[POOL] = 0
        return KeptTable(words, self._first_step, self._end, self._bases.size // 8)

    @classmethod
    def of_kept(
        cls, kept: KeptTable, kernels: _Words, pointers: _Words, addresses: _Words, *, threads: int = 1, flush: bool = False
    ) -> StepTable:
        """Return a table with the addresses of this process. It is run and copied; other calls are not put into it.

        Args:
            kept: the table.
            kernels: int64 (steps,): the address of each step's kernel.
            pointers: int64 (n,): numbers of buffers, of those of all steps in a row, that are addresses as they are.
            addresses: int64 (n,): these addresses.
            threads: how many threads a run may use.
            flush: whether kernels compute with zeros for denormal numbers.
        """
        table = object.__new__(cls)
        table.threads, table._bases, table._end, table._first_step = (
            threads,
            struct.Struct(f"={kept.bases}q"),
            kept.end,
            kept.first_step,
        )
        table._counts, table._places = [], []
        words = kept.words.copy()
        words[THREADS], words[FLUSH] = threads, int(flush)
        words[kept.first_step + KERNEL : kept.end : STEP_WORDS] = kernels
        words[BASES + 1 + kept.bases + 3 * pointers + 2] = addresses
        table._adopt(words, 0)
        return table

    def with_calls(self, calls: Mapping[int, KernelCall]) -> StepTable | None:
        """Return the same steps but for some of other sizes; None where one has more or fewer buffers or parameters."""
        other = self.copy()
        return other if all(other.set_call(index, call) for index, call in calls.items()) else None

    def set_call(self, index: int, call: KernelCall) -> bool:
        """Have a step make another call of its kernel; False where that has more or fewer buffers or parameters."""
        words = self.words_of(index, call)
        if words is not None:
            self._words[list(words)] = list(words.values())
        return words is not None

    def with_words(self, places: _Words, numbers: _Words) -> StepTable:
        """Return the same steps but for some words; arguments are int64 (n,), the places as of `words_of`."""
        other = self.copy()
        other._words[places] = numbers
        return other

    def add_to_words(self, places: _Words, numbers: _Words) -> None:
        """Add to words, each of which is named once; arguments as of `with_words`."""
        self._words[places] += numbers

    def offset_word(self, index: int, number: int) -> int:
        """Return the place of the word that says how far behind its base the buffer `number` of a step is."""
        return self._places[index][0] + 3 * number + 2

    def words_of(self, index: int, call: KernelCall) -> dict[int, int] | None:
        """Return the words of a step with another call, by their places; None where it has more or fewer buffers or parameters."""
        words = {self._first_step + STEP_WORDS * index + TASKS: call.tasks}
        if not call.tasks:
            return words
        if self._counts[index] != (len(call.buffers), len(call.params), len(call.scalars)):
            return None
        relocation, param = self._places[index]
        for buffer in call.buffers:
            words[relocation + 1], words[relocation + 2] = BASES + buffer.base, buffer.offset_bytes
            relocation += 3
        words |= enumerate((*reversed(call.scalars), *call.params), param - len(call.scalars))
        return words

    @property
    def size_bytes(self) -> int:
        """How long the words are."""
        return int(self._words.nbytes)

    @property
    def tasks(self) -> list[int]:
        """How many tasks each step is."""
        found: list[int] = self._words[self._first_step + TASKS : self._end : STEP_WORDS].tolist()
        return found

    @property
    def status(self) -> int:
        """What the last failing kernel reported, 0 after a run that went well."""
        return int(self._words[REPORT])

    @property
    def bases_address(self) -> int:
        """Where the base 1 is, with 2, … behind it."""
        return self.address + 8 * (BASES + 1)

    @property
    def step(self) -> int:
        """The step in which the last run paused."""
        return int(self._words[STEP])

    def set_bases(self, addresses: Sequence[int]) -> None:
        """Say where the bases 1, 2, … are, for the runs that follow."""
        self._bases.pack_into(self._memory, 8 * (BASES + 1), *addresses)

    def attend(self, result: int, paused: Callable[[], object] | None, asked: Callable[[], object] | None) -> bool:
        """Call what a run that returned `result` waits for; return whether it is to go on, rather than has failed."""
        if result == PAUSED:
            if paused is not None:
                paused()
            return True
        if asked is None or self.status >= 0:
            return False
        asked()
        self._words[REPORT] = 0
        return True

    def set_range(self, first: int, last: int) -> None:
        """Let runs call the steps [first, last) only."""
        self._words[FIRST], self._words[LAST] = first, last

    def set_pool(self, address: int) -> None:
        """Say which pool to share tasks with."""
        self._words[POOL] = address

    def _adopt(self, words: _Words, old_address: int) -> None:
        """Take over words whose inner addresses are relative to `old_address`."""
        address = int(words.ctypes.data)
        self._words, self._memory, self.address = words, words.data, address
        self.pointer = ctypes.c_void_p(address)
        for word in (BUFFERS, PARAMS):
            words[self._first_step + word : self._end : STEP_WORDS] += address - old_address
        words[BASES + STATUS] = address + 8 * REPORT
