"""One call of a kernel as the library sees it: OrtKernelContext, with the values of its inputs and outputs.

    input count | output count | fallbacks | unused | a block of SLOT_WORDS words for each input, then for each output

Frames are made once and used again, each by one call at a time. Outputs are allocated before the call for the shapes that the call
before had, so that a kernel whose shapes do not change gets them without a call of Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.custom_ops.abi.values import PRESENT, SLOT_WORDS, HostValue, new_array
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument

__all__ = ["HEADER_WORDS", "Frame", "find_frame"]

HEADER_WORDS = 4
_LARGEST_GUESS_BYTES = 1 << 22
"""Larger outputs are not allocated on the guess that their shapes stay."""

_FRAMES: dict[int, Frame] = {}

OutputType = Callable[[int, Sequence[DataType | None]], DataType]
"""f(output, element types of the inputs) -> element type of the output."""


class Frame:
    """An OrtKernelContext and what its handles stand for."""

    __slots__ = ("_dtypes", "_guess", "_output_type", "_present", "address", "inputs", "keeps", "outputs", "words")

    def __init__(self, input_count: int, present: Sequence[bool], output_type: OutputType, fallbacks: int) -> None:
        """Make a frame.

        Args:
            input_count: how many inputs the node has.
            present: for each output of the node whether it is not left out.
            output_type: the element type of an output.
            fallbacks: the address of the functions that native ones call.
        """
        count = input_count + len(present)
        self.words: Any = (ctypes.c_int64 * (HEADER_WORDS + count * SLOT_WORDS))()
        self.words[:HEADER_WORDS] = [input_count, len(present), fallbacks, 0]
        self.address = ctypes.addressof(self.words)
        slot = ctypes.c_int64 * SLOT_WORDS
        places = [slot.from_buffer(self.words, 8 * (HEADER_WORDS + SLOT_WORDS * index)) for index in range(count)]
        values = [HostValue(place, owned=False, fallbacks=fallbacks) for place in places]
        self.inputs, self.outputs = values[:input_count], values[input_count:]
        self.keeps: list[object] = []
        self._present, self._output_type = tuple(present), output_type
        self._guess: list[tuple[DataType, tuple[int, ...]] | None] = [None] * len(present)
        self._dtypes: tuple[DataType | None, ...] = ()
        _FRAMES[self.address] = self

    def enter(self, inputs: Sequence[Array | None]) -> None:
        """Hold the inputs of a call, dense arrays, and outputs of the shapes of the call before."""
        for value, array in zip(self.inputs, inputs, strict=True):
            if array is None:
                value.clear()
            else:
                value.set_array(array)
        self._dtypes = tuple(None if array is None else value.dtype for value, array in zip(self.inputs, inputs, strict=True))
        for value, guess in zip(self.outputs, self._guess, strict=True):
            if guess is None:
                value.clear()
            else:
                value.set_array(new_array(*guess), guess[0])

    def output(self, index: int, shape: tuple[int, ...]) -> HostValue | None:
        """Return the value of an output of this shape, which is allocated; None for one that the node leaves out.

        Raises:
            InvalidArgument: there is no such output, or no such shape.
        """
        if index >= len(self.outputs):
            raise InvalidArgument(f"the library asks for output {index} of a node that has {len(self.outputs)}")
        if not self._present[index]:
            return None
        value = self.outputs[index]
        if value.array is None or value.shape != shape:
            self.keeps.append(value.array)
            dtype = self._output_type(index, self._dtypes)
            array = new_array(dtype, shape)
            value.set_array(array, dtype)
            guessed = dtype is not DataType.STRING and array.nbytes <= _LARGEST_GUESS_BYTES
            self._guess[index] = (dtype, shape) if guessed else None
        value.keeps = True
        return value

    def leave(self) -> list[Array | None]:
        """Return the outputs of the call, and hold nothing any more."""
        results: list[Array | None] = []
        for value in self.outputs:
            made = value.array if value.words[PRESENT] == 2 or value.keeps else None
            results.append(made if made is None or value.dtype is not DataType.STRING else _settled(made))
        self.drop()
        return results

    def drop(self) -> None:
        """Hold nothing any more."""
        for value in (*self.inputs, *self.outputs):
            value.array = value.encoded = value.keeps = None
        self.keeps.clear()

    def close(self) -> None:
        """Make the addresses unknown, for a frame that is not used again."""
        _FRAMES.pop(self.address, None)
        for value in (*self.inputs, *self.outputs):
            value.forget()


def _settled(texts: Array) -> Array:
    """`texts` with every element a str: some were written after they were asked for."""
    flat = texts.reshape(-1)
    for index, item in enumerate(flat.tolist()):
        if type(item) is not str:
            flat[index] = str(item)
    return texts


def find_frame(address: int | None) -> Frame:
    """Return the frame at an address that a library gave; raises InvalidArgument for another one."""
    found = _FRAMES.get(address or 0)
    if found is None:
        raise InvalidArgument("the library gave a kernel context that is none, or is of a call that is over")
    return found
