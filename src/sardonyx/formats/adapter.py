"""Files of LoRA adapters, as onnxruntime's tools write them: named tensors in a FlatBuffer of the identifier "TORT".

    Adapter {format_version, adapter_version, model_version, parameters: [Parameter {name, dims, data_type, raw_data}]}

Sources: onnxruntime's schema of adapters, and the FlatBuffers description of its binary format: a table begins with its
distance from a vtable (two sizes, then the offset of each field, 0 where it is absent); offsets count from where they stand.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import Fail, InvalidArgument, NoSuchFile

__all__ = ["FORMAT_VERSION", "AdapterFile", "load", "save"]

FORMAT_VERSION = 1
"""The version of the format that is read and written."""
_IDENTIFIER = b"TORT"
_SUPPORTED = frozenset(
    "float uint8 int8 uint16 int16 int32 int64 float16 double uint32 uint64 bfloat16 float8e4m3fn float8e4m3fnuz float8e5m2 "
    "float8e5m2fnuz".split()
)
"""Element types that the format holds."""
_ALIGNMENT = 8


@dataclasses.dataclass(frozen=True, slots=True)
class AdapterFile:
    """What a file of an adapter holds."""

    parameters: Mapping[str, Array]
    """Input of the model -> what the adapter feeds it."""
    adapter_version: int = 0
    """The adapter's version, its maker's affair."""
    model_version: int = 0
    """The version of the model that it is for."""
    format_version: int = FORMAT_VERSION
    """The version of the format."""


def load(path: str | os.PathLike[str]) -> AdapterFile:
    """Read a file; arrays share one buffer, and cannot be written.

    Raises:
        NoSuchFile: there is none.
        Fail: it is no adapter, malformed, or of another version of the format.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise NoSuchFile(f"the adapter {os.fspath(path)!r} does not exist") from error
    except OSError as error:
        raise Fail(f"the adapter {os.fspath(path)!r} cannot be read: {error}") from error
    return _Reader(content, f"the adapter {os.fspath(path)!r}").read()


def save(adapter: AdapterFile, path: str | os.PathLike[str]) -> None:
    """Write a file, once its content is complete.

    Raises:
        InvalidArgument: a parameter is of a type that the format lacks.
        OSError: the file cannot be written.
    """
    for name, array in adapter.parameters.items():
        dtype = DataType.from_numpy(array.dtype)
        if str(dtype) not in _SUPPORTED:
            raise InvalidArgument(
                f"adapter parameter {name!r} has element type {dtype.name}, which the adapter format does not hold"
            )
    Path(path).write_bytes(_Writer().write(adapter))


class _Reader:
    """Reads a buffer, of which nothing is believed."""

    def __init__(self, content: bytes, label: str) -> None:
        self._content, self._label = content, label

    def read(self) -> AdapterFile:
        if len(self._content) <= 8 or self._content[4:8] != _IDENTIFIER:
            self._refuse(f"it has no identifier {_IDENTIFIER.decode()}")
        fields = self._fields(self._u32(0), 4)
        version = self._int(fields[0])
        if version != FORMAT_VERSION:
            self._refuse(f"it has version {version} of the format, and {FORMAT_VERSION} is read")
        places = self._vector(fields[3], 4)
        parameters = dict(self._parameter(start + self._u32(start)) for start in range(places[0], places[0] + 4 * places[1], 4))
        if len(parameters) != places[1]:
            self._refuse("two of its parameters have one name")
        return AdapterFile(parameters, self._int(fields[1]), self._int(fields[2]), version)

    def _parameter(self, place: int) -> tuple[str, Array]:
        fields = self._fields(place, 4)
        start, size = self._vector(fields[0], 1)
        try:
            name = self._content[start : start + size].decode("utf-8")
            dtype = DataType(self._int(fields[2]))
        except ValueError as error:
            self._refuse(str(error))
        start, rank = self._vector(fields[1], 8)
        shape = struct.unpack_from(f"<{rank}q", self._content, start)
        start, size = self._vector(fields[3], 1)
        if str(dtype) not in _SUPPORTED or min(shape, default=0) < 0 or math.prod(shape) * dtype.numpy.itemsize != size:
            self._refuse(f"its parameter {name!r} has {size} bytes for tensor({dtype}) of shape {list(shape)}")
        return name, np.frombuffer(self._content, dtype.numpy, math.prod(shape), start).reshape(shape)

    def _fields(self, place: int, count: int) -> list[int]:
        """Return where the fields of a table lie, 0 for absent ones."""
        vtable = place - self._number("<i", place)
        size = self._number("<H", vtable)
        held = min(count, max(size - 4, 0) // 2)
        offsets = [self._number("<H", vtable + 4 + 2 * index) for index in range(held)] + [0] * (count - held)
        return [place + offset if offset else 0 for offset in offsets]

    def _vector(self, place: int, item_bytes: int) -> tuple[int, int]:
        """Return where the items of a vector begin, and how many there are; none for an absent field."""
        if not place:
            return 0, 0
        start = place + self._u32(place)
        count = self._u32(start)
        if start + 4 + count * item_bytes > len(self._content):
            self._refuse("a vector ends behind the file")
        return start + 4, count

    def _int(self, place: int) -> int:
        return self._number("<i", place) if place else 0

    def _u32(self, place: int) -> int:
        return self._number("<I", place)

    def _number(self, kind: str, place: int) -> int:
        if not 0 <= place <= len(self._content) - struct.calcsize(kind):
            self._refuse("an offset leads out of the file")
        (found,) = struct.unpack_from(kind, self._content, place)
        return int(found)

    def _refuse(self, reason: str) -> NoReturn:
        raise Fail(f"{self._label} does not appear to be a valid adapter: {reason}")


class _Writer:
    """Writes a buffer from front to back: a table, then what its offsets lead to."""

    def __init__(self) -> None:
        self._content = bytearray(bytes(4) + _IDENTIFIER)

    def write(self, adapter: AdapterFile) -> bytes:
        root = self._table(0, "iiiI", adapter.format_version, adapter.adapter_version, adapter.model_version, 0)
        count = len(adapter.parameters)
        places = self._vector(root + 16, 4, count, bytes(4 * count))
        for index, (name, array) in enumerate(adapter.parameters.items()):
            self._parameter(places + 4 * index, name, array)
        return bytes(self._content)

    def _parameter(self, place: int, name: str, array: Array) -> None:
        table = self._table(place, "IIiI", 0, 0, int(DataType.from_numpy(array.dtype)), 0)
        text = name.encode("utf-8")
        self._vector(table + 4, 4, len(text), text + b"\0")
        self._vector(table + 8, _ALIGNMENT, array.ndim, struct.pack(f"<{array.ndim}q", *array.shape))
        self._vector(table + 16, _ALIGNMENT, array.nbytes, np.ascontiguousarray(array).tobytes())

    def _table(self, place: int, kinds: str, *values: int) -> int:
        """Write a vtable and a table of fields of 4 bytes, to which the offset at `place` leads; return where the table begins."""
        self._content += bytes(-len(self._content) % 4)
        count = len(kinds)
        vtable = struct.pack(f"<{2 + count}H", 4 + 2 * count, 4 + 4 * count, *range(4, 4 + 4 * count, 4))
        self._content += vtable
        start = len(self._content)
        self._content += struct.pack(f"<i{kinds}", len(vtable), *values)
        struct.pack_into("<I", self._content, place, start - place)
        return start

    def _vector(self, place: int, alignment: int, count: int, items: bytes) -> int:
        """Write a vector, to which the offset at `place` leads; return where its items begin, a multiple of `alignment`."""
        self._content += bytes(-(len(self._content) + 4) % alignment)
        struct.pack_into("<I", self._content, place, len(self._content) - place)
        self._content += struct.pack("<I", count)
        start = len(self._content)
        self._content += items
        return start
