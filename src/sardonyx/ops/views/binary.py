"""Element-wise operators of several inputs, and how these are broadcast."""

from typing import NamedTuple, Self

from sardonyx.ir import Operator

__all__ = ["Broadcast"]

_BROADCASTS_SINCE = {"Max": 8, "Mean": 8, "Min": 8, "Sum": 8}
"""The opset version from which on an operator of ai.onnx broadcasts as NumPy does, where it is not 7 or its first."""


class Broadcast(NamedTuple):
    """How the inputs of an element-wise operator meet."""

    is_numpy: bool
    """Whether inputs are broadcast as NumPy does: from opset 7 on, 8 for Max, Mean, Min and Sum."""
    is_legacy: bool
    """Whether the second input is stretched along the axes that it lacks, as the attribute `broadcast` asks for before opset 7."""
    axis: int | None
    """The axis of the first input at which the second one begins then; None where its axes are the last ones."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; operators of other domains are taken to broadcast as NumPy does."""
        is_numpy = bool(node.domain) or node.version >= _BROADCASTS_SINCE.get(node.op_type, 7)
        return cls(is_numpy, not is_numpy and node.flag("broadcast"), None if is_numpy else node.integer("axis"))
