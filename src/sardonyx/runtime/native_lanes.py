"""What native runs of one set of shapes, or of shapes that are alike, need: step tables, and how their words are computed."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterable
from typing import TypeAlias

from sardonyx.codegen.run.python_words import GROWTH, LANE, LANES
from sardonyx.codegen.run.replay import OPERATIONS
from sardonyx.dtypes import Array
from sardonyx.native_program import NativeCall, NativeGrowth, NativeProgram
from sardonyx.provider import HOST, Bound, DeviceBuffer
from sardonyx.runtime.executors.sequential import OnlyProgram

__all__ = ["GrowthWords", "Key", "Lanes", "Words", "words"]

Words: TypeAlias = "ctypes.Array[ctypes.c_int64]"
"""Words of 64 bits in memory of their own."""
Key: TypeAlias = tuple[tuple[int, ...], ...]
"""The shapes of the inputs."""


class Lanes:
    """As many lanes as there were runs at a time, up to LANES."""

    def __init__(
        self, program: NativeProgram, bound: Bound, places: object = None, take: Callable[[int], DeviceBuffer] = HOST.allocate
    ) -> None:
        """Have none yet, for what is bound, and shapes that are alike with temporaries in `places` of `NativeGrowth`.

        They work in what `take` gives for a number of bytes.
        """
        self.words = words([0] * len(LANE) * LANES)
        """The lanes."""
        self.sizes: dict[str, GrowthWords | Words] = {}
        """What a row of SHAPES points to besides."""
        self._program, self._bound, self._places, self._take = program, bound, places, take
        self._kept: list[tuple[NativeCall, Array]] = []

    @property
    def scratch_bytes(self) -> int:
        """How much memory they work in."""
        return self._bound.scratch_bytes * len(self._kept)

    @property
    def are_taken(self) -> bool:
        """Whether a run has any of them."""
        return any(self.words[len(LANE) * lane + LANE.index("taken")] for lane in range(len(self._kept)))

    def serves(self, growth: NativeGrowth | None) -> bool:
        """Return whether they are for the shapes of what took their place, or for one set of shapes."""
        return growth is None or growth.places is self._places

    def add(self) -> bool:
        """Add a lane where runs have all that there are; returns whether there is any."""
        count, taken = len(self._kept), LANE.index("taken")
        if count == LANES or not all(self.words[len(LANE) * lane + taken] for lane in range(count)):
            return True
        call = self._program.native_call(self._bound)
        if call is None:
            return count > 0
        scratch: Array = self._take(self._bound.scratch_bytes)
        self._kept.append((call, scratch))
        numbers = {"function": call.function, "bases": call.bases, "scratch": scratch.ctypes.data, "resume": call.resume}
        for name, number in (*numbers.items(), ("table", call.table)):  # `table` last: from then on runs may take it
            self.words[len(LANE) * count + LANE.index(name)] = number
        return True


class GrowthWords(ctypes.c_int64 * len(GROWTH)):  # type: ignore[misc]  # a type that ctypes makes
    """The words of shapes that are alike, which keep what they point to."""

    kept: tuple[object, ...] = ()

    @classmethod
    def of(cls, growth: NativeGrowth, key: Key, only: OnlyProgram) -> GrowthWords:
        """Write what a program says of the sizes of its inputs in terms of the sizes of a session's.

        Args:
            growth: that.
            key: the shapes of the session's inputs. Inputs that the program does not read, and those that are never fed, must
                have just these.
            only: the program and its place in the session.
        """
        firsts = [0, *itertools.accumulate(map(len, key))]
        arguments, count = only.step.inputs, firsts[-1]
        read = [firsts[number] + axis for number in arguments for axis in range(len(key[number]))]
        unread = [(firsts[n] + axis, size) for n, shape in enumerate(key) if n not in arguments for axis, size in enumerate(shape)]
        constants = [*growth.constants, *(size for _, size in unread)]

        def place(register: int) -> int:
            if register < len(read):
                return read[register]
            is_result = register >= len(read) + len(growth.constants)
            return register - len(read) + count + (len(unread) if is_result else 0)

        code = [(OPERATIONS.index(sign), place(left), place(right)) for sign, left, right in growth.instructions]
        behind = count + len(growth.constants)
        code += [(OPERATIONS.index("=="), size, behind + number) for number, (size, _) in enumerate(unread)]
        return cls._written(
            [*itertools.chain(*key), *constants],
            code,
            [(place(register), word) for register, word in growth.writes],
            [place(register) for number in only.results for register in growth.output_dims[number]],
        )

    @classmethod
    def _written(
        cls, registers: list[int], code: list[tuple[int, int, int]], writes: list[tuple[int, int]], dims: list[int]
    ) -> GrowthWords:
        memory = {
            "registers": words([*registers, *([0] * len(code))]),
            "instructions": words(itertools.chain(*code)),
            "writes": words(itertools.chain(*writes)),
            "dims": words(dims),
        }
        numbers = {"first": len(registers), "instruction_count": len(code), "write_count": len(writes), "dim_count": len(dims)}
        numbers |= {name: ctypes.addressof(item) for name, item in memory.items()}
        made = cls(*(numbers[name] for name in GROWTH))
        made.kept = (memory,)
        return made


def words(numbers: Iterable[int]) -> Words:
    """Return words that hold `numbers`."""
    listed = list(numbers)
    return (ctypes.c_int64 * len(listed))(*listed)
