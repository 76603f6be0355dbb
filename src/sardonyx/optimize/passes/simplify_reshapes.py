"""Write the shape of a Reshape as a constant where it only copies dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.ir import Dim, Expr, Model, Node, Shape, Tensor
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.fact import Fact
from sardonyx.ops.views.reshape import Reshape
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import Names, overridable_values, remove_dead, tensor_of

__all__ = ["SIMPLIFY_RESHAPES"]


class _SimplifyReshapes:
    """Replace the computed shape of a Reshape by a constant: 0 for a dimension that stays in place, -1 for the only unknown one.

        x: [batch, seq, 768];  y = Reshape(x, [batch, seq, 12, 64])      ->      y = Reshape(x, [0, 0, 12, 64])
        x: [9 * batch, 49];    y = Reshape(x, [batch, 9, 49])            ->      y = Reshape(x, [-1, 9, 49])

    Left alone: a symbolic dimension that x does not have in the same place beside others that are symbolic or 0, since -1 for it
    would be ambiguous where another dimension is 0; allowzero = 1, under which 0 copies nothing; shapes of which an element is
    unknown.

    Holds before: shapes inferred. Holds after: what computed the shape goes, unless others use it. Cost: O(nodes).
    """

    name = "simplify_reshapes"
    aliases = ("ReshapeFusion",)

    def run(self, model: Model, context: Context) -> bool:
        """Simplify; whether any was."""
        overridable = overridable_values(model)
        names: list[Names] = []

        def fresh(base: str) -> str:
            if not names:
                names.append(Names.of(model))
            return names[0].fresh(base)

        changed = False
        for graph in nested_graphs(model.graph):
            for node in graph:
                if node.op_type == "Reshape" and not node.domain and tensor_of(node.input(1), overridable) is None:
                    changed |= _simplify(node, context, fresh)
        return changed


SIMPLIFY_RESHAPES: Pass = _SimplifyReshapes()


def _simplify(node: Node, context: Context, fresh: Callable[[str], str]) -> bool:
    if len(node.inputs) != 2 or node.graph is None:
        return False
    value, target = node.inputs
    if value is None or target is None or value.shape is None:
        return False
    fact = context.facts.get(target)
    shape = _inferring_shape(fact) or (None if Reshape.of(node).keeps_zero else _copying_shape(value.shape, fact))
    if shape is None:
        return False
    tensor = Tensor.from_array(np.array(shape, np.int64))
    node.replace_input(1, node.graph.add_initializer(tensor, fresh(f"{node.name or 'Reshape'}/shape")))
    if target.producer is not None:
        remove_dead([target.producer])
    return True


def _inferring_shape(target: Fact | None) -> list[int] | None:
    """Return the target with -1 in the place of its only symbolic dimension, the others being above 0; else None."""
    if target is None or target.value is None or target.value.ndim != 1:
        return None
    elements: list[Dim | None] = target.value.tolist()
    known = [element for element in elements if isinstance(element, int) and element > 0]
    open_ones = [element for element in elements if isinstance(element, Expr)]
    if len(open_ones) != 1 or len(known) + 1 != len(elements):
        return None
    return [element if isinstance(element, int) else -1 for element in elements]


def _copying_shape(shape: Shape, target: Fact | None) -> list[int] | None:
    """Return the target with 0 in the place of each symbolic dimension; None where one of them is not copied."""
    if target is None or target.value is None or target.value.ndim != 1:
        return None
    elements: list[Dim | None] = target.value.tolist()
    result: list[int] = []
    for index, element in enumerate(elements):
        if isinstance(element, int):
            result.append(element)
        elif element is not None and index < len(shape) and shape[index] == element:
            result.append(0)
        else:
            return None
    return result
