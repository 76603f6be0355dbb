"""Tensors at addresses that a user gives."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from sardonyx import errors
from sardonyx.arguments import as_index, as_list
from sardonyx.dtypes import Array, DataType, ElementType
from sardonyx.errors import InvalidArgument
from sardonyx.values.device import OrtDevice
from sardonyx.values.mapped_memory import require_memory
from sardonyx.values.ort_value import element_type_of

__all__ = ["tensor_at"]


def tensor_at(
    address: SupportsIndex,
    element_type: ElementType,
    shape: Sequence[SupportsIndex],
    device: OrtDevice,
    owner: object = None,
    *,
    writes: bool = False,
) -> Array:
    """Return an array over memory of the host, which must be as large as the array and stay as long as that is used.

    Args:
        address: of the first element.
        element_type: a NumPy type (anything that np.dtype takes) or a number of TensorProto.DataType.
        shape: the sizes; elements lie densely, row by row.
        device: the CPU.
        owner: what owns the memory; kept as long as the array.
        writes: whether the memory is to be written.

    Raises:
        InvalidArgument: the process has no memory there as far as the system says, a size is negative, or the type is text or of
            less than a byte.
        NotImplemented: the device is not the CPU.
    """
    if not device.is_cpu:
        raise errors.NotImplemented(f"memory at an address lies on the CPU; {device} is not supported")
    dtype, start = element_type_of(element_type), as_index("buffer_ptr", address)
    sizes = tuple(as_index("shape", size) for size in as_list("shape", shape))
    if any(size < 0 for size in sizes):
        raise InvalidArgument(f"a shape has no negative size, got {sizes}")
    if dtype in (DataType.STRING, DataType.INT4, DataType.UINT4, DataType.INT2, DataType.UINT2, DataType.FLOAT4E2M1):
        raise InvalidArgument(
            f"Only binding non-string Tensors is supported: memory at an address holds whole bytes of numbers, got tensor({dtype})"
        )
    count = math.prod(sizes)
    if count == 0:
        return np.empty(sizes, dtype.numpy)
    require_memory(start, count * dtype.numpy.itemsize, writes=writes)
    buffer = (ctypes.c_uint8 * (count * dtype.numpy.itemsize)).from_address(start)
    buffer._owner = owner  # type: ignore[attr-defined]  # ctypes arrays take attributes; this one keeps the owner alive
    array: Array = np.frombuffer(memoryview(buffer), dtype.numpy).reshape(sizes)
    return array
