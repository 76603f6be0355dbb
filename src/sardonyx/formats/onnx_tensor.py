"""TensorProto and SparseTensorProto to constant tensors and back.

Data is checked against type and shape when it is read, and decoded when it is first asked for. Large data stays where it is: in the
model file (`wire.strip` left a key in `raw_data`) or in an external file, from which it is read when it is asked for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from sardonyx import errors
from sardonyx.config import LIMITS
from sardonyx.dtypes import Array, DataType, bit_width
from sardonyx.errors import InvalidGraph
from sardonyx.formats.elements import pack, packed_size_bytes, unpack
from sardonyx.formats.external_data import ExternalData
from sardonyx.formats.files import Content
from sardonyx.formats.onnx_text import text_of
from sardonyx.formats.protos import Message
from sardonyx.formats.stored import stored
from sardonyx.formats.wire import DOUBLE_DATA, FLOAT_DATA, Blob
from sardonyx.ir import ArrayAttribute, SparseTensor, Tensor

__all__ = ["TensorReader", "densified", "write_tensor"]

_Source: TypeAlias = Callable[[], Array]
_EXTERNAL = 1
_DATA_TYPES = {int(dtype): dtype for dtype in DataType if dtype is not DataType.UNDEFINED}
_FIELDS = {
    DataType.FLOAT: "float_data",
    DataType.COMPLEX64: "float_data",
    DataType.DOUBLE: "double_data",
    DataType.COMPLEX128: "double_data",
    DataType.INT64: "int64_data",
    DataType.UINT32: "uint64_data",
    DataType.UINT64: "uint64_data",
}
"""Type -> the field that holds its elements where `raw_data` does not; int32_data for all others but strings."""
_BLOB_TYPES = {
    FLOAT_DATA: (DataType.FLOAT, DataType.COMPLEX64),
    DOUBLE_DATA: (DataType.DOUBLE, DataType.COMPLEX128),
}
_DENSE_SPARSE_BYTES = 1 << 30
_MOST_ELEMENTS = 1 << 58
"""NumPy counts the bytes of an array, of 16 per element at most, in 63 bits, also where another dimension is 0."""


class TensorReader:
    """Reads the tensors of one model."""

    def __init__(
        self,
        content: Content,
        blobs: Mapping[bytes, Blob],
        external: ExternalData,
        lists: Mapping[bytes, ArrayAttribute] | None = None,
    ) -> None:
        """Prepare to read.

        Args:
            content: the bytes of the model that `blobs` point into.
            blobs: what `wire.strip` took out.
            external: the data files of the model.
            lists: what `wire.strip` took out of attributes that are no tensors.
        """
        self.lists = lists or {}
        self._content, self._blobs, self._external = content, blobs, external
        self._numbers = {key: number for number, key in enumerate(blobs)}
        self.placed: dict[Tensor, int | tuple[str, int, int]] = {}
        """Tensors read so far: those whose data `blobs` point to, with the number of the entry, and those with external data, with
        location, offset and length."""
        self._widths = {int(dtype): bit_width(dtype) for dtype in _DATA_TYPES.values() if dtype is not DataType.STRING}

    def read(self, proto: Message, owner: str = "initializer") -> Tensor:
        """Return the tensor that a TensorProto states.

        Raises:
            InvalidGraph: no element type, a negative dimension, or data that disagrees with type and shape.
            NotImplemented: an element type that this version does not know.
            NoSuchFile: its external data is missing.
            InvalidArgument: its external data may not be read.
        """
        number, shape, name, raw = proto.data_type, tuple(proto.dims[:]), proto.name, proto.raw_data
        if name and name.__class__ is bytes:
            text_of(name)
        dtype = _DATA_TYPES.get(number)
        if dtype is None:
            raise self._unknown_type(number, f"{owner} {name!r}")
        count = math.prod(shape)
        if shape and (min(shape) <= 0 or len(shape) > LIMITS.rank):
            _check_shape(shape, f"{owner} {name!r}")
        if raw and len(raw) * 8 == count * self._widths.get(number, 0) and raw not in self._blobs:  # what most tensors are like
            return Tensor(dtype, shape, functools.partial(unpack, raw, dtype, shape), name)
        source = self._source(proto, dtype, shape, count, raw, f"{owner} {name!r} ({dtype}{list(shape)})")
        tensor = Tensor(dtype, shape, source, name)
        place = self._external_place(proto, dtype, count) if proto.data_location == _EXTERNAL else self._numbers.get(raw)
        if place is not None:
            self.placed[tensor] = place
        return tensor

    def _unknown_type(self, number: int, what: str) -> Exception:
        if number == 0:
            return InvalidGraph(f"{what} has no element type; expected a data_type of 1 to {max(_DATA_TYPES)}")
        return errors.NotImplemented(f"{what} has the unknown element type {number}; 1 to {max(_DATA_TYPES)} are known")

    def _source(self, proto: Message, dtype: DataType, shape: tuple[int, ...], count: int, raw: bytes, what: str) -> _Source:
        if dtype is DataType.STRING:
            return self._strings(proto, shape, count, what)
        needed = packed_size_bytes(dtype, count)
        if needed > LIMITS.tensor_bytes:
            most = LIMITS.tensor_bytes
            raise InvalidGraph(f"{what} has {needed} bytes; at most {most} are allowed; raise SARDONYX_MAX_TENSOR_BYTES")
        if proto.data_location == _EXTERNAL:
            return stored(*self._external.find(_entries(proto), needed, what, text_of(proto.name)), needed, dtype, shape)
        if not raw:
            return self._typed(proto, dtype, shape, count, what)
        blob = self._blobs.get(raw)
        size_bytes = len(raw) if blob is None else blob.size_bytes
        if blob is not None:
            _check_field(blob, dtype, what)
        if size_bytes != needed:
            raise InvalidGraph(f"{what} has {size_bytes} bytes of data; its type and shape need {needed}")
        if blob is None:
            return functools.partial(unpack, raw, dtype, shape)
        return stored(self._content, blob.offset, needed, dtype, shape)

    def _external_place(self, proto: Message, dtype: DataType, count: int) -> tuple[str, int, int] | None:
        return self._external.place(_entries(proto), packed_size_bytes(dtype, count))

    def _typed(self, proto: Message, dtype: DataType, shape: tuple[int, ...], count: int, what: str) -> _Source:
        """Return elements from the field of their type; copied at once, since a message keeps the whole model alive."""
        field = _field_of(dtype)
        numbers = getattr(proto, field)[:]
        array = _from_numbers(numbers, dtype, count)
        if array is None or len(array) != count:
            raise _wrong_count(what, len(numbers) if array is None else len(array), field, count)
        return functools.partial(_same, array.reshape(shape))

    def _strings(self, proto: Message, shape: tuple[int, ...], count: int, what: str) -> _Source:
        if proto.data_location == _EXTERNAL or proto.HasField("raw_data"):
            raise InvalidGraph(f"{what} has raw or external data; strings must be in string_data")
        if len(proto.string_data) != count:
            raise InvalidGraph(f"{what} has {len(proto.string_data)} elements in string_data; its shape needs {count}")
        array = np.empty(count, object)
        array[:] = [text.decode("utf-8", "surrogateescape") for text in proto.string_data]
        return functools.partial(_same, array.reshape(shape))

    def read_sparse(self, proto: Message, owner: str = "sparse initializer") -> SparseTensor:
        """Return the sparse tensor that a SparseTensorProto states.

        Raises what `read` raises, and InvalidGraph for places outside the shape.
        """
        values, indices, shape = self.read(proto.values, owner), self.read(proto.indices, f"{owner}, indices"), tuple(proto.dims)
        what = f"{owner} {values.name!r}"
        _check_shape(shape, what)
        if len(values.shape) != 1 or indices.dtype is not DataType.INT64:
            raise InvalidGraph(f"{what}: expected values of shape [NNZ] and indices of int64, got {values} and {indices}")
        if indices.shape not in ((values.size,), (values.size, len(shape))):
            expected = f"[{values.size}] or [{values.size}, {len(shape)}]"
            raise InvalidGraph(f"{what}: its indices have the shape {list(indices.shape)}; expected {expected}")
        limits = np.array([math.prod(shape)] if len(indices.shape) == 1 else shape, np.int64)
        places = indices.numpy()
        if places.size and ((places < 0) | (places >= limits)).any():
            raise InvalidGraph(f"{what}: an index lies outside the shape")
        return SparseTensor(values, indices, shape)


def _entries(proto: Message) -> dict[str, str]:
    return {text_of(entry.key): text_of(entry.value) for entry in proto.external_data}


def _check_field(blob: Blob, dtype: DataType, what: str) -> None:
    if dtype not in _BLOB_TYPES.get(blob.field, (dtype,)):
        field = "float_data" if blob.field == FLOAT_DATA else "double_data"
        raise InvalidGraph(f"{what} has its elements in {field}; expected {_field_of(dtype)} or raw_data")


def densified(sparse: SparseTensor) -> Tensor:
    """Return the dense tensor that equals `sparse`, filled in when first asked for; raises InvalidGraph where it would be huge."""
    values = sparse.values
    size_bytes = math.prod(sparse.shape) * (8 if values.dtype is DataType.STRING else values.dtype.numpy.itemsize)
    if size_bytes > _DENSE_SPARSE_BYTES:
        raise InvalidGraph(
            f"sparse initializer {values.name!r} of shape {list(sparse.shape)} takes {size_bytes} bytes when made dense; "
            f"at most {_DENSE_SPARSE_BYTES} are allowed"
        )
    return Tensor(values.dtype, sparse.shape, functools.partial(_fill, sparse), values.name)


def _fill(sparse: SparseTensor) -> Array:
    values, indices = sparse.values.numpy(), sparse.indices.numpy()
    dense = np.zeros(sparse.shape, values.dtype) if values.dtype != object else np.full(sparse.shape, "", object)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    elif sparse.shape:
        dense[tuple(indices.T)] = values
    return dense


def write_tensor(proto: Message, tensor: Tensor, name: str) -> None:
    """State `tensor` in an empty TensorProto under `name`, its data included."""
    proto.name = name
    proto.data_type = int(tensor.dtype)
    proto.dims.extend(tensor.shape)
    if tensor.dtype is DataType.STRING:
        proto.string_data.extend(text.encode("utf-8", "surrogateescape") for text in tensor.numpy().reshape(-1))
    else:
        proto.raw_data = pack(tensor.numpy(), tensor.dtype)


def _check_shape(shape: tuple[int, ...], what: str) -> None:
    """Refuse what no array can have: too many dimensions, negative ones, or more elements than 64 bits count, zeros aside."""
    if len(shape) > LIMITS.rank or any(dim < 0 for dim in shape):
        raise InvalidGraph(f"{what} has the shape {list(shape)}; expected at most {LIMITS.rank} dimensions, none negative")
    if math.prod(dim or 1 for dim in shape) > _MOST_ELEMENTS:
        raise InvalidGraph(f"{what} has the shape {list(shape)}; dimensions other than 0 may multiply to {_MOST_ELEMENTS} at most")


def _field_of(dtype: DataType) -> str:
    return _FIELDS.get(dtype, "int32_data")


def _wrong_count(what: str, found: int, field: str, count: int) -> InvalidGraph:
    if not found:
        return InvalidGraph(f"{what} has no data; its shape needs {count} elements. Was the model saved without its weights?")
    return InvalidGraph(f"{what} has {found} elements in {field}; its shape needs {count}")


def _same(array: Array) -> Array:
    return array


def _from_numbers(numbers: Any, dtype: DataType, count: int) -> Array | None:
    """Return elements from the numbers of a typed field; None where a number does not fit the type."""
    target = dtype.numpy
    field = _FIELDS.get(dtype)
    if dtype in (DataType.COMPLEX64, DataType.COMPLEX128) and len(numbers) % 2:
        return None
    if field in ("float_data", "double_data"):
        return np.array(numbers, np.float32 if field == "float_data" else np.float64).view(target)
    if field is not None:
        return np.array(numbers, np.int64 if dtype is DataType.INT64 else np.uint64).astype(target)
    codes = np.array(numbers, np.int32)
    if dtype is DataType.INT32:
        return codes
    if dtype is DataType.BOOL:
        return codes.astype(np.bool_)
    if dtype in (DataType.FLOAT6E2M3, DataType.FLOAT6E3M2):
        return codes.astype(np.uint8).view(target)
    if bit_width(dtype) < 8:
        return unpack(codes.astype(np.uint8).tobytes(), dtype, (count,)) if len(codes) == packed_size_bytes(dtype, count) else None
    return codes.astype(f"u{target.itemsize}").view(target)
