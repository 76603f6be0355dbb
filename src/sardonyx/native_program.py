"""Programs of providers that can be called without Python, as one call of machine code."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.provider import Bound

__all__ = ["GrowingProgram", "NativeCall", "NativeGrowth", "NativeProgram", "TimedCall", "TimesNativeCalls"]


@dataclasses.dataclass(frozen=True, slots=True)
class NativeCall:
    """A bound program as one call of machine code, for one run at a time: `function(table)` is -1 where it ran to its end."""

    function: int
    """The address of the function: one pointer in, one integer of 64 bits out. It runs without the GIL."""
    table: int
    """Its argument."""
    bases: int
    """Where the caller writes addresses before each call: of the scratch memory, 0, of each input, of each output."""
    kept: object
    """What must live as long as the call may be made."""
    resume: int = 0
    """The address of a function of the table and 0, which goes on with a run that has paused, as the result -2 of either says, so
    that signals are heard; 0 for a call that never pauses."""


@dataclasses.dataclass(frozen=True, slots=True)
class TimedCall:
    """A native call that notes how long its steps take, for profiles."""

    call: NativeCall
    """The call."""
    take_times: Callable[[], Array | None]
    """Return the times of the last call, as `TimedRun` has them, and forget them; None where there was none since."""
    symbols: Mapping[str, int]
    """What the symbols in the shapes of its steps are."""


@dataclasses.dataclass(frozen=True, slots=True)
class NativeGrowth:
    """How the table of a native call is written for other shapes: integers that instructions compute of the inputs' sizes.

    A register holds an integer: first one for each size of all inputs in a row, then the constants, then one for the result of
    each instruction. Where a condition among the instructions does not hold, the shapes need another binding.
    """

    key: Hashable
    """Equal for what takes one another's place."""
    places: object
    """Where temporaries are; the same object for what serves the same sizes."""
    constants: Sequence[int]
    """The registers behind those of the sizes."""
    instructions: Sequence[tuple[str, int, int]]
    """Operation, left register, right register; operations as of `sardonyx.codegen.run.replay`."""
    writes: Sequence[tuple[int, int]]
    """Registers, and the words of the table that each is written to."""
    output_dims: Sequence[Sequence[int]]
    """For each output the registers of its sizes."""


@runtime_checkable
class NativeProgram(Protocol):
    """A program that can be called without Python. A call that fails has done nothing that `run` would not do again."""

    def native_call(self, bound: Bound) -> NativeCall | None:
        """Return a new call for what `bind` returned; None where only `run` will do."""


@runtime_checkable
class GrowingProgram(Protocol):
    """A program whose native calls can be written for other shapes without Python."""

    def native_growth(self, bound: Bound) -> NativeGrowth | None:
        """Return how native calls for `bound` serve other shapes too; None where they do not."""


@runtime_checkable
class TimesNativeCalls(Protocol):
    """A program whose native calls can note how long their steps take."""

    def native_timed_call(self, bound: Bound) -> TimedCall | None:
        """Return a new call for what `bind` returned; None where only `run_timed` will do."""
