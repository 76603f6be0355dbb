"""Constants of TensorFlow Lite models: where their elements lie in the file, and how strings and sparse tensors are packed.

A string tensor is a count, that many offsets and one more, all int32, and the characters. A sparse tensor stores its dimensions in
an order of its own, each densely or as in compressed sparse rows, perhaps with dense blocks in the places of elements.

Sources: the comments of the public schema, and LiteRT's description of its string buffers.
"""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx import errors
from sardonyx.config import LIMITS
from sardonyx.dtypes import Array, DataType
from sardonyx.formats.elements import packed_size_bytes, unpack
from sardonyx.formats.flat.reader import Table
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.tflite.tensors import TensorInfo
from sardonyx.ir import Tensor
from sardonyx.ir.tensor import KeptSource

__all__ = ["Buffers", "transposed"]

_SPARSE_LIMIT_BYTES = 1 << 30


class Buffers:
    """The buffers of a model."""

    def __init__(self, file: ModelFile, model: Table) -> None:
        """Take the file and its root table."""
        self._file, self._model = file, model
        self._tables = model.tables("buffers")

    def place(self, index: int, table: Table, field: str = "buffer") -> tuple[int, int]:
        """Return offset and length of a buffer in the file; a length of 0 where it is empty. `table` names it in `field`."""
        if index >= len(self._tables):
            table.refuse(field, f"there is no buffer {index}; the model has {len(self._tables)}")
        found = self._tables[index]
        offset, size_bytes = found.integer("offset"), found.integer("size")
        if offset <= 1:
            return found.blob("data")
        if offset + size_bytes > len(self._file.content):
            found.refuse("offset", f"{size_bytes} bytes at byte {offset} end behind the file of {len(self._file.content)} bytes")
        return offset, size_bytes

    def data(self, index: int, table: Table, field: str = "buffer") -> bytes:
        """Return the bytes of a buffer."""
        return bytes(self._file.content.read(*self.place(index, table, field)))

    def tensor(self, info: TensorInfo) -> Tensor | None:
        """Return the elements that the file has of a tensor; None where it has none.

        Raises:
            InvalidFlatBuffer: they do not fit type and shape.
            NotImplemented: they lie in another file.
        """
        table = info.table
        if "external_buffer" in table.known and table.integer("external_buffer"):
            raise errors.NotImplemented(
                f"{table.path}.external_buffer: elements in other files are not supported; embed them in the model"
            )
        index = table.integer("buffer")
        if index == 0 or info.is_variable or info.dtype is DataType.UNDEFINED:
            return None
        offset, size_bytes = self.place(index, table)
        if size_bytes == 0 and (math.prod(info.shape) > 0 or not info.shape):
            return None
        if info.dtype is DataType.STRING:
            return self._strings(info, offset, size_bytes)
        sparsity = table.table("sparsity")
        if sparsity is not None:
            return self._sparse(info, sparsity, offset, size_bytes)
        expected = packed_size_bytes(info.dtype, math.prod(info.shape))
        if expected != size_bytes:
            table.refuse("buffer", f"it has {size_bytes} bytes, and {info.kind} of shape {list(info.shape)} takes {expected}")
        return self._file.tensor(info.dtype, info.shape, offset, size_bytes, info.name)

    def _strings(self, info: TensorInfo, offset: int, size_bytes: int) -> Tensor:
        data = bytes(self._file.content.read(offset, size_bytes))
        count = int.from_bytes(data[:4], "little")
        if count != math.prod(info.shape) or 4 * (count + 2) > size_bytes:
            info.table.refuse("buffer", f"{size_bytes} bytes hold {count} strings, and the shape is {list(info.shape)}")
        offsets = np.frombuffer(data, "<i4", count + 1, 4)
        if (np.diff(offsets) < 0).any() or offsets[0] < 0 or offsets[-1] > size_bytes:
            info.table.refuse("buffer", "the offsets of its strings do not rise within the buffer")
        places = offsets.tolist()
        texts = [data[start:stop].decode("utf-8", "surrogateescape") for start, stop in itertools.pairwise(places)]
        return Tensor.from_array(np.array(texts, object).reshape(info.shape), info.name)

    def _sparse(self, info: TensorInfo, sparsity: Table, offset: int, size_bytes: int) -> Tensor:
        if math.prod(info.shape) * 8 > _SPARSE_LIMIT_BYTES or math.prod(info.shape) * 8 > LIMITS.tensor_bytes:
            info.table.refuse("shape", f"a sparse tensor of shape {list(info.shape)} is too large to be made dense")
        layout = _SparseLayout(info, sparsity)
        bits_count = layout.count
        if packed_size_bytes(info.dtype, bits_count) != size_bytes:
            info.table.refuse("buffer", f"it has {size_bytes} bytes, and {bits_count} elements of {info.kind} were expected")
        read = functools.partial(self._file.content.read, offset, size_bytes)
        return Tensor(info.dtype, info.shape, functools.partial(_dense, read, info.dtype, info.shape, layout.places), info.name)


def _dense(read: Callable[[], memoryview], dtype: DataType, shape: tuple[int, ...], places: Array) -> Array:
    values = unpack(read(), dtype, (len(places),))
    dense = np.zeros(math.prod(shape), dtype.numpy)
    dense[places] = values
    return dense.reshape(shape)


class _SparseLayout:
    """Where in the dense tensor each stored element goes."""

    def __init__(self, info: TensorInfo, sparsity: Table) -> None:
        self._info, self._table = info, sparsity
        order = sparsity.numbers("traversal_order").tolist()
        blocks = sparsity.numbers("block_map").tolist()
        metadata = sparsity.tables("dim_metadata")
        rank = info.rank
        if sorted(order) != list(range(rank + len(blocks))) or len(metadata) != len(order):
            sparsity.refuse("traversal_order", f"{order} is no order of {rank + len(blocks)} dimensions with metadata for each")
        if any(not 0 <= axis < rank for axis in blocks):
            sparsity.refuse("block_map", f"{blocks} names a dimension that a tensor of rank {rank} lacks")
        paths = np.zeros((1, 0), np.int64)
        sizes: list[int] = []
        for level, dimension in enumerate(metadata):
            paths, size = self._descend(paths, dimension, self._size(order[level], blocks, order, metadata))
            sizes.append(size)
        self.count = len(paths)
        self.places = self._flat(paths, order, blocks, sizes)

    def _size(self, dimension: int, blocks: Sequence[int], order: Sequence[int], metadata: Sequence[Table]) -> int:
        """Return the size of a dimension of the stored tensor, of which the last are those of blocks."""
        rank = self._info.rank
        if dimension >= rank:
            return metadata[order.index(dimension)].integer("dense_size")
        size = self._info.shape[dimension]
        for number, axis in enumerate(blocks):
            if axis == dimension:
                size //= max(1, metadata[order.index(rank + number)].integer("dense_size"))
        return size

    def _descend(self, paths: Array, dimension: Table, size: int) -> tuple[Array, int]:
        """Return the paths with one more coordinate each."""
        if dimension.choice("format") == "DENSE":
            if dimension.integer("dense_size") != size or size < 0 or len(paths) * size > math.prod(self._info.shape):
                dimension.refuse("dense_size", f"it is {dimension.integer('dense_size')}, and the shape makes it {size}")
            repeated = np.repeat(paths, size, axis=0)
            steps = np.tile(np.arange(size), len(paths))
            return np.concatenate([repeated, steps[:, None]], axis=1), size
        segments, indices = self._vector(dimension, "array_segments"), self._vector(dimension, "array_indices")
        counts = np.diff(segments)
        if len(segments) != len(paths) + 1 or segments[0] != 0 or (counts < 0).any() or segments[-1] != len(indices):
            dimension.refuse("array_segments", f"they do not cut {len(indices)} indices into {len(paths)} rows")
        if len(indices) and (indices.min() < 0 or indices.max() >= size):
            dimension.refuse("array_indices", f"an index is not within the {size} of the dimension")
        return np.concatenate([np.repeat(paths, counts, axis=0), indices[:, None]], axis=1), size

    def _vector(self, dimension: Table, field: str) -> Array:
        found = dimension.union(field)
        if found is None:
            dimension.refuse(field, "a sparse dimension needs it")
        return found.numbers("values").astype(np.int64)

    def _flat(self, paths: Array, order: Sequence[int], blocks: Sequence[int], sizes: Sequence[int]) -> Array:
        """Return the places in the dense tensor, flattened, of elements with these coordinates."""
        shape, rank = self._info.shape, self._info.rank
        coordinates = [np.zeros(len(paths), np.int64) for _ in range(rank)]
        for axis in range(rank):
            coordinates[axis] = paths[:, order.index(axis)]
        for number, axis in enumerate(blocks):
            level = order.index(rank + number)
            coordinates[axis] = coordinates[axis] * sizes[level] + paths[:, level]
        if any((found >= size).any() for found, size in zip(coordinates, shape, strict=True)):
            self._table.refuse("block_map", f"blocks reach out of the shape {list(shape)}")
        flat = np.zeros(len(paths), np.int64)
        for found, size in zip(coordinates, shape, strict=True):
            flat = flat * size + found
        return flat


def transposed(tensor: Tensor, order: Sequence[int], shape: Sequence[int] | None = None) -> Tensor:
    """Return a constant with its axes in another order, reshaped before where a shape is given; made when it is asked for."""
    before = tuple(shape) if shape is not None else tensor.shape
    after = tuple(before[axis] for axis in order)
    return Tensor(tensor.dtype, after, _Transposed(tensor, before, tuple(order)), tensor.name)


class _Transposed(KeptSource):
    """The elements of a tensor in another order; neither is kept."""

    __slots__ = ("_array", "_order", "_shape", "_tensor")

    def __init__(self, tensor: Tensor, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
        self._tensor, self._shape, self._order = tensor, shape, order
        self._array: Callable[[], Array | None] = _nothing

    def __call__(self) -> Array:
        array = self._array()
        if array is None:
            array = np.ascontiguousarray(self._tensor.numpy().reshape(self._shape).transpose(self._order))
            self._tensor.release()
            self._array = weakref.ref(array)
        return array


def _nothing() -> None:
    """Stand for an array that is gone."""
