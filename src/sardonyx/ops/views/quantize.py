"""Quantization with a scale and a zero point."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from sardonyx.ir import Operator
from sardonyx.ops.views.axes import normalize_axis

__all__ = ["BNB4_VALUES", "BY_AXIS_SINCE", "Quantization", "takes_bytes"]

BY_AXIS_SINCE = 13
"""The opset version from which on a scale for each index of an axis is possible."""

_BYTES_SINCE = {"ArgMax": 13, "ArgMin": 13, "MaxPool": 12, "Pad": 13, "ReduceMax": 13, "ReduceMin": 13}
"""Operator of ai.onnx -> the opset version from which on runtimes take integers of 8 bits, where that is not its first."""


def takes_bytes(node: Operator) -> bool:
    """Return whether an operator that takes numbers of any kind takes integers of 8 bits at the node's version."""
    return node.version >= _BYTES_SINCE.get(node.op_type, 1)


class Quantization(NamedTuple):
    """QuantizeLinear or DequantizeLinear."""

    axis: int
    """The axis along which scales change, where there are several; as the node gives it."""
    names_axis: bool
    """Whether the node gives the axis."""
    block: int
    """How many elements along the axis have one scale; 0 for one scale for each index."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        axis = node.integer("axis")
        return cls(1 if axis is None else axis, axis is not None, node.integer("block_size", 0))

    def place(self, rank: int) -> int:
        """Return the axis counted from the front; raises InvalidGraph where a tensor of `rank` lacks it."""
        return normalize_axis(self.axis, rank)


_FP4_MAGNITUDES = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
"""Values of the codes 0 to 7; codes 8 to 15 are their negatives. Source: bitsandbytes, FP4."""

_NF4 = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)
"""Quantiles of the normal distribution. Source: QLoRA, arXiv:2305.14314, appendix E."""

BNB4_VALUES: Mapping[int, tuple[float, ...]] = {0: (*_FP4_MAGNITUDES, *(-value for value in _FP4_MAGNITUDES)), 1: _NF4}
"""`quant_type` of MatMulBnb4 -> what its 16 codes stand for: FP4 and NF4. Source: com.microsoft MatMulBnb4."""
