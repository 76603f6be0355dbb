"""One call of a kernel as the library sees it: OrtKernelContext, and the values that it leads to.

    input count | output count | fallbacks | needed outputs, a bit each | address of each input | address of each output

The address of a value that is left out is 0. Values may be shared: what one kernel makes another reads, in place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from sardonyx.custom_ops.abi.c_memory import fallback_table
from sardonyx.custom_ops.abi.values import PRESENT, HostValue, new_array
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument

__all__ = ["HEADER_WORDS", "MADE", "Frame", "OutputType", "find_frame"]

HEADER_WORDS = 4
MADE = 2
"""The word PRESENT of an input, and of an output that the kernel asked for; 1 is an output that is allocated on a guess."""

_FRAMES: dict[int, Frame] = {}

OutputType = Callable[[int, Sequence[DataType | None]], DataType]
"""f(output, element types of the inputs) -> element type of the output."""


class Frame:
    """An OrtKernelContext and what its handles stand for; used by one call at a time."""

    __slots__ = ("_dirty", "_output_type", "address", "inputs", "keeps", "made", "outputs", "words")

    def __init__(
        self,
        inputs: Sequence[HostValue | None],
        outputs: Sequence[HostValue | None],
        needed: Sequence[int],
        output_type: OutputType,
        dirty: list[Frame],
    ) -> None:
        """Make a frame.

        Args:
            inputs: the value of each input of the node; None for one left out.
            outputs: the value of each output; None for one left out.
            needed: the outputs that others read.
            output_type: the element type of an output.
            dirty: gets this frame when a call keeps or makes something.
        """
        places = [0 if value is None else value.address for value in (*inputs, *outputs)]
        header = [len(inputs), len(outputs), fallback_table(), sum(1 << index for index in needed if index < 63)]
        self.words: object = (ctypes.c_int64 * (len(header) + len(places)))(*header, *places)
        self.address = ctypes.addressof(self.words)
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.keeps: list[object] = []
        self.made: list[HostValue] = []
        """Outputs that were allocated in the call."""
        self._output_type, self._dirty = output_type, dirty
        _FRAMES[self.address] = self

    def output(self, index: int, shape: tuple[int, ...]) -> HostValue | None:
        """Return the value of an output of this shape, which is allocated; None for one that the node leaves out.

        Raises:
            InvalidArgument: there is no such output, or no such shape.
        """
        if index >= len(self.outputs):
            raise InvalidArgument(f"the library asks for output {index} of a node that has {len(self.outputs)}")
        value = self.outputs[index]
        if value is None:
            return None
        if value.array is None or value.shape != shape:
            self.keep(value.array)
            types = [None if item is None or item.array is None else item.dtype for item in self.inputs]
            dtype = self._output_type(index, types)
            value.set_array(new_array(dtype, shape), dtype)
            self.made.append(value)
        value.words[PRESENT] = MADE
        return value

    def keep(self, thing: object) -> None:
        """Let something live until the end of the run."""
        self.keeps.append(thing)
        self._dirty.append(self)

    def close(self) -> None:
        """Make the address unknown, for a frame that is not used again."""
        _FRAMES.pop(self.address, None)


def find_frame(address: int | None) -> Frame:
    """Return the frame at an address that a library gave; raises InvalidArgument for another one."""
    found = _FRAMES.get(address or 0)
    if found is None:
        raise InvalidArgument("the library gave a kernel context that is none, or is of a call that is over")
    return found
