"""Operators that hold graphs."""

from typing import NamedTuple, Self

from sardonyx.ir import Graph, Operator

__all__ = ["Scan"]


class Scan(NamedTuple):
    """A body that runs over slices of its last inputs, carrying the others as states."""

    body: Graph | None
    """What runs; takes states and slices, and gives states and slices."""
    scan_inputs: int
    """How many inputs are scanned."""
    is_batched: bool
    """Whether a batch stands before the axis that is scanned, as before opset 9; then nothing below is said."""
    input_axes: tuple[int, ...]
    """For each scanned input the axis; empty for 0."""
    input_directions: tuple[int, ...]
    """For each scanned input whether it is read from its end; empty for no."""
    output_axes: tuple[int, ...]
    """For each scan output the axis that slices are put together along; empty for 0."""
    output_directions: tuple[int, ...]
    """For each scan output whether slices are put in front of those before; empty for no."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""
        attribute = node.attributes.get("body")
        body = attribute.value if attribute is not None and isinstance(attribute.value, Graph) else None
        names = ("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions")
        lists = [node.integers(name, ()) for name in names]
        return cls(body, node.integer("num_scan_inputs", 0), node.version < 9, *lists)
