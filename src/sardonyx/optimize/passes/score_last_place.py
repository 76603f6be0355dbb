"""Compute the scores of the last place only in the graphs of generation loops, which read no others."""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.generation_bodies import is_generation_loop, loop_bodies
from sardonyx.optimize.contract import Context, Pass

__all__ = ["SCORE_LAST_PLACE"]

_PRODUCTS = frozenset([("", "MatMul"), ("com.microsoft", "MatMulNBits")])
_ELEMENTWISE = frozenset([("", name) for name in ("Add", "Cast", "Div", "Identity", "Mul", "Sub", "Tanh")])
_RANK = 3
"""Of logits, (rows, length, V)."""
_MATRIX = 2
_NEWEST = 13
"""The version of ai.onnx from which on Gather means what it means here."""


class _ScoreLastPlace:
    """Take the last place of a sequence before the product that gives the scores of all of them.

        BeamSearch, GreedySearch, Sampling, WhisperBeamSearch {decoder = … -> (logits, …)}

        logits = MatMul(x, w)       ->      logits = MatMul(Gather(x, [-1], axis=1), w)

    Elements may be changed behind the product by numbers that are the same at all places.

    Left alone: logits of one place, or of another rank than three; products of more than a matrix; scores that something else
    reads.

    Holds before: shapes inferred. Cost: O(nodes).
    """

    name = "score_last_place"
    not_saved = "onnxruntime's loops read the logits of all places"

    def run(self, model: Model, context: Context) -> bool:
        """Move the choice of the place; whether it was anywhere."""
        version = max(model.opset_imports.get("", _NEWEST), _NEWEST)
        changed = False
        for node in [node for node in all_nodes(model) if is_generation_loop(node)]:
            for body in loop_bodies(node):
                changed |= _shorten(body, version)
        return changed


SCORE_LAST_PLACE: Pass = _ScoreLastPlace()


def _shorten(body: Graph, version: int) -> bool:
    logits = body.outputs[0] if body.outputs else None
    shape = None if logits is None else logits.shape
    if logits is None or shape is None or len(shape) != _RANK or shape[1] == 1:
        return False
    chain = _chain(logits)
    if chain is None:
        return False
    product, source = chain[-1], chain[-1].inputs[0]
    if source is None or source.shape is None or source.dtype is None:
        return False
    last = Node("Gather", (), 1, {"axis": 1}, version=version)
    last.output.type = TensorType(source.dtype, (source.shape[0], 1, *source.shape[2:]))
    last.set_inputs([source, body.add_initializer(Tensor.from_array(np.array([-1], np.int64), f"{product.output.name}.last"))])
    body.insert_before(product, last)
    product.set_inputs([last.output, *product.inputs[1:]])
    for node in chain:
        value = node.output
        if value.shape is not None and value.dtype is not None:
            value.type = TensorType(value.dtype, (value.shape[0], 1, *value.shape[2:]))
    return True


def _chain(logits: Value) -> list[Node] | None:
    """Return the nodes from the one that gives the logits to their product; None where it is another kind of graph."""
    chain: list[Node] = []
    value: Value | None = logits
    while value is not None and value.producer is not None and value.use_count == 1:
        node = value.producer
        chain.append(node)
        operator = (node.domain, node.op_type)
        if operator in _PRODUCTS:
            return chain if _is_by_places(node) else None
        wide = [item for item in node.inputs if item is not None and len(item.shape or (1,) * _RANK) == _RANK]
        others = [item for item in node.inputs if item is not None and item not in wide]
        if operator not in _ELEMENTWISE or len(wide) != 1 or any(len(item.shape or ()) > 1 for item in others):
            return None
        value = wide[0]
    return None


def _is_by_places(product: Node) -> bool:
    """Return whether each place of (rows, length, K) is multiplied by the same matrix."""
    x, w = product.inputs[:2]
    has_places = x is not None and x.shape is not None and len(x.shape) == _RANK
    return has_places and (product.op_type != "MatMul" or (w is not None and w.shape is not None and len(w.shape) == _MATRIX))
