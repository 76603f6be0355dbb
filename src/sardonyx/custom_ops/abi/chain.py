"""Kernels of compiled libraries that run one after the other in a native call: what one makes the next reads, in place.

    first | last | status | then for each step: function | kernel | frame | whether the function returns a status

The loop is machine code; Python is called where a shape changes or a library asks for something rare. Values between the kernels
keep their memory from run to run where they are small; what is given out is allocated anew.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx.custom_ops.abi.cpp_exceptions import GuardedCall
from sardonyx.custom_ops.abi.frame import HEADER_WORDS, MADE, Frame, OutputType
from sardonyx.custom_ops.abi.statuses import raise_failures, raise_status
from sardonyx.custom_ops.abi.values import PRESENT, HostValue, blank_value, new_array
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidGraph, SardonyxError, located
from sardonyx.provider import check_cancelled

__all__ = ["CHAIN_WORDS", "FIRST", "LAST", "STATUS", "STEP_WORDS", "Chain", "Link", "RunChain", "run_in_python"]

FIRST, LAST, STATUS, CHAIN_WORDS = 0, 1, 2, 3
STEP_WORDS = 4
_STEPS_AT_ONCE = 32
"""How many kernels run between two questions whether the run was terminated."""
_LARGEST_KEPT_BYTES = 1 << 16
_LARGEST_GUESS_BYTES = 1 << 22
"""Larger outputs are not allocated on the guess that their shapes stay."""

RunChain = Callable[[int], int]
"""f(address of the words) -> -1, or the number of the step that failed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Link:
    """One kernel of a chain."""

    function: int
    """The address of its compute function."""
    kernel: int
    """What the function gets first."""
    returns_status: bool
    """Whether the function returns a status."""
    inputs: tuple[int, ...]
    """The value of each input; -1 for one left out."""
    outputs: tuple[int, ...]
    """The value of each output; -1 for one left out."""
    needed: tuple[int, ...]
    """The outputs that others read."""
    output_type: OutputType
    """The element type of an output."""
    place: str
    """What messages call it."""


class Chain:
    """A chain with memory of its own, for one run at a time."""

    def __init__(self, links: Sequence[Link], inputs: Sequence[int], outputs: Sequence[int], run: RunChain) -> None:
        """Make a chain.

        Args:
            links: its kernels, in order; their values are numbered.
            inputs: the values that a run is given.
            outputs: the values that it gives out.
            run: what calls the kernels.
        """
        count = 1 + max([-1, *inputs, *outputs, *(place for link in links for place in (*link.inputs, *link.outputs))])
        values = [blank_value() for _ in range(count)]
        self._values, self._run, self._links = values, run, links
        self._inputs = [values[place] for place in inputs]
        self._outputs = [values[place] for place in outputs]
        self._guesses: list[tuple[DataType, tuple[int, ...]] | None] = [None] * len(outputs)
        self._dirty: list[Frame] = []
        self._frames = [
            Frame(
                [None if place < 0 else values[place] for place in link.inputs],
                [None if place < 0 else values[place] for place in link.outputs],
                link.needed,
                link.output_type,
                self._dirty,
            )
            for link in links
        ]
        words = [0, len(links), 0]
        self._calls = [GuardedCall(link.function, link.kernel, returns_status=link.returns_status) for link in links]
        for link, call, frame in zip(links, self._calls, self._frames, strict=True):
            words += [call.function, call.argument, frame.address, int(link.returns_status or call.is_guarded)]
        self._words: Any = (ctypes.c_int64 * len(words))(*words)
        self._address = ctypes.addressof(self._words)
        self._bounds = [(first, min(first + _STEPS_AT_ONCE, len(links))) for first in range(0, len(links), _STEPS_AT_ONCE)]

    def run(self, inputs: Sequence[Array | None]) -> list[Array | None]:
        """Compute the outputs from the inputs, None for one left out.

        Raises:
            SardonyxError: a kernel failed; the message names it.
        """
        try:
            for value, array in zip(self._inputs, inputs, strict=True):
                if array is None:
                    value.clear()
                else:
                    value.set_array(array if array.flags.c_contiguous else np.ascontiguousarray(array))
                    value.words[PRESENT] = MADE
            for value, guess in zip(self._outputs, self._guesses, strict=True):
                if guess is not None:
                    value.set_array(new_array(*guess), guess[0])
            for first, last in self._bounds:
                check_cancelled()
                self._words[FIRST], self._words[LAST] = first, last
                failed = self._run(self._address)
                if failed >= 0:
                    self._fail(failed)
                raise_failures(self._links[first].place)
            return [self._given(index, value) for index, value in enumerate(self._outputs)]
        finally:
            self._settle()

    def _given(self, index: int, value: HostValue) -> Array | None:
        array = value.array if value.words[PRESENT] == MADE else None
        if array is None:
            return None
        if value.dtype is DataType.STRING:
            return settled_texts(array)
        self._guesses[index] = (value.dtype, value.shape) if array.nbytes <= _LARGEST_GUESS_BYTES else None
        return array

    def _fail(self, number: int) -> None:
        status, place = self._words[STATUS], self._links[number].place
        self._calls[number].raise_thrown(place)
        try:
            raise_failures("the library")
        except SardonyxError as error:
            raise located(error, place) from error
        raise_status(status, place)
        raise InvalidGraph(f"{place}: an output that is read is not made by this custom operator; leave it out")

    def _settle(self) -> None:
        """Let go of what the run was given and gave out, and of large values between kernels."""
        for value in (*self._inputs, *self._outputs):
            value.clear()
        for frame in self._dirty:
            for value in frame.made:
                if value.array is not None and (value.dtype is DataType.STRING or value.array.nbytes > _LARGEST_KEPT_BYTES):
                    value.clear()
            frame.made.clear()
            frame.keeps.clear()
        self._dirty.clear()

    def close(self) -> None:
        """Make all addresses unknown, for a chain that is not used again."""
        for frame in self._frames:
            frame.close()
        for value in self._values:
            value.forget()


def settled_texts(texts: Array) -> Array:
    """Return `texts` with every element a str: some were written after they were asked for."""
    flat = texts.reshape(-1)
    for index, item in enumerate(flat.tolist()):
        if type(item) is not str:
            flat[index] = str(item)
    return texts


def run_in_python(address: int) -> int:
    """Call the kernels of a chain as the native loop does, where that cannot be compiled."""
    first, last, _ = (ctypes.c_int64 * CHAIN_WORDS).from_address(address)
    for number in range(first, last):
        at = address + 8 * (CHAIN_WORDS + STEP_WORDS * number)
        function, kernel, frame, returns_status = (ctypes.c_int64 * STEP_WORDS).from_address(at)
        status = _call_step(function, kernel, frame, bool(returns_status))
        if status is not None:
            ctypes.c_int64.from_address(address + 8 * STATUS).value = status
            return number
    return -1


def _call_step(function: int, kernel: int, frame: int, returns_status: bool) -> int | None:
    """Call one kernel; its status, 0 where it made too few outputs, None where all went well."""
    inputs, outputs, _, needed = (ctypes.c_int64 * HEADER_WORDS).from_address(frame)
    first = frame + 8 * (HEADER_WORDS + inputs)
    places = tuple((ctypes.c_int64 * outputs).from_address(first)) if outputs else ()
    marks = [None if not place else ctypes.c_int64.from_address(place + 8 * PRESENT) for place in places]
    for mark in marks:
        if mark is not None and mark.value == MADE:
            mark.value = 1
    result = ctypes.c_void_p if returns_status else None
    status = ctypes.CFUNCTYPE(result, ctypes.c_void_p, ctypes.c_void_p)(function)(kernel, frame)
    if status:
        return int(status)
    made = all(mark is None or mark.value == MADE or not needed >> index & 1 for index, mark in enumerate(marks))
    return None if made else 0
