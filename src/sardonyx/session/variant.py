"""Variants of a model that a session builds besides the one that its file says."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.forks import without_fork
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
    """The values that it gives out, in this order: outputs of the file, or any others; None for the outputs of the file."""
    has_zero_sizes: bool = False
    """Whether sizes that are computed for a Reshape may be 0, as `ops/zero_sizes.py` says."""

    def apply(self, model: Model) -> None:
        """Change `model`, as it was read; raises InvalidArgument for a name that no value has."""
        if not self.symbols_hold:
            _forget_symbols(model)
        if self.outputs is not None:
            with without_fork():
                from sardonyx.session.named_values import find_values  # which few sessions need

            wanted = find_values(model, self.outputs)
            model.graph.clear_outputs()
            for value in wanted:
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
