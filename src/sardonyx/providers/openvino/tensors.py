"""Arrays as tensors and constants of OpenVINO, over the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Shape, Value
from sardonyx.providers.openvino.package import openvino_package

__all__ = ["Signature", "as_tensor", "element_type", "is_large", "share_constants", "signature_of"]

Signature = tuple[tuple[DataType, Shape], ...]
"""Element types and shapes of values."""

_LARGE_BYTES = 4096
_NAMES = {DataType.FLOAT: "f32", DataType.FLOAT16: "f16", DataType.BFLOAT16: "bf16", DataType.BOOL: "boolean"}


def is_large(value: Value) -> bool:
    """Return whether `value` is a constant that is shared with OpenVINO, not written into a model."""
    is_shared = value.dtype in (DataType.FLOAT, DataType.FLOAT16)
    return is_shared and value.constant is not None and value.constant.size_bytes >= _LARGE_BYTES


def share_constants(model: Any, weights: Sequence[Array]) -> list[Array]:
    """Put constants in the place of the last inputs of `model`, an openvino.Model; returns their memory, to be kept with it."""
    op = openvino_package().op
    kept = [_writeable(array) for array in weights]
    parameters = model.get_parameters()
    for parameter, array in zip(parameters[len(parameters) - len(kept) :], kept, strict=True):
        parameter.output(0).replace(op.Constant(array, shared_memory=True).output(0))
        model.remove_parameter(parameter)
    model.validate_nodes_and_infer_types()
    return kept


def as_tensor(array: Array) -> Any:
    """Return an openvino.Tensor over the memory of a dense `array`, which must outlive it."""
    openvino = openvino_package()
    if array.dtype == DataType.BFLOAT16.numpy:
        return openvino.Tensor(_writeable(array.view(np.uint16)), openvino.Shape(array.shape), openvino.Type.bf16)
    return openvino.Tensor(_writeable(array), shared_memory=True)


def element_type(dtype: DataType) -> str:
    """Return OpenVINO's name of an element type."""
    return _NAMES.get(dtype) or str(dtype).replace("uint", "u").replace("int", "i")


def signature_of(values: Sequence[Value]) -> Signature:
    """Return the signature of tensors whose types are known."""
    return tuple((value.dtype, value.shape) for value in values if value.dtype is not None and value.shape is not None)


def _writeable(array: Array) -> Array:
    """Return `array` as OpenVINO takes it: dense, and writeable, although it only reads what it is given to read.

    At any address.
    """
    dense = np.require(array, requirements="C")
    return dense if dense.flags.writeable else np.asarray(_Writeable(dense))


class _Writeable:
    """The memory of an array under another flag."""

    def __init__(self, array: Array) -> None:
        self._owner = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
