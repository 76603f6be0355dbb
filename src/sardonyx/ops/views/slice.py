"""Operators that take parts of tensors and put tensors together: Slice, Split, Concat, Pad."""

from typing import NamedTuple, Self

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator
from sardonyx.ops.views.axes import distinct_axes, normalize_axis
from sardonyx.ops.views.inputs import COMPUTED, Inputs, Integers, integers, no_inputs

__all__ = ["PAD_MODES", "Concat", "Pad", "ReverseSequence", "Slice", "Split"]

PAD_MODES = ("constant", "edge", "reflect", "wrap")


class Slice(NamedTuple):
    """Ranges along axes: Slice, and DynamicSlice, which had inputs before it."""

    starts: Integers
    """The first index of each range; attributes before opset 10, inputs since, as are the others."""
    ends: Integers
    """The index behind the last of each."""
    axes: Integers
    """The axes, as the node gives them; None for the first ones."""
    steps: Integers
    """The steps; None for 1."""
    takes_inputs: bool
    """Whether starts, ends, axes and steps are the inputs 1 to 4."""
    opens_backwards: bool
    """Whether the greatest integer as an end means "as far as the axis goes" backwards too, as before opset 11."""

    @classmethod
    def of(cls, node: Operator, inputs: Inputs = no_inputs) -> Self:
        """Read a node whose inputs are as `inputs` says."""
        takes_inputs = node.op_type == "DynamicSlice" or cls.takes_limits_input(node.version)
        if not takes_inputs:
            starts, ends, axes = node.integers("starts", ()), node.integers("ends", ()), node.integers("axes")
            return cls(starts, ends, axes, None, takes_inputs, opens_backwards=True)
        starts_, ends_, axes_, steps = (
            integers(node, name, inputs, k) for k, name in enumerate(("starts", "ends", "axes", "steps"), 1)
        )
        return cls(starts_, ends_, axes_, steps, takes_inputs, node.version < 11)

    @staticmethod
    def takes_limits_input(version: int) -> bool:
        """Return whether starts, ends and axes are inputs at opset `version`."""
        return version >= 10

    @property
    def length(self) -> int | None:
        """How many axes are sliced; None where that is computed."""
        lengths = (len(given) for given in (self.starts, self.ends, self.axes) if given is not None and given is not COMPUTED)
        return next(lengths, None)

    def places(self, rank: int) -> tuple[int, ...] | None:
        """Return the axes counted from the front, None where they are computed; raises InvalidGraph for one that is not there."""
        if self.axes is COMPUTED:
            return None
        if self.axes is None:
            return None if self.length is None else distinct_axes(range(self.length), rank)
        return distinct_axes(self.axes, rank)


class Split(NamedTuple):
    """A division along an axis."""

    axis: int
    """The axis, as the node gives it."""
    sizes: Integers
    """The length of each part, an attribute before opset 13, an input since; None for equal ones."""
    is_even: bool
    """Whether equal parts must be of one length, as before opset 18, rather than the last ones less."""

    @classmethod
    def of(cls, node: Operator, inputs: Inputs = no_inputs) -> Self:
        """Read a node whose inputs are as `inputs` says."""
        return cls(node.integer("axis", 0), integers(node, "split", inputs, 1), node.version < 18)

    @staticmethod
    def takes_sizes_input(version: int) -> bool:
        """Return whether the sizes are an input at opset `version`."""
        return version >= 13

    def place(self, rank: int) -> int:
        """Return the axis counted from the front; raises InvalidGraph where a tensor of `rank` lacks it."""
        return normalize_axis(self.axis, rank)


class Concat(NamedTuple):
    """Tensors one after the other along an axis."""

    axis: int
    """The axis, as the node gives it."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph where the axis is left out, which it may be before opset 4 only."""
        axis = node.integer("axis") if node.domain or node.version >= 4 else node.integer("axis", 1)
        if axis is None:
            raise InvalidGraph("axis is missing; expected the axis along which the inputs are put together")
        return cls(axis)

    def place(self, rank: int) -> int:
        """Return the axis counted from the front; raises InvalidGraph where a tensor of `rank` lacks it."""
        return normalize_axis(self.axis, rank)


class Pad(NamedTuple):
    """Elements put before and behind each axis, or taken away."""

    mode: str
    """constant, edge, reflect or wrap."""
    pads: Integers
    """How much each axis grows at its begin, then at its end; an attribute before opset 11, input 1 since."""
    axes: Integers
    """The axes that `pads` is for, as the node gives them; None for all."""
    value: float | None
    """What is put there in mode constant; None where input 2 says it, or 0 where that is left out."""
    pads_attribute: str | None
    """The attribute that holds the pads: `paddings` before opset 2, `pads` before 11; None where an input does."""

    @classmethod
    def of(cls, node: Operator, inputs: Inputs = no_inputs) -> Self:
        """Read a node whose inputs are as `inputs` says; raises InvalidGraph for an unknown mode."""
        mode = node.text("mode", "constant")
        if mode not in PAD_MODES:
            raise InvalidGraph(f"mode={mode!r}, expected one of {', '.join(PAD_MODES)}")
        if node.domain == "com.microsoft" or node.version >= 11:
            return cls(mode, integers(node, "pads", inputs, 1), integers(node, "axes", inputs, 3), None, None)
        name = "pads" if node.version >= 2 else "paddings"
        return cls(mode, node.integers(name), None, node.number("value", 0.0), name)

    def places(self, rank: int) -> tuple[int, ...] | None:
        """Return the axes counted from the front, None where they are computed; raises InvalidGraph for one that is not there."""
        if self.axes is COMPUTED:
            return None
        return tuple(range(rank)) if self.axes is None else distinct_axes(self.axes, rank)

    def by_axis(self, rank: int) -> list[tuple[int, int]] | None:
        """Return how much each axis grows at begin and end; None where that is computed.

        Raises:
            InvalidGraph: another number of pads than two for each axis.
        """
        places = self.places(rank)
        if places is None or self.pads is None or self.pads is COMPUTED:
            return None
        if len(self.pads) != 2 * len(places):
            raise InvalidGraph(f"pads has {len(self.pads)} elements for {len(places)} axes, expected {2 * len(places)}")
        found = [(0, 0)] * rank
        for number, place in enumerate(places):
            found[place] = self.pads[number], self.pads[number + len(places)]
        return found


class ReverseSequence(NamedTuple):
    """Sequences of which the first elements are turned around."""

    time_axis: int
    """Which of the first two axes counts steps; the other counts sequences."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for axes that are not the first two."""
        time, batch = node.integer("time_axis", 0), node.integer("batch_axis", 1)
        if {time, batch} != {0, 1}:
            raise InvalidGraph(f"time_axis={time} and batch_axis={batch}, expected 0 and 1 in either order")
        return cls(time)
