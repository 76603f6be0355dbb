"""Tensors from and to other packages without a copy, by DLPack.

NumPy's own DLPack has no bfloat16 and no float8. Such a tensor travels as unsigned integers of the same width: the type in the
capsule is written over before NumPy, or the other package, reads it. Source: the DLPack specification 1.1, `dlpack.h`.
"""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument

__all__ = ["from_dlpack", "is_dlpack_uint8_tensor", "to_dlpack"]

_UINT = 1
_CODES = {
    DataType.BFLOAT16: 4,
    DataType.FLOAT8E4M3FN: 10,
    DataType.FLOAT8E4M3FNUZ: 11,
    DataType.FLOAT8E5M2: 12,
    DataType.FLOAT8E5M2FNUZ: 13,
    DataType.FLOAT8E8M0: 14,
}
"""DLDataTypeCode of the types that NumPy lacks."""
_CARRIERS: dict[int, np.dtype[np.generic]] = {1: np.dtype("uint8"), 2: np.dtype("uint16")}
"""By their bytes, the integers that such types travel as."""
_CPU_DEVICES = {1, 3, 11}
"""Memory that the host reads: kDLCPU, kDLCUDAHost, kDLROCMHost."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_VERSIONED_HEAD = 8 + 2 * ctypes.sizeof(ctypes.c_void_p) + 8
"""Bytes of DLManagedTensorVersioned before its tensor: version, manager context, deleter, flags."""

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


class _Exporter(Protocol):
    """What another package's tensors have."""

    def __dlpack__(self) -> object:
        """Return a capsule."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device's type and index."""


class _Capsule:
    """A capsule in the form in which NumPy takes it."""

    def __init__(self, capsule: object, device: tuple[int, int]) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **_options: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def to_dlpack(array: Array) -> object:
    """Return a capsule named "dltensor" that shares memory with `array`, a dense array of any numeric type.

    Raises:
        InvalidArgument: DLPack has no such type: text, and types of less than a byte.
    """
    dtype = DataType.from_numpy(array.dtype)
    if dtype not in _CODES:
        _check_kind(array)
        return _writeable(array).__dlpack__()
    carrier: Array = array.view(dtype=_CARRIERS[int(array.dtype.itemsize)])
    capsule: object = _writeable(carrier).__dlpack__()
    _tensor_of(capsule).code = _CODES[dtype]
    return capsule


def from_dlpack(data: object) -> Array:
    """Return an array that shares memory with a capsule, or with what has `__dlpack__`; it must be dense and in the host's memory.

    Raises:
        TypeError: `data` is neither.
        InvalidArgument: it lies on another device, is not dense, or has a type that ONNX lacks.
    """
    if hasattr(data, "__dlpack__") and hasattr(data, "__dlpack_device__"):
        exporter: _Exporter = data
        device = exporter.__dlpack_device__()
        if device[0] not in _CPU_DEVICES:
            raise InvalidArgument(f"from_dlpack takes tensors in the host's memory, got DLPack device {device}")
        capsule = exporter.__dlpack__()
    else:
        capsule = data
    if not _capsule_name(capsule):
        raise TypeError("from_dlpack expected a valid DLPack capsule named 'dltensor'")
    return _array_of(capsule)


def is_dlpack_uint8_tensor(dlpack_tensor: object) -> bool:
    """Return whether a DLPack capsule holds bytes, which may stand for booleans; raises TypeError for what is no capsule."""
    if not _capsule_name(dlpack_tensor):
        raise TypeError("is_dlpack_uint8_tensor expected a valid DLPack capsule named 'dltensor'")
    tensor = _tensor_of(dlpack_tensor)
    return (tensor.code, tensor.bits, tensor.lanes) == (_UINT, 8, 1)


def _array_of(capsule: object) -> Array:
    tensor = _tensor_of(capsule)
    if tensor.device_type not in _CPU_DEVICES:
        raise InvalidArgument(f"from_dlpack takes tensors in the host's memory, got DLPack device {tensor.device_type}")
    narrow = next((dtype for dtype, code in _CODES.items() if code == tensor.code), None)
    if narrow is not None:
        if tensor.bits != 8 * narrow.numpy.itemsize:
            raise InvalidArgument(f"from_dlpack got a DLPack type of code {tensor.code} with {tensor.bits} bits")
        tensor.code = _UINT
    exporter: Any = _Capsule(capsule, (tensor.device_type, tensor.device_id))
    array: Array = np.from_dlpack(exporter)
    if not array.flags.c_contiguous:
        raise InvalidArgument(
            f"from_dlpack takes dense tensors in row-major order, got strides {array.strides} for shape {array.shape}"
        )
    DataType.from_numpy(array.dtype)
    if not array.flags.writeable and not _capsule_name(capsule).endswith(b"versioned") and array.nbytes:
        array = _shared(array)
    return array if narrow is None else array.view(narrow.numpy)


def _shared(array: Array) -> Array:
    """Return a writeable array of the same memory, which it keeps.

    A capsule without a version cannot say that its memory must not be written, so NumPy takes it for such; exporters give none of
    what they mean to keep.
    """
    memory: Any = (ctypes.c_byte * array.nbytes).from_address(array.ctypes.data)  # ctypes has no type that takes an attribute
    memory.owner = array
    return np.frombuffer(memory, array.dtype).reshape(array.shape)


def _capsule_name(capsule: object) -> bytes:
    return next((name for name in (b"dltensor", b"dltensor_versioned") if _is_valid(ctypes.py_object(capsule), name)), b"")


def _tensor_of(capsule: object) -> _Tensor:
    name = _capsule_name(capsule)
    address = int(_get_pointer(ctypes.py_object(capsule), name))
    return _Tensor.from_address(address + (_VERSIONED_HEAD if name.endswith(b"versioned") else 0))


def _check_kind(array: Array) -> None:
    if array.dtype.kind not in "biufc":
        raise InvalidArgument(f"DLPack has no type for tensor({DataType.from_numpy(array.dtype)})")


def _writeable(array: Array) -> Array:
    """Return a view that can be exported: NumPy gives no unversioned capsule of a read-only array."""
    return array if array.flags.writeable else array.copy()
