"""Types by their numbers in onnx.TensorProto: the tables of `onnxruntime.quantization.quant_utils`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.quantization.kinds import LIMITS, QuantType, limits_of

__all__ = [
    "FLOAT8_TYPES",
    "MODEL_SIZE_THRESHOLD",
    "ONNX_INT_TYPE_RANGE",
    "ONNX_INT_TYPE_REDUCED_RANGE",
    "ONNX_INT_TYPE_SYMMETRIC_RANGE",
    "ONNX_TYPE_TO_NP_TYPE",
    "type_to_name",
]

MODEL_SIZE_THRESHOLD = 1 << 31
"""The bytes that a protobuf message cannot reach: larger models have their weights in another file."""
FLOAT8_TYPES = tuple(
    int(dtype) for dtype in (DataType.FLOAT8E4M3FN, DataType.FLOAT8E4M3FNUZ, DataType.FLOAT8E5M2, DataType.FLOAT8E5M2FNUZ)
)
"""The numbers of the types of eight bits that are floats."""
type_to_name: Mapping[int, str] = {int(dtype): dtype.name for dtype in DataType}
"""Number -> name, such as 3 -> INT8."""
ONNX_TYPE_TO_NP_TYPE: Mapping[int, np.dtype[np.generic]] = {
    kind.tensor_type: DataType(kind.tensor_type).numpy for kind in QuantType
}
"""Number of a type of codes -> the NumPy type that holds them."""
_CODES = [dtype for dtype in LIMITS if dtype is not DataType.INT32]


def _ranges(*, reduced: bool = False, symmetric: bool = False) -> dict[int, tuple[Array, Array]]:
    """Return for each type of codes the ends that `limits_of` says, as scalars of it."""
    found = {}
    for dtype in _CODES:
        low, high = (
            np.asarray(end, np.int64).astype(dtype.numpy) for end in limits_of(dtype, reduced=reduced, symmetric=symmetric)
        )
        found[int(dtype)] = (low, high)
    return found


ONNX_INT_TYPE_RANGE: Mapping[int, tuple[Array, Array]] = _ranges()
"""Number of a type of codes -> its least and its greatest one."""
ONNX_INT_TYPE_REDUCED_RANGE: Mapping[int, tuple[Array, Array]] = _ranges(reduced=True)
"""The same where a bit is left unused."""
ONNX_INT_TYPE_SYMMETRIC_RANGE: Mapping[int, tuple[Array, Array]] = {
    number: ends for number, ends in _ranges(symmetric=True).items() if number in (int(DataType.INT8), int(DataType.INT16))
}
"""The same, of the types whose least code is left unused where 0 is in the middle."""
