"""What callbacks get that read and write the data of compiled models in the place of files; the names are onnxruntime's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import Fail, InvalidArgument, SardonyxError
from sardonyx.ir import Tensor
from sardonyx.provider import HOST

__all__ = [
    "ContextOutput",
    "InitializerValue",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "OrtExternalInitializerInfo",
    "ReadData",
    "WriteData",
    "read_by",
    "write_by",
]


class OrtEpContextData:
    """The data of a compiled model, which a callback stores; it is good until the callback returns."""

    def __init__(self, content: memoryview) -> None:
        """Show `content`."""
        self._content = content

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self._content)

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Return a copy of `length` bytes from `offset` on, or of all that follow.

        Raises InvalidArgument where these are not there.
        """
        end = self.size if length is None else offset + length
        if not 0 <= offset <= end <= self.size:
            raise InvalidArgument(f"bytes {offset} to {end} are asked for, but the data has {self.size}")
        return bytes(self._content[offset:end])


class OrtEpContextDataBuffer:
    """Where a callback puts the data of a compiled model; it is good until the callback returns."""

    def __init__(self, max_size: int) -> None:
        """Take at most `max_size` bytes."""
        self.max_size = max_size
        self._content: Array | None = None

    @property
    def is_allocated(self) -> bool:
        """Whether `allocate` was called."""
        return self._content is not None

    @property
    def size(self) -> int:
        """How many bytes there are, 0 before they are allocated."""
        return 0 if self._content is None else self._content.nbytes

    def allocate(self, size: int) -> None:
        """Make room for all of the data, once; raises InvalidArgument for a second time and for too much."""
        if self._content is not None:
            raise InvalidArgument(f"{self.size} bytes are allocated already; allocate the whole size once")
        if not 0 <= size <= self.max_size:
            raise InvalidArgument(f"{size} bytes are to be allocated, but max_data_size allows 0 to {self.max_size}")
        self._content = HOST.allocate(size)
        self._content[:] = 0

    def write(self, data: bytes | bytearray | memoryview, offset: int = 0) -> None:
        """Put `data` at `offset`; raises InvalidArgument where it does not fit, or nothing is allocated."""
        if self._content is None:
            raise InvalidArgument("nothing is allocated; call allocate(size) before write")
        chunk = np.frombuffer(data, np.uint8)
        if not 0 <= offset <= offset + chunk.nbytes <= self.size:
            raise InvalidArgument(f"{chunk.nbytes} bytes at {offset} do not fit into the {self.size} that are allocated")
        self._content[offset : offset + chunk.nbytes] = chunk

    def content(self) -> memoryview:
        """Return all bytes; raises InvalidArgument where none were allocated."""
        if self._content is None:
            raise InvalidArgument("the callback returned without having called allocate(size)")
        return self._content.data.toreadonly()


@dataclasses.dataclass(frozen=True, slots=True)
class OrtExternalInitializerInfo:
    """Where the data of an initializer lies in a file."""

    filepath: str
    """The file, by its path from the folder of the model."""
    file_offset: int
    """The first byte."""
    byte_size: int
    """How many bytes."""


class InitializerValue:
    """The value of an initializer, as a callback sees it: what of onnxruntime's OrtValue concerns tensors at rest."""

    def __init__(self, tensor: Tensor) -> None:
        """Show `tensor`."""
        self._tensor = tensor

    def numpy(self) -> Array:
        """Return the elements of the tensor."""
        return self._tensor.numpy()

    def shape(self) -> list[int]:
        """Return the dimensions of the tensor."""
        return list(self._tensor.shape)

    def data_type(self) -> str:
        """Return the type of the tensor, such as "tensor(float)"."""
        return f"tensor({self._tensor.dtype})"

    def element_type(self) -> int:
        """Return the number of its element type in the standard."""
        return int(self._tensor.dtype)

    def tensor_size_in_bytes(self) -> int:
        """Return how many bytes its elements have."""
        return self._tensor.size_bytes


ReadData = Callable[[str, OrtEpContextDataBuffer], None]
"""Puts the data of a name into the buffer."""
WriteData = Callable[[str, OrtEpContextData], None]
"""Stores data under a name."""


@dataclasses.dataclass(frozen=True, slots=True)
class ContextOutput:
    """Who gets the parts of a compiled model that would be files, and says where initializers are; None for nobody."""

    write_data: WriteData | None = None
    """Gets what would lie in files beside the model."""
    locate: Callable[[str, InitializerValue, OrtExternalInitializerInfo | None], OrtExternalInitializerInfo | None] | None = None
    """A callback for each initializer, which returns where it has put it; None for into the model."""
    replaces: bool = False
    """Whether a model that is there already is replaced, when all is compiled."""


def read_by(callback: ReadData, max_size: int, name: str) -> memoryview:
    """Return what `callback` reads for `name`; raises Fail where it fails."""
    buffer = OrtEpContextDataBuffer(max_size)
    try:
        callback(name, buffer)
        return buffer.content()
    except SardonyxError as error:
        raise Fail(f"the EPContext data read callback failed for {name!r}: {error}") from error
    except Exception as error:
        raise Fail(f"the EPContext data read callback failed for {name!r}: {type(error).__name__}: {error}") from error


def write_by(callback: WriteData, name: str, content: memoryview) -> None:
    """Have `callback` store `content`; raises Fail where it fails."""
    try:
        callback(name, OrtEpContextData(content))
    except Exception as error:
        raise Fail(f"the EPContext data write callback failed for {name!r}: {type(error).__name__}: {error}") from error
