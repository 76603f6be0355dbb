"""What ONNX Runtime has CPU kernels for, where files are written that it loads as they are.

It infers, inlines and casts nothing of a file in its own format; what it would do to an ONNX file is done before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Node
from sardonyx.provider import HOST, Body, Capability, Claims, GraphView, Layout, Memory, Partition

__all__ = ["WITHOUT_KERNELS", "PeerKernels"]

WITHOUT_KERNELS = frozenset(
    "CastLike CausalConvWithState CenterCropPad FlexAttention GroupNormalization HardSwish LinearAttention Mish "
    "NegativeLogLikelihoodLoss ReduceLogSum ReduceLogSumExp SequenceMap SoftmaxCrossEntropyLoss SwiGLU Swish".split()
)
"""Operators of the standard that ONNX Runtime 1.32 has no kernels for, but their function bodies; measured by what it saves."""
_ON_NARROW_FLOATS = frozenset(
    "Cast Concat Flatten Gather Identity If Loop Reshape Scan Shape Size Slice Squeeze Transpose Unsqueeze".split()
)
"""Operators whose kernels take float16 and bfloat16: those that move elements."""
_NARROW = (DataType.FLOAT16, DataType.BFLOAT16)


class PeerKernels:
    """A provider that claims what ONNX Runtime's CPU provider runs, so that the rest is widened for it; it runs nothing itself."""

    name = "ONNX Runtime's CPU provider"
    preferred_layout = Layout.NCHW
    memory: Memory = HOST

    def capabilities(self, view: GraphView) -> Claims:
        """Claim every node but those on narrow floats that do more than move elements."""
        able = [node for node in view.nodes if node.op_type in _ON_NARROW_FLOATS or not _is_narrow(node)]
        claimed = set(able)
        return Claims(
            [Capability((node,)) for node in able],
            {node: "it has no kernel for narrow floats" for node in view.nodes if node not in claimed},
        )

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> NoReturn:
        """Refuse: it is asked for claims only."""
        raise NotImplementedError(f"{self.name} compiles nothing of {partition.name}")


def _is_narrow(node: Node) -> bool:
    return any(value is not None and value.dtype in _NARROW for value in (*node.inputs, *node.outputs))
