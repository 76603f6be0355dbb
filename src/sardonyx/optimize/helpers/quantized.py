"""What the rules on QuantizeLinear (Q) and DequantizeLinear (DQ) share: terms for them, and what their scales say.

    dequantized(op, x, "x")     DQ(x, x_scale, x_zero), captured as node "x/dequantize"; it may have other users
    quantized(op, y, "y")       Q(y, y_scale, y_zero), captured as node "y/quantize"

Scales and zero points must be constants. A zero point that is left out is 0 of the quantized type.
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Value
from sardonyx.ops.views.quantize import Quantization
from sardonyx.optimize.edit import small_constant, tensor_of
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.target import microsoft, standard
from sardonyx.optimize.terms import Term

__all__ = [
    "EIGHT_BITS",
    "INTEGER_OPERATORS",
    "INTEGER_PRODUCTS",
    "NO_QUANTIZATION",
    "QUANTIZATION",
    "Scale",
    "bytes_reason",
    "dequantized",
    "is_quantized",
    "limits_of",
    "quantized",
    "scale_of",
    "triple",
    "zero_point_of",
]

EIGHT_BITS = frozenset([DataType.INT8, DataType.UINT8])
"""The types that the quantized operators take."""

INTEGER_OPERATORS = standard("QLinearConv", "QLinearMatMul") | microsoft(
    "DynamicQuantizeMatMul",
    "MatMulIntegerToFloat",
    "QGemm",
    "QLinearAdd",
    "QLinearAveragePool",
    "QLinearConcat",
    "QLinearConv",
    "QLinearGlobalAveragePool",
    "QLinearLeakyRelu",
    "QLinearMul",
    "QLinearSigmoid",
    "QLinearSoftmax",
    "QLinearWhere",
)
"""The operators that compute with integers what stands as floats between DequantizeLinear and QuantizeLinear."""
INTEGER_PRODUCTS = standard("QLinearConv", "QLinearMatMul") | microsoft(
    "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QGemm", "QLinearConv"
)
"""Those among them that have weights."""
QUANTIZATION = standard("DequantizeLinear", "QuantizeLinear")
"""The operators that a provider prefers which compiles them together with the float operators between them."""
NO_QUANTIZATION = "session.disable_quant_qdq"
"""The session config entry that says "1" to leave quantized models as they are."""

_MOST_SCALES = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """How the integers of a tensor stand for numbers: (integer - zero) * scale."""

    scale: Array
    """float64, () or one per index of `axis`."""
    zero: Array
    """int64, of the shape of `scale`."""
    dtype: DataType
    """The type of the integers."""
    axis: int
    """Along which scales go, as the node says it; without meaning for one scale."""

    @property
    def is_single(self) -> bool:
        """Whether there is one scale for the whole tensor."""
        return self.scale.ndim == 0

    def equals(self, other: Scale) -> bool:
        """Return whether both say the same, and one scale for the whole tensor."""
        return (
            self.is_single
            and other.is_single
            and self.dtype is other.dtype
            and (float(self.scale) == float(other.scale) and int(self.zero) == int(other.zero))
        )


def dequantized(op: PatternBuilder, x: Term | str, name: str) -> Term:
    """Return DQ(x) with its parts captured under `name`; `x` may be the name of a constant."""
    value = op.constant(x) if isinstance(x, str) else x
    return op.DequantizeLinear(
        value, op.constant(f"{name}_scale"), op.optional_constant(f"{name}_zero"), _as=f"{name}/dequantize", _shared=True
    )


def quantized(op: PatternBuilder, y: Term, name: str) -> Term:
    """Return Q(y) with its parts captured under `name`."""
    return op.QuantizeLinear(y, op.constant(f"{name}_scale"), op.optional_constant(f"{name}_zero"), _as=f"{name}/quantize")


def scale_of(node: Node) -> Scale | None:
    """Return what a Q or DQ with constant scales says; None where they go by block, are no float32, or the type is unknown."""
    value = node.outputs[0] if node.op_type == "QuantizeLinear" else node.inputs[0]
    scale = small_constant(node.input(1), max_elements=_MOST_SCALES)
    given = node.input(2)
    zero, view = small_constant(given, max_elements=_MOST_SCALES), Quantization.of(node)
    if value is None or value.dtype is None or scale is None or scale.dtype != np.float32 or view.block:
        return None
    if scale.ndim > 1 or (given is not None and (zero is None or zero.size != scale.size)) or value.dtype not in _RANGES:
        return None
    shape = () if scale.size == 1 else scale.shape
    integers = np.zeros(shape, np.int64) if zero is None else zero.astype(np.int64).reshape(shape)
    return Scale(scale.astype(np.float64).reshape(shape), integers, value.dtype, view.axis)


def bytes_reason(match: Match, *names: str) -> str | None:
    """Return why the tensors captured under `names` are not all of 8 bits with one scale each; None where they are."""
    for name in names:
        node = match.node(f"{name}/dequantize" if match.has(f"{name}/dequantize") else f"{name}/quantize")
        scale = scale_of(node)
        if scale is None or not scale.is_single or not 0 < float(scale.scale) < np.inf:
            return f"{name} has no single scale of float32 above 0"
        if scale.dtype not in EIGHT_BITS:
            return f"{name} is {scale.dtype}, expected int8 or uint8"
    return None


def zero_point_of(op: Builder, node: Node) -> Value:
    """Return the zero point of a Q or DQ, made where it is left out."""
    given = node.input(2)
    if given is not None:
        return given
    value, scale = node.outputs[0] if node.op_type == "QuantizeLinear" else node.inputs[0], tensor_of(node.input(1))
    if value is None or value.dtype is None or scale is None:
        raise ValueError(f"{node!r} has no known type")
    return op.constant(np.zeros(scale.shape, value.dtype.numpy))


def triple(op: Builder, node: Node) -> tuple[Value, Value, Value]:
    """Return what a DQ reads: the integers, the scale and the zero point."""
    x, scale = node.inputs[0], node.inputs[1]
    if x is None or scale is None:
        raise ValueError(f"{node!r} lacks an input")
    return x, scale, zero_point_of(op, node)


def is_quantized(value: Value) -> bool:
    """Return whether all that read a value quantize it.

    A scale in front of that stays there, so that sums of integers stay exact.
    """
    users = [user for user, _ in value.uses]
    return bool(users) and all(isinstance(user, Node) and user.op_type == "QuantizeLinear" for user in users)


def limits_of(dtype: DataType) -> tuple[int, int]:
    """Return the least and the greatest integer of a quantized type; raises KeyError for another."""
    return _RANGES[dtype]


_RANGES = {
    DataType.INT2: (-2, 1),
    DataType.UINT2: (0, 3),
    DataType.INT4: (-8, 7),
    DataType.UINT4: (0, 15),
    DataType.INT8: (-128, 127),
    DataType.UINT8: (0, 255),
    DataType.INT16: (-(1 << 15), (1 << 15) - 1),
    DataType.UINT16: (0, (1 << 16) - 1),
    DataType.INT32: (-(1 << 31), (1 << 31) - 1),
}
