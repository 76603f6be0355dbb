"""Give symbolic dimensions the sizes that a user fixes them to."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Model, TensorType, Value
from sardonyx.ir.shape import Expr, substitute, symbols_in
from sardonyx.ir.types import DENOTATIONS
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.contract import Context

__all__ = ["OverrideDimensions"]


class OverrideDimensions:
    """Fix dimensions of inputs by the name of their symbol, or by their denotation.

        x: float[batch, 3, h, w],  batch = 1                              ->      x: float[1, 3, h, w]
        x: float[?, 3, h, w] with denotation DATA_BATCH,  DATA_BATCH = 1  ->      x: float[1, 3, h, w]

    One symbol is one size: it becomes that size wherever it stands, in dimensions that are computed from it too. Left alone:
    names that no input has, as one set of overrides may serve many models.

    Holds before: nothing. Holds after: shapes are to be inferred anew. Cost: O(values).
    """

    name = "override_dimensions"
    aliases = ("FreeDimensionOverrideTransformer",)

    def __init__(self, by_name: Mapping[str, int], by_denotation: Mapping[str, int]) -> None:
        """Fix `by_name` (symbol -> size) and `by_denotation` (denotation -> size)."""
        self._by_name, self._by_denotation = dict(by_name), dict(by_denotation)

    def run(self, model: Model, context: Context) -> bool:
        """Fix them; whether any shape changed.

        Raises:
            InvalidArgument: a denotation is fixed to another size than the model or another override says.
        """
        sizes = dict(self._by_name)
        for value in model.graph.inputs:
            _add_denoted(value, self._by_denotation, sizes)
        changed = False
        for graph in nested_graphs(model.graph) if sizes else ():
            for value in (*graph.inputs, *graph.outputs, *(value for node in graph for value in node.outputs)):
                changed |= _fix(value, sizes)
        return changed


def _add_denoted(value: Value, by_denotation: Mapping[str, int], sizes: dict[str, int]) -> None:
    """Add the sizes of the symbols of an input that have a denotation."""
    denotations = (value.metadata or {}).get(DENOTATIONS, "").split(",")
    for dim, denotation in zip(value.shape or (), denotations, strict=False):
        size = by_denotation.get(denotation)
        if size is None or not denotation:  # a dimension without a denotation is none whose denotation is empty
            continue
        known = _size(dim, sizes)
        if known is not None and known != size:
            raise InvalidArgument(f"dimension {denotation} of input {value.name!r} is {known}, but is to be fixed to {size}")
        for name in symbols_in(dim):
            sizes[name] = size


def _size(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    found = substitute(dim, sizes)
    return None if isinstance(found, Expr) else found


def _fix(value: Value, sizes: Mapping[str, int]) -> bool:
    if not isinstance(value.type, TensorType) or value.shape is None:
        return False
    shape = tuple(substitute(dim, sizes) for dim in value.shape)
    changed = shape != value.shape
    value.type = TensorType(value.type.dtype, shape)
    return changed
