"""`OrtValue`: a tensor, sparse tensor, sequence, map or optional of the host, as sessions take and return it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import numpy as np

from sardonyx import errors
from sardonyx.arguments import as_index, as_list, instance
from sardonyx.dtypes import Array, DataType, ElementType, OnnxValue, bit_width
from sardonyx.errors import InvalidArgument, RuntimeException
from sardonyx.ir import MapType, OptionalType, SequenceType, SparseTensorType, TensorType, ValueType
from sardonyx.values.device import CPU, OrtDevice, device_of
from sardonyx.values.dlpack import from_dlpack, to_dlpack
from sardonyx.values.memory_info import OrtMemoryInfo
from sardonyx.values.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["OrtValue", "copy_tensors", "element_type_of"]

_FLOAT8 = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0")


class OrtValue:
    """A value in the host's memory; arrays are shared, not copied, where they are dense."""

    __slots__ = ("__weakref__", "_type", "_value")

    _type: ValueType | None
    _value: Any
    """An array, a list, a dict, a SparseTensor or None: the kinds of ONNX values, hence Any."""

    def __init__(self, ortvalue: OrtValue, numpy_obj: Array | None = None) -> None:
        """Share what another value holds; `numpy_obj` is accepted as onnxruntime accepts it, and not needed.

        Raises:
            InvalidArgument: `ortvalue` is no OrtValue.
        """
        if not isinstance(ortvalue, OrtValue):
            raise InvalidArgument(
                f"OrtValue takes an OrtValue, got {type(ortvalue).__name__}; make one of an array with OrtValue.ortvalue_from_numpy"
            )
        self._type, self._value = ortvalue._type, ortvalue._value

    @classmethod
    def of(cls, value: OnnxValue, kind: ValueType | None = None) -> OrtValue:
        """Make a value of an array, list, dict, SparseTensor or None (Any: the kinds of ONNX values); nothing dense is copied.

        Args:
            value: what it holds; arrays keep their memory where they are dense.
            kind: its ONNX type; found from the value where None.
        """
        made = cls.__new__(cls)
        made._value = _dense(value) if isinstance(value, np.ndarray) else value
        made._type = kind if kind is not None else _type_of(made._value)
        return made

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, /, device_type: str | OrtDevice = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Make a tensor that shares the memory of `numpy_obj`, an array of any shape, text included; what is not dense is copied.

        Raises:
            InvalidArgument: `numpy_obj` is no array, or of a type that ONNX lacks.
            NotImplemented: the device is not the CPU.
        """
        _check_cpu(device_of(device_type, device_id, vendor_id))
        if not isinstance(numpy_obj, np.ndarray):
            raise InvalidArgument(f"ortvalue_from_numpy takes an array, got {type(numpy_obj).__name__}")
        return cls.of(numpy_obj)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: SupportsIndex) -> OrtValue:
        """Make a tensor of the bits of `data` as another type of the same width, such as bfloat16 of uint16.

        Types of 4 and 2 bits take the first bytes of `data`, the low bits first, as files hold them; these are copied.

        Raises:
            InvalidArgument: the type is unknown, or of another width than the elements of `data`.
        """
        dtype = element_type_of(as_index("onnx_element_type", onnx_element_type))
        given: object = data
        if not isinstance(given, np.ndarray) or given.dtype.hasobject:
            raise InvalidArgument(f"ortvalue_from_numpy_with_onnx_type takes an array of numbers, got {type(data).__name__}")
        if dtype is DataType.STRING:
            raise InvalidArgument("ortvalue_from_numpy_with_onnx_type cannot make text of numbers")
        width = bit_width(dtype)
        if data.dtype == dtype.numpy:
            return cls.of(data)
        if width < 8 and data.dtype.itemsize == 1:
            return cls.of(_unpacked(data, dtype, width))
        if 8 * data.dtype.itemsize != width:
            raise InvalidArgument(
                f"Items size in the incoming array: {data.dtype.itemsize} specified by onnxtype: {max(width // 8, 1)}; the "
                f"elements of tensor({dtype}) {f'have {width // 8} bytes' if width >= 8 else f'lie in bytes, {8 // width} in each'}"
            )
        return cls.of(np.ascontiguousarray(data).view(dtype.numpy).reshape(data.shape))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[SupportsIndex],
        element_type: ElementType,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:
        """Make a tensor of `shape` whose content is left open.

        Args:
            shape: its sizes.
            element_type: a NumPy type (anything that np.dtype takes), or a number of TensorProto.DataType.
            device_type: "cpu" or an OrtDevice.
            device_id: the index of the device.
            vendor_id: the maker of the device; -1 for the one that the name implies.
            memory_info: memory of the host; takes the place of the device.

        Raises:
            InvalidArgument: a size is negative or too large, or the type unknown.
            NotImplemented: the device is not the CPU.
        """
        sizes = tuple(as_index("shape", size) for size in as_list("shape", shape))
        if memory_info is None:
            _check_cpu(device_of(device_type, device_id, vendor_id))
        elif not getattr(memory_info, "is_cpu", False):
            raise _no_device(memory_info)
        if any(size < 0 for size in sizes):
            raise InvalidArgument(f"a shape has no negative size, got {sizes}")
        dtype = element_type_of(element_type)
        try:
            return cls.of(np.empty(sizes, dtype.numpy) if dtype is not DataType.STRING else np.full(sizes, "", object))
        except (ValueError, MemoryError, OverflowError) as error:
            raise InvalidArgument(f"no tensor({dtype}) of shape {sizes} can be allocated: {error}") from error

    @classmethod
    def ortvalue_from_shape_and_onnx_type(
        cls, shape: Sequence[SupportsIndex], onnx_type: SupportsIndex, device: OrtDevice
    ) -> OrtValue:
        """Create as `ortvalue_from_shape_and_type`, on a device."""
        return cls.ortvalue_from_shape_and_type(shape, onnx_type, device)

    @classmethod
    def ortvalue_from_shape_and_type_for_memory_info(
        cls, shape: Sequence[SupportsIndex], element_type: ElementType, memory_info: OrtMemoryInfo
    ) -> OrtValue:
        """Create as `ortvalue_from_shape_and_type`, in memory that is described."""
        return cls.ortvalue_from_shape_and_type(shape, element_type, memory_info=memory_info)

    ortvalue_from_shape_and_onnx_type_for_memory_info = ortvalue_from_shape_and_type_for_memory_info

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> OrtValue:
        """Make a value that shares a sparse tensor."""
        if not isinstance(sparse_tensor, SparseTensor):
            raise InvalidArgument(f"ort_value_from_sparse_tensor takes a SparseTensor, got {type(sparse_tensor).__name__}")
        return cls.of(sparse_tensor)

    @classmethod
    def from_dlpack(cls, data: object, /, is_bool_tensor: bool = False) -> OrtValue:
        """Make a tensor that shares the memory of another package's, or of a DLPack capsule.

        Args:
            data: an object with `__dlpack__`, or a capsule.
            is_bool_tensor: whether bytes are booleans, as exporters write them that know no type for these.

        Raises:
            TypeError: `data` has no `__dlpack__` and is no capsule.
            InvalidArgument: it is not dense, on another device, or of a type that ONNX lacks.
        """
        array = from_dlpack(data)
        return cls.of(array.view(np.bool_) if is_bool_tensor and array.dtype == np.uint8 else array)

    @property
    def value(self) -> Any:
        """The array, list, dict, SparseTensor or None that it holds, as it is (Any: the kinds of ONNX values)."""
        return self._value

    @property
    def onnx_type(self) -> ValueType | None:
        """Its ONNX type; None where it holds nothing and none was given."""
        return self._type

    def numpy(self) -> Array:
        """Return the tensor as an array that shares its memory; float8 as uint8, which is what onnxruntime gives.

        Raises:
            RuntimeException: it is no tensor.
        """
        array = self._tensor("numpy")
        return array.view(np.uint8) if str(DataType.from_numpy(array.dtype)) in _FLOAT8 else array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the tensor for NumPy, whose protocol names the arguments."""
        array = self._tensor("__array__")
        if dtype is not None and array.dtype != np.dtype(dtype):
            if copy is False:
                raise ValueError(f"a tensor of {array.dtype} cannot be seen as {np.dtype(dtype)} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: object = None, **_options: object) -> object:
        """Return a DLPack capsule that shares the tensor's memory; the options of later versions of DLPack are passed over."""
        return to_dlpack(self._tensor("__dlpack__"))

    def to_dlpack(self) -> object:
        """Return a DLPack capsule that shares the tensor's memory."""
        return to_dlpack(self._tensor("to_dlpack"))

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's number of the CPU, and 0."""
        return 1, 0

    def as_sparse_tensor(self) -> SparseTensor:
        """Return the sparse tensor; raises InvalidArgument where it holds none."""
        if not isinstance(self._value, SparseTensor):
            raise InvalidArgument(f"this OrtValue holds no sparse tensor; its type is {self.data_type()}")
        return self._value

    def update_inplace(self, data: Array | OrtValue) -> None:
        """Copy an array, or another tensor, into the tensor's memory: as many bytes, of any type.

        Raises:
            InvalidArgument: the sizes differ, or the memory is read-only.
        """
        target = self._tensor("update_inplace")
        source = data._tensor("update_inplace") if isinstance(data, OrtValue) else data
        if not isinstance(source, np.ndarray):
            raise TypeError(f"update_inplace takes an array or an OrtValue, got {type(data).__name__}")
        if source.nbytes != target.nbytes or source.dtype.hasobject != target.dtype.hasobject:
            raise InvalidArgument(
                "The input size of numpy arrays does not match the size of the OrtValue: "
                f"{source.dtype} {source.shape} against {target.dtype} {target.shape}"
            )
        if not target.flags.writeable:
            raise InvalidArgument("the memory of this OrtValue is read-only")
        dense = np.ascontiguousarray(source)
        target[...] = (dense if dense.dtype == target.dtype else dense.view(target.dtype)).reshape(target.shape)

    def data_ptr(self) -> int:
        """Return the address of the tensor's first element."""
        array = self._tensor("data_ptr")
        if array.dtype.hasobject:
            raise InvalidArgument("a tensor of text has no address: its elements are Python objects")
        return int(array.ctypes.data)

    def device_name(self) -> str:
        """Return "cpu"."""
        return CPU.name

    def shape(self) -> list[int]:
        """Return the sizes of the tensor, or of the dense tensor of a sparse one; raises RuntimeException for other values."""
        if isinstance(self._value, SparseTensor):
            return self._value.dense_shape()
        return list(self._tensor("shape").shape)

    def data_type(self) -> str:
        """Return the type as ONNX writes it, such as "tensor(float)" or "seq(tensor(int64))"."""
        return str(self._type or "")

    def element_type(self) -> int:
        """Return the number of the element type in TensorProto.DataType, of a tensor or a sequence of tensors.

        Raises:
            RuntimeException: the value is something else.
        """
        if isinstance(self._type, SequenceType) and isinstance(self._type.element, TensorType):
            return int(self._type.element.dtype)
        if isinstance(self._value, SparseTensor):
            return int(DataType.from_numpy(self._value.values().dtype))
        return int(DataType.from_numpy(self._tensor("element_type").dtype))

    def tensor_size_in_bytes(self) -> int:
        """Return how many bytes the tensor takes as onnxruntime stores it: two elements of 4 bits in one."""
        array = self._tensor("tensor_size_in_bytes")
        if array.dtype.hasobject:
            raise InvalidArgument("a tensor of text has no size in bytes")
        return math.ceil(array.size * bit_width(DataType.from_numpy(array.dtype)) / 8)

    def has_value(self) -> bool:
        """Return whether it holds something; an empty optional does not."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Return whether it holds a dense tensor."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Return whether it holds a sparse tensor."""
        return isinstance(self._value, SparseTensor)

    def is_tensor_sequence(self) -> bool:
        """Return whether it holds a sequence."""
        return isinstance(self._value, list)

    @property
    def _ortvalue(self) -> OrtValue:
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    def _tensor(self, asked: str) -> Array:
        if not isinstance(self._value, np.ndarray):
            raise RuntimeException(
                f"OrtValue.{asked}: only OrtValues that are Tensors have it; this one is {self.data_type() or 'empty'}"
            )
        return self._value

    def __repr__(self) -> str:
        sizes = f" {self.shape()}" if self.is_tensor() or self.is_sparse_tensor() else ""
        return f"<OrtValue {self.data_type() or 'empty'}{sizes}>"


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: object = None) -> None:
    """Copy each tensor of `src` into the memory of the one of `dst` at its place; there are no streams on the CPU.

    Raises:
        InvalidArgument: there are not as many of both, or sizes differ.
    """
    src, dst = as_list("src", src), as_list("dst", dst)
    for name, values in (("src", src), ("dst", dst)):
        for value in values:
            instance(name, value, OrtValue, "a list of OrtValues")
    if len(src) != len(dst):
        raise InvalidArgument(f"Invalid arguments provided to CopyTensors: {len(src)} sources for {len(dst)} destinations")
    for source, target in zip(src, dst, strict=True):
        target.update_inplace(source)


def element_type_of(given: ElementType) -> DataType:
    """Return an element type given as a number of TensorProto.DataType or as anything that np.dtype takes.

    Raises:
        InvalidArgument: ONNX has no such type.
    """
    try:
        if given is None:  # which NumPy takes for float64
            raise TypeError
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            found = DataType(int(given))
            found.numpy  # noqa: B018  raises for UNDEFINED
            return found
        return DataType.from_numpy(np.dtype(cast("DTypeLike", given)))
    except (TypeError, ValueError, KeyError) as error:
        raise InvalidArgument(f"element_type is a NumPy type or a number of TensorProto.DataType, got {given!r}") from error


def _type_of(value: OnnxValue) -> ValueType | None:
    if isinstance(value, np.ndarray):
        try:
            return TensorType(DataType.from_numpy(value.dtype), value.shape)
        except KeyError as error:
            raise InvalidArgument(f"ONNX has no type for an array of {value.dtype}") from error
    if isinstance(value, SparseTensor):
        return SparseTensorType(DataType.from_numpy(value.values().dtype), tuple(value.dense_shape()))
    if isinstance(value, (list, tuple)):
        return SequenceType(_type_of(value[0]) if value else None)
    if isinstance(value, Mapping):
        return _map_type(value)
    if value is None:
        return OptionalType(None)
    raise InvalidArgument(f"an OrtValue holds an array, a sparse tensor, a list, a dict or None, got {type(value).__name__}")


def _map_type(value: Mapping[OnnxValue, OnnxValue]) -> MapType:
    key = next(iter(value), 0)
    first = next(iter(value.values()), np.zeros((), np.float32))
    item = first if isinstance(first, (np.ndarray, list, dict)) else np.asarray(first, np.float32 if type(first) is float else None)
    return MapType(DataType.STRING if isinstance(key, str) else DataType.INT64, _type_of(item))


def _dense(array: Array) -> Array:
    """Return the array as sessions take it: in native byte order and row-major; text as Python strings.

    Raises InvalidArgument where no memory holds a copy: an array whose elements repeat may be larger than any machine's.
    """
    if array.dtype.kind in "SUT":
        flat = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
        return np.array(flat, dtype=object).reshape(array.shape)
    try:
        native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        return native if native.flags.c_contiguous else np.ascontiguousarray(native).reshape(native.shape)
    except (MemoryError, ValueError) as error:
        raise InvalidArgument(f"no array of {array.dtype}{list(array.shape)} can be allocated: {error}") from error


def _unpacked(data: Array, dtype: DataType, width: int) -> Array:
    per_byte = 8 // width
    packed = np.ascontiguousarray(data).view(np.uint8).reshape(-1)[: math.ceil(data.size / per_byte)]
    parts = np.stack([(packed >> (width * place)) & ((1 << width) - 1) for place in range(per_byte)], axis=-1)
    bits = parts.reshape(-1)[: data.size].astype(np.uint8)
    if dtype in (DataType.INT4, DataType.INT2):
        shift = 8 - width
        bits = ((bits << shift).view(np.int8) >> shift).view(np.uint8)
        return bits.view(np.int8).astype(dtype.numpy).reshape(data.shape)
    return (
        bits.view(dtype.numpy).reshape(data.shape) if dtype is DataType.FLOAT4E2M1 else bits.astype(dtype.numpy).reshape(data.shape)
    )


def _check_cpu(device: OrtDevice) -> None:
    if not device.is_cpu:
        raise _no_device(device)


def _no_device(device: OrtDevice | OrtMemoryInfo) -> errors.NotImplemented:
    return errors.NotImplemented(
        f"Can't allocate memory on {device}: No shared allocator found; no provider of this build has memory that an OrtValue can "
        "lie in but the CPU's"
    )
