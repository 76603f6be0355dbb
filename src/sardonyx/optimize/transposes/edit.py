"""The steps of pushing a transpose through a node.

    Transpose(x) -> Op -> y        edit.bring(node, 0, permutation)         x -> Op -> y
                                   edit.put_behind(node, y, permutation)    x -> Op -> Transpose -> y

Transposes of the same value by the same permutation are made once, just behind what makes the value, and take the place of those
that the graph has already. So are transposed constants: a constant that nodes in both layouts read is held in both. A constant
behind a DequantizeLinear is transposed together with its DequantizeLinear, so that the two stay one unit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Attribute, AttributeKind, Graph, Node, Tensor, TensorType, Value
from sardonyx.ops.views.quantize import Quantization
from sardonyx.optimize.transposes.permutation import (
    Permutation,
    identity,
    inverse,
    moves_nothing,
    permutation_of,
    permuted,
    then,
    weight_of,
)

__all__ = ["Edit", "has_axis", "is_neutral"]

_VERSION = 13
"""The opset version of nodes that are added."""


def is_neutral(value: Value | None) -> bool:
    """Return whether a broadcast input is the same in every layout: left out, or of one element."""
    return value is None or (value.shape is not None and all(dim == 1 for dim in value.shape))


def has_axis(node: Node) -> bool:
    """Return whether the axis of a QuantizeLinear or DequantizeLinear matters.

    It is given, or scales are not known to be one for all.
    """
    scale = node.inputs[1]
    return Quantization.of(node).names_axis or scale is None or scale.shape is None or len(scale.shape) > 0


class Edit:
    """Changes to one graph."""

    def __init__(self, graph: Graph) -> None:
        """Begin to change `graph`."""
        self.graph = graph
        self._made: dict[tuple[Value, Permutation], Value] = {}

    def transpose_of(self, value: Value | None) -> tuple[Permutation, Value] | None:
        """Return the permutation of the transpose of this graph that makes `value`, and what it reads; None where none does.

        One in an outer graph does not count: what that reads may be out of reach by the time this graph runs.
        """
        producer = None if value is None else value.producer
        permutation = permutation_of(producer)
        if producer is None or permutation is None or producer.graph is not self.graph or producer.inputs[0] is None:
            return None
        return permutation, producer.inputs[0]

    def source_of(self, value: Value | None, permutation: Permutation) -> Value | None:
        """Return what a transpose by `permutation` of this graph that makes `value` reads; None where none does."""
        found = self.transpose_of(value)
        return found[1] if found is not None and found[0] == permutation else None

    def going(self, values: Sequence[Value | None], permutation: Permutation, reader: Node | None) -> int:
        """Return the weight of the transposes by `permutation` that make `values`, each once.

        Of those alone that `reader` keeps alive.
        """
        found = {value for value in values if value is not None and self.source_of(value, permutation) is not None}
        return sum(max(weight_of(value.shape), 1) for value in found if reader is None or _is_kept_by(value, reader))

    def coming(self, values: Sequence[Value | None], permutation: Permutation) -> int:
        """Return the weight of the transposes that the others of `values` would need."""
        others = {value for value in values if value is not None and self.source_of(value, permutation) is None}
        return sum(self._cost(value, inverse(permutation)) for value in others if not is_neutral(value))

    def _cost(self, value: Value, permutation: Permutation) -> int:
        if value.constant is not None or self._dequantized_constant(value) is not None or (value, permutation) in self._made:
            return 0
        if self._same(value, permutation):
            return 0
        shape, rank = value.shape, len(permutation)
        if shape is not None and moves_nothing(permutation, (1,) * (rank - len(shape)) + tuple(shape)):
            return 0
        return weight_of(shape)

    def bring(self, node: Node, index: int, permutation: Permutation) -> None:
        """Let input `index` of `node`, where the layout matters to it, be what it was before a transpose by `permutation`."""
        value = node.inputs[index]
        if value is not None and not is_neutral(value):
            self.bring_whole(node, index, permutation)

    def bring_whole(self, node: Node, index: int, permutation: Permutation) -> None:
        """Bring as `bring` does, for an input that has the full rank whatever its size."""
        value = node.inputs[index]
        if value is not None:
            source = self.source_of(value, permutation)
            node.replace_input(index, source if source is not None else self.transposed(value, inverse(permutation)))

    def transposed(self, value: Value, permutation: Permutation) -> Value:
        """Return `value`, with dimensions of 1 in front where its rank is lower, after a transpose by `permutation`."""
        if permutation == identity(len(permutation)):
            return value
        found = self._made.get((value, permutation))
        if found is None:
            found = self._made[value, permutation] = self._transpose(value, permutation)
        return found

    def _transpose(self, value: Value, permutation: Permutation) -> Value:
        if value.constant is not None:
            return self._constant(value, value.constant.numpy(), permutation)
        quantized = self._dequantized_constant(value)
        if quantized is not None and value.producer is not None:
            return self._dequantized(value.producer, value, quantized, permutation)
        value = self._padded(value, len(permutation))
        found = self.transpose_of(value)
        if found is not None:
            return self.transposed(found[1], then(found[0], permutation))
        same = self._same(value, permutation)
        node = Node("Transpose", [value], 1, {"perm": permutation}, version=_VERSION, name=f"{_place(value)}/transposed")
        node.output.type = _permuted_type(value, permutation)
        self._insert_behind(value, node)
        for other in same:
            other.output.replace_all_uses_with(node.output)
        return node.output

    def _same(self, value: Value, permutation: Permutation) -> list[Node]:
        """Return the transposes of `value` by `permutation` that there are in this graph, but for those that make its outputs."""
        users = (user for user, _ in value.uses)
        return [
            user
            for user in users
            if isinstance(user, Node)
            and user.graph is self.graph
            and permutation_of(user) == permutation
            and not user.output.is_graph_output
        ]

    def _constant(self, value: Value, array: Array, permutation: Permutation) -> Value:
        array = array.reshape((1,) * (len(permutation) - array.ndim) + array.shape)
        return self.graph.add_initializer(Tensor.from_array(np.ascontiguousarray(array.transpose(permutation))), value.name)

    def _dequantized(self, node: Node, value: Value, quantized: Value, permutation: Permutation) -> Value:
        rank, given = len(permutation), len(value.shape or ())
        axis = Quantization.of(node).place(given) + rank - given if has_axis(node) else 0
        source = self.transposed(quantized, permutation)
        twin = Node(
            node.op_type,
            [source, *node.inputs[1:]],
            1,
            node.attributes,
            domain=node.domain,
            version=node.version,
            name=f"{node.name}/transposed",
        )
        if has_axis(node):
            twin.attributes["axis"] = Attribute.of(inverse(permutation)[axis])
        shape = (1,) * (rank - given) + tuple(value.shape or ())
        twin.output.type = TensorType(value.dtype, permuted(shape, permutation)) if value.dtype is not None else None
        return self.graph.insert_after(node, twin).output

    def _dequantized_constant(self, value: Value) -> Value | None:
        """Return the constant that a node of this graph dequantizes to `value`, with one scale or one for each index of an axis."""
        node = value.producer
        if node is None or node.op_type != "DequantizeLinear" or node.graph is not self.graph:
            return None
        quantized = node.inputs[0]
        is_whole = not Quantization.of(node).block and value.shape is not None
        return quantized if is_whole and quantized is not None and quantized.constant is not None else None

    def _padded(self, value: Value, rank: int) -> Value:
        missing = rank - len(value.shape or ())
        if not missing or value.shape is None or value.dtype is None:
            return value
        axes = self.integers(range(missing), "axes")
        node = Node("Unsqueeze", [value, axes], 1, version=_VERSION, name=f"{_place(value)}/padded")
        node.output.type = TensorType(value.dtype, (1,) * missing + tuple(value.shape))
        return self._insert_behind(value, node).output

    def _insert_behind(self, value: Value, node: Node) -> Node:
        producer = value.producer
        if producer is not None and producer.graph is self.graph:
            return self.graph.insert_after(producer, node)
        return self.graph.insert_before(next(iter(self.graph)), node)

    def put_behind(self, node: Node, value: Value, permutation: Permutation) -> None:
        """Let `value`, which `node` makes, be in the layout before a transpose by `permutation`, and put one behind it."""
        if permutation == identity(len(permutation)):
            return
        behind = Node("Transpose", [None], 1, {"perm": permutation}, version=_VERSION, name=f"{node.name}/behind")
        behind.output.type = value.type
        self.graph.insert_after(node, behind)
        value.replace_all_uses_with(behind.output)
        behind.replace_input(0, value)
        value.type = _permuted_type(value, inverse(permutation))

    def taken(self, value: Value, order: Sequence[int], axis: int) -> Value:
        """Return a copy of the constant `value` with what lies along `axis` in another order."""
        array = value.constant.numpy() if value.constant is not None else np.empty(0)
        return self.graph.add_initializer(Tensor.from_array(np.ascontiguousarray(array.take(list(order), axis))), value.name)

    def integers(self, numbers: Sequence[int], name: str) -> Value:
        """Return a constant of int64 numbers."""
        return self.graph.add_initializer(Tensor.from_array(np.array(numbers, np.int64)), name)

    def reorder(self, node: Node, index: int, order: Sequence[int]) -> None:
        """Reorder the vector that input `index` of `node` is: at once where it is constant, else by a Gather."""
        vector = node.inputs[index]
        if vector is None:
            return
        if vector.constant is not None:
            array = np.ascontiguousarray(vector.constant.numpy()[list(order)])
            node.replace_input(index, self.graph.add_initializer(Tensor.from_array(array), vector.name))
            return
        numbers = self.integers(order, "order")
        gather = Node("Gather", [vector, numbers], 1, {"axis": 0}, version=_VERSION, name=f"{node.name}/order")
        gather.output.type = vector.type
        node.replace_input(index, self.graph.insert_before(node, gather).output)

    def set_axes(self, node: Node, index: int, axes: Sequence[int]) -> None:
        """Give a node its axes where it had them: as an attribute, or as input `index`."""
        if "axes" in node.attributes:
            node.attributes["axes"] = Attribute(AttributeKind.INTS, tuple(axes))
            return
        value = self.integers(axes, "axes")
        if index < len(node.inputs):
            node.replace_input(index, value)
        else:
            node.set_inputs((*node.inputs, *[None] * (index - len(node.inputs)), value))


def _is_kept_by(value: Value, reader: Node) -> bool:
    """Return whether `reader` is alone to read `value`, transposes aside, which will be merged with the one that makes it."""
    others = [user for user, _ in value.uses if user is not reader]
    return all(isinstance(user, Node) and user.graph is reader.graph and permutation_of(user) is not None for user in others)


def _place(value: Value) -> str:
    return value.name or (value.producer.name if value.producer is not None else "")


def _permuted_type(value: Value, permutation: Permutation) -> TensorType | None:
    if value.dtype is None:
        return None
    return TensorType(value.dtype, None if value.shape is None else permuted(value.shape, permutation))
