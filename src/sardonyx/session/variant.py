"""Variants of a model that a session builds besides the one that its file says."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sardonyx.ir import Model, TensorType
from sardonyx.ir.shape import anonymous
from sardonyx.ir.walk import all_graphs

__all__ = ["Variant"]


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """In what a variant differs from the file."""

    symbols_hold: bool = True
    """Whether dimensions of one name are one size, as the standard says; where an exporter did not keep to it, all names are
    forgotten."""
    outputs: Sequence[str] | None = None
    """The outputs that it has, in the order of the file; None for all."""

    def apply(self, model: Model) -> None:
        """Change `model`, as it was read."""
        if not self.symbols_hold:
            _forget_symbols(model)
        if self.outputs is not None:
            kept = [value for value in model.graph.outputs if value.name in self.outputs]
            model.graph.clear_outputs()
            for value in kept:
                model.graph.add_output(value)


def _forget_symbols(model: Model) -> None:
    """Let each symbolic dimension of an input be a size of its own, and infer all other shapes anew."""
    for value in model.graph.inputs:
        if isinstance(value.type, TensorType) and value.shape is not None:
            value.type = TensorType(value.type.dtype, tuple(dim if isinstance(dim, int) else anonymous() for dim in value.shape))
    for graph in all_graphs(model):
        for value in (value for node in graph for value in node.outputs):
            if isinstance(value.type, TensorType):
                value.type = TensorType(value.type.dtype)
