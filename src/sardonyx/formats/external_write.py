"""Tensor data written to a file beside the model, in the layout that readers can map."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from sardonyx.dtypes import DataType
from sardonyx.formats.elements import pack
from sardonyx.formats.onnx_tensor import write_tensor
from sardonyx.formats.protos import Message
from sardonyx.ir import Tensor

__all__ = ["DataFile", "Locate", "store_where"]

Locate = Callable[[str, Tensor], "tuple[str, int, int] | None"]
"""Name and tensor -> the file beside the model that its data is in, from which byte on, and how many; None: in none."""

_ALIGNMENT_BYTES = 4096
"""onnx.proto: offsets should be multiples of 4096, to enable mmap."""
_EXTERNAL = 1


class DataFile:
    """An external data file while it is written; whoever opened the stream closes it."""

    def __init__(self, stream: IO[bytes], location: str, *, least_bytes: int = _ALIGNMENT_BYTES) -> None:
        """Write tensors of at least `least_bytes` to `stream`, an empty file that will be found as `location` beside the model."""
        self._stream, self._location, self._position, self._least_bytes = stream, location, 0, least_bytes

    def store(self, proto: Message, tensor: Tensor, name: str) -> None:
        """State `tensor` in an empty TensorProto, with its data in the file where it is large enough."""
        if tensor.dtype is DataType.STRING or tensor.size_bytes < self._least_bytes:
            write_tensor(proto, tensor, name)
            return
        data = pack(tensor.numpy(), tensor.dtype)
        padding = -self._position % _ALIGNMENT_BYTES
        self._stream.write(bytes(padding))
        self._stream.write(data)
        offset = self._position + padding
        self._position = offset + len(data)
        _refer(proto, tensor, name, (self._location, offset, len(data)))


def store_where(locate: Locate) -> Callable[[Message, Tensor, str], None]:
    """Return how to state tensors whose data `locate` finds in existing files."""

    def store(proto: Message, tensor: Tensor, name: str) -> None:
        place = None if tensor.dtype is DataType.STRING else locate(name, tensor)
        if place is None:
            write_tensor(proto, tensor, name)
        else:
            _refer(proto, tensor, name, place)

    return store


def _refer(proto: Message, tensor: Tensor, name: str, place: tuple[str, int, int]) -> None:
    proto.name, proto.data_type, proto.data_location = name, int(tensor.dtype), _EXTERNAL
    proto.dims.extend(tensor.shape)
    for key, text in zip(("location", "offset", "length"), map(str, place), strict=True):
        entry = proto.external_data.add()
        entry.key, entry.value = key, text
