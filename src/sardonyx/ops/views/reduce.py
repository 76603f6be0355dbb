"""Reductions along axes, running sums, and which operators take their axes as an input."""

from typing import NamedTuple, Self

from sardonyx.ir import Operator
from sardonyx.ops.views.axes import normalize_axes, normalize_axis
from sardonyx.ops.views.inputs import COMPUTED, Computed, Inputs, listed, no_inputs

__all__ = ["REDUCTIONS", "ArgExtreme", "Cumulative", "Reduce", "takes_axes_input"]

REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)
"""The operators that `Reduce` reads."""

_AXES_INPUT_SINCE = dict.fromkeys(REDUCTIONS, 18) | dict.fromkeys(["ReduceSum", "Squeeze", "Unsqueeze"], 13)


def takes_axes_input(op_type: str, version: int) -> bool:
    """Return whether `op_type` of ai.onnx takes its axes as its second input at opset `version`, rather than as an attribute."""
    since = _AXES_INPUT_SINCE.get(op_type)
    return since is not None and version >= since


class Reduce(NamedTuple):
    """A fold over axes: ReduceSum and its like."""

    axes: tuple[int, ...] | Computed
    """The axes, as the node gives them; empty where it names none."""
    keeps_axes: bool
    """Whether the axes become 1 rather than go."""
    keeps_all: bool
    """Whether a node that names no axes reduces none, rather than all; from opset 18 on, ReduceSum from 13."""

    @classmethod
    def of(cls, node: Operator, inputs: Inputs = no_inputs) -> Self:
        """Read a node whose second input, where it has the axes, is as `inputs` says."""
        if not takes_axes_input(node.op_type, node.version):
            return cls(node.integers("axes", ()), _keeps(node), False)
        found = inputs(1)
        if found is None:
            axes: tuple[int, ...] | Computed = ()
        else:
            axes = COMPUTED if found is COMPUTED else listed(found, "axes")
        return cls(axes, _keeps(node), node.flag("noop_with_empty_axes"))

    def places(self, rank: int) -> tuple[int, ...] | None:
        """Return the axes that are reduced, counted from the front and in order, None where they are computed.

        An axis may be named twice. Raises InvalidGraph for one that a tensor of `rank` lacks.
        """
        if self.axes is COMPUTED:
            return None
        if self.axes:
            return tuple(sorted(set(normalize_axes(self.axes, rank))))
        return () if self.keeps_all else tuple(range(rank))


class ArgExtreme(NamedTuple):
    """ArgMax or ArgMin."""

    axis: int
    """The axis, as the node gives it."""
    keeps_axis: bool
    """Whether the axis becomes 1 rather than goes."""
    takes_last: bool
    """Whether of equal elements the last one counts."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.integer("axis", 0), _keeps(node), node.flag("select_last_index"))

    def place(self, rank: int) -> int:
        """Return the axis counted from the front; raises InvalidGraph where a tensor of `rank` lacks it."""
        return normalize_axis(self.axis, rank)


def _keeps(node: Operator) -> bool:
    """Return whether a node keeps its axes: only 1 does, as in ONNX Runtime and in the standard's own inference."""
    return node.integer("keepdims", 1) == 1


class Cumulative(NamedTuple):
    """CumSum or CumProd."""

    is_exclusive: bool
    """Whether an element is left out of its own result."""
    is_reversed: bool
    """Whether it goes from the end."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.flag("exclusive"), node.flag("reverse"))
