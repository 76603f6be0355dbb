"""Normalizations."""

from typing import NamedTuple, Self

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Node, Operator
from sardonyx.ops.views.axes import distinct_axes, normalize_axis

__all__ = [
    "BatchNormalization",
    "GroupNormalization",
    "LayerNormalization",
    "LpNormalization",
    "Lrn",
    "MeanVariance",
    "epsilon_of",
    "trains",
]

_EPSILON = 1e-5
_FLOAT = int(DataType.FLOAT)


def epsilon_of(node: Operator) -> float:
    """Return what a normalization adds to the variance."""
    return node.number("epsilon", _EPSILON)


class BatchNormalization(NamedTuple):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, with statistics that are given, or in training those of the batch."""

    epsilon: float
    """What is added to the variance."""
    momentum: float
    """How much of the running statistics stays in training."""
    is_training: bool
    """Whether the attributes say that the statistics are those of the batch: `is_test` before opset 7, `training_mode` since 14."""
    trains_by_outputs: bool
    """Whether the node trains where its further outputs are there, as from opset 7 to 13."""
    is_per_channel: bool
    """Whether statistics are for each channel, (C,), rather than each activation, (C, …), as `spatial` may say before opset 9."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        if node.version < 7:
            is_training = not node.flag("is_test")
        else:
            is_training = node.version >= 14 and node.flag("training_mode")
        is_per_channel = node.version >= 9 or node.flag("spatial", True)
        return cls(epsilon_of(node), node.number("momentum", 0.9), is_training, 7 <= node.version < 14, is_per_channel)


def trains(node: Node) -> bool:
    """Return whether a BatchNormalization normalizes by the statistics of the batch.

    From opset 7 to 13 it does where further outputs are listed, whether anything reads them or not, as in ONNX Runtime.
    """
    view = BatchNormalization.of(node)
    return view.is_training or (view.trains_by_outputs and any(value.name or value.use_count for value in node.outputs[1:]))


class GroupNormalization(NamedTuple):
    """A normalization of each group of channels."""

    groups: int
    """How many groups there are."""
    epsilon: float
    """What is added to the variance."""
    scales_channels: bool
    """Whether scale and bias have a number for each channel, as from opset 21 on, rather than for each group."""
    stash_type: int
    """The data type of the statistics; that of the input before opset 21."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph where the number of groups is left out or below 1."""
        groups = node.integer("num_groups")
        if groups is None or groups < 1:
            raise InvalidGraph(f"num_groups={groups}, expected at least 1")
        return cls(groups, epsilon_of(node), node.version >= 21, node.integer("stash_type", _FLOAT))


class LayerNormalization(NamedTuple):
    """A normalization over the last axes: LayerNormalization, RMSNormalization, SimplifiedLayerNormalization."""

    axis: int
    """The first of them, as the node gives it."""
    epsilon: float
    """What is added to the variance, or to the mean square."""
    stash_type: int
    """The data type of the statistics."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.integer("axis", -1), epsilon_of(node), node.integer("stash_type", _FLOAT))

    def first(self, rank: int) -> int:
        """Return the first axis, counted from the front; raises InvalidGraph where a tensor of `rank` lacks it."""
        return normalize_axis(self.axis, rank)

    @property
    def stashes_float(self) -> bool:
        """Whether the statistics are float32."""
        return self.stash_type == _FLOAT


class LpNormalization(NamedTuple):
    """A division by the norm along an axis."""

    axis: int
    """The axis, as the node gives it."""
    order: int
    """1 or 2."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for another norm than 1 and 2."""
        order = node.integer("p", 2)
        if order not in (1, 2):
            raise InvalidGraph(f"p={order}, expected 1 or 2")
        return cls(node.integer("axis", -1), order)


class Lrn(NamedTuple):
    """Elements divided by a power of their neighbours in other channels."""

    size: int
    """How many channels count, with the element's own."""
    alpha: float
    """The factor of their mean square."""
    beta: float
    """The power."""
    bias: float
    """What is added before."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for a size below 1."""
        size = node.integer("size", 0)
        if size < 1:
            raise InvalidGraph(f"size={size}, expected 1 or more")
        return cls(size, node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1.0))


class MeanVariance(NamedTuple):
    """A normalization by mean and deviation: MeanVarianceNormalization."""

    axes: tuple[int, ...]
    """Those that they are taken over, as the node gives them."""
    divides: bool
    """Whether the deviation is divided by; before opset 9 `normalize_variance` says so."""
    leaves_out_axes: bool
    """Whether axes that the input does not have are passed over: those of a default, as in ONNX Runtime."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        if node.version < 9:
            axes = (0, 1, 2, 3) if node.flag("across_channels") else (0, 2, 3)
            return cls(axes, node.flag("normalize_variance", True), True)
        given = node.integers("axes")
        return cls((0, 2, 3) if given is None else given, True, given is None)

    def axes_of(self, rank: int) -> tuple[int, ...]:
        """Return the axes of an input of this rank; raises InvalidGraph for one that is not there, or given twice."""
        return distinct_axes([axis for axis in self.axes if axis < rank or not self.leaves_out_axes], rank)
