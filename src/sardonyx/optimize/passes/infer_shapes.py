"""Infer types, shapes and small values."""

from __future__ import annotations

from sardonyx.ir import Model
from sardonyx.ops.infer import infer_graph
from sardonyx.optimize.contract import Context, Pass

__all__ = ["INFER_SHAPES"]


class _InferShapes:
    """Give each value the type that can be inferred, and keep the facts for other passes.

    Holds before: nothing. Holds after: `Value.type` is set wherever it can be known; `context.facts` has the elements of small
    tensors. Cost: O(nodes).
    """

    name = "infer_shapes"

    def run(self, model: Model, context: Context) -> bool:
        """Infer; reports no change, as it alters no node."""
        context.facts.update(infer_graph(model, memory=context.memory))
        return False


INFER_SHAPES: Pass = _InferShapes()
