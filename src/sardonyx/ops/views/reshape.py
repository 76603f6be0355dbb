"""Operators that change the shape and keep the elements, or repeat them."""

from typing import NamedTuple, Self

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator
from sardonyx.ops.views.axes import normalize_axes
from sardonyx.ops.views.inputs import COMPUTED, Computed, Inputs, Integers, integers, no_inputs

__all__ = ["Blocks", "Flatten", "Reshape", "Squeeze", "Tile", "Transpose", "Unsqueeze"]


class Reshape(NamedTuple):
    """The same elements in another shape."""

    shape: Integers
    """The target: an attribute before opset 5, input 1 since."""
    keeps_zero: bool
    """Whether 0 is a size, rather than the size of the input's dimension."""
    takes_input: bool
    """Whether the target is input 1."""

    @classmethod
    def of(cls, node: Operator, inputs: Inputs = no_inputs) -> Self:
        """Read a node whose inputs are as `inputs` says."""
        if node.version < 5 and not node.domain:
            return cls(node.integers("shape", ()), False, False)
        return cls(integers(node, "shape", inputs, 1), node.flag("allowzero"), True)


class Flatten(NamedTuple):
    """Two dimensions: those before an axis, and those from it on."""

    axis: int
    """The axis, as the node gives it."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.integer("axis", 1))

    def place(self, rank: int) -> int:
        """Return the axis counted from the front, which may be `rank`; raises InvalidGraph for another."""
        if not -rank <= self.axis <= rank:
            raise InvalidGraph(f"axis={self.axis} is outside [{-rank}, {rank}] for a tensor of rank {rank}")
        return self.axis + rank if self.axis < 0 else self.axis


class Squeeze(NamedTuple):
    """Dimensions of size 1 that go."""

    axes: Integers
    """The axes, as the node gives them, an attribute before opset 13 and an input since; None for all of size 1.

    An empty list of axes counts as none, as in ONNX Runtime.
    """

    @classmethod
    def of(cls, node: Operator, inputs: Inputs = no_inputs) -> Self:
        """Read a node whose inputs are as `inputs` says."""
        return cls(integers(node, "axes", inputs, 1) or None)

    def places(self, rank: int) -> tuple[int, ...] | Computed | None:
        """Return the axes counted from the front and in order, each once; raises InvalidGraph for one that is not there."""
        if self.axes is None or self.axes is COMPUTED:
            return self.axes
        return tuple(sorted(set(normalize_axes(self.axes, rank))))


class Unsqueeze(NamedTuple):
    """Dimensions of size 1 that come."""

    axes: tuple[int, ...] | Computed
    """Their places in the output, as the node gives them; an attribute before opset 13, an input since."""

    @classmethod
    def of(cls, node: Operator, inputs: Inputs = no_inputs) -> Self:
        """Read a node whose inputs are as `inputs` says; raises InvalidGraph where there are no axes."""
        axes = integers(node, "axes", inputs, 1)
        if axes is None:
            raise InvalidGraph("axes are missing; expected the places of the new dimensions")
        return cls(axes)

    def places(self, rank: int) -> tuple[int, ...] | None:
        """Return the axes of an output of `rank`, counted from the front and in order; None where they are computed.

        Raises:
            InvalidGraph: an axis that is not there, or is named twice.
        """
        if self.axes is COMPUTED:
            return None
        found = normalize_axes(self.axes, rank)
        if len(set(found)) < len(found):
            raise InvalidGraph(f"axes={list(self.axes)} names an axis twice for an output of rank {rank}")
        return tuple(sorted(found))


class Transpose(NamedTuple):
    """Dimensions in another order."""

    permutation: tuple[int, ...] | None
    """Dimension i of the output is dimension `permutation[i]` of the input; None for the reversed order."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for what is no permutation."""
        given = node.integers("perm")
        if given is not None and sorted(given) != list(range(len(given))):
            raise InvalidGraph(f"perm={list(given)} is no order of {len(given)} axes")
        return cls(given)

    def order(self, rank: int) -> tuple[int, ...]:
        """Return the permutation of a tensor of `rank`; raises InvalidGraph where it is for another rank."""
        if self.permutation is None:
            return tuple(reversed(range(rank)))
        if len(self.permutation) != rank:
            raise InvalidGraph(f"perm={list(self.permutation)} is no order of {rank} axes")
        return self.permutation


class Tile(NamedTuple):
    """Repetition along axes."""

    is_by_axis: bool
    """Whether inputs 1 and 2 are a number of tiles and an axis, as before opset 6, rather than a number for each axis."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        return cls(node.version < 6)


class Blocks(NamedTuple):
    """DepthToSpace or SpaceToDepth."""

    size: int
    """The height and width of a block."""
    is_depth_first: bool
    """Whether the channels of an element of a block lie together (DCR), rather than the elements of a channel (CRD)."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for an unknown mode, or a block of less than one element."""
        size, mode = node.integer("blocksize"), node.text("mode", "DCR")
        if size is None or size < 1:
            raise InvalidGraph(f"blocksize={size}, expected at least 1")
        if mode not in ("DCR", "CRD"):
            raise InvalidGraph(f"mode={mode!r}, expected DCR or CRD")
        return cls(size, mode == "DCR")
