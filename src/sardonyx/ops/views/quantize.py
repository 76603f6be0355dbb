"""Quantization with a scale and a zero point."""

from typing import NamedTuple, Self

from sardonyx.ir import Operator
from sardonyx.ops.views.axes import normalize_axis

__all__ = ["BY_AXIS_SINCE", "Quantization", "takes_bytes"]

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
