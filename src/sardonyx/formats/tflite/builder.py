"""One graph while it is made: nodes of ONNX operators, constants, and tensors of images with their channels first or last.

Operators on images of ONNX want the channels first, and TensorFlow Lite has them last. A value that such an operator makes is kept
with its channels first; it is transposed when somebody asks for it with its channels last, and given back as it is to the next
operator on images: between two convolutions nothing stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Graph, Node, Tensor, TensorType, Value
from sardonyx.ir.attribute import AttributeValue

__all__ = ["DOMAIN", "OPSET", "GraphBuilder"]

OPSET = 21
"""The version of ai.onnx under which nodes are made: the first in which 4-bit integers are dequantized."""
DOMAIN = "sardonyx.tflite"
"""The domain of operators whose rounding, order or state ONNX has no operator for."""


class GraphBuilder:
    """Appends nodes to a graph."""

    def __init__(self, name: str, outer: GraphBuilder | None = None) -> None:
        """Begin a graph; names in the body of `outer`'s are none of its."""
        self.graph = Graph(name)
        self.place = ""
        """What names of nodes begin with."""
        self.slices: dict[Value, tuple[Value, Value, Value]] = {}
        """Slice -> the tensor that it is of, where it begins, and how long it is."""
        self._names: set[str] = outer._names if outer is not None else set()
        self._serials: dict[str, int] = outer._serials if outer is not None else {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        self._first: dict[Value, Value] = {}
        self._last: dict[Value, Value] = {}

    def name(self, base: str) -> str:
        """Return a name that no value of the model has yet, `base` where it is free."""
        base = base or "value"
        found, serial = base, self._serials.get(base, 0)
        while found in self._names:
            serial += 1
            found = f"{base}_{serial}"
        self._names.add(found)
        self._serials[base] = serial
        return found

    def input(self, name: str, kind: TensorType) -> Value:
        """Add an input."""
        value = Value(self.name(name), kind)
        self.graph.inputs.append(value)
        return value

    def node(self, op_type: str, *inputs: Value | None, domain: str = "", version: int = 0, **attributes: AttributeValue) -> Value:
        """Append a node with one output, and return that."""
        return self.nodes(op_type, *inputs, outputs=1, domain=domain, version=version, **attributes)[0]

    def nodes(
        self,
        op_type: str,
        *inputs: Value | None,
        outputs: int,
        domain: str = "",
        version: int = 0,
        **attributes: AttributeValue,
    ) -> tuple[Value, ...]:
        """Append a node with several outputs, and return them; an attribute that is None is left out."""
        given = {name: value for name, value in attributes.items() if value is not None}
        opset = version or (1 if domain else OPSET)
        made = [Value(self.name(f"{self.place}/{op_type}")) for _ in range(outputs)]
        trimmed = list(inputs)
        while trimmed and trimmed[-1] is None:
            trimmed.pop()
        node = Node(op_type, trimmed, made, given, domain=domain, version=opset, name=made[0].name)
        self.graph.append(node)
        return node.outputs

    def constant(self, array: ArrayLike, dtype: DTypeLike | None = None) -> Value:
        """Return a constant with these elements; equal small ones are one."""
        data = np.array(array, dtype, order="C")
        if data.dtype.kind in "OUS" or data.nbytes > 1024:
            return self.initializer(Tensor.from_array(data))
        key = data.dtype.str + data.dtype.name, data.shape, data.tobytes()
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.initializer(Tensor.from_array(data))
        return found

    def ints(self, *numbers: int) -> Value:
        """Return an int64 constant of rank 1, as shapes and axes are given."""
        return self.constant(np.array(numbers, np.int64))

    def initializer(self, tensor: Tensor, name: str = "") -> Value:
        """Return a constant for a tensor."""
        return self.graph.add_initializer(tensor, self.name(name or tensor.name or "constant"))

    def cast(self, value: Value, dtype: DataType) -> Value:
        """Return `value` in another element type."""
        return self.node("Cast", value, to=int(dtype))

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Return `value` in another shape, of which one size may be -1."""
        return self.node("Reshape", value, self.ints(*shape))

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Return `value` with its axes in another order."""
        return value if list(order) == list(range(len(order))) else self.node("Transpose", value, perm=tuple(order))

    def first(self, value: Value, rank: int) -> Value:
        """Return `value`, whose channels are last, with its channels first."""
        found = self._first.get(value)
        if found is None:
            found = self._first[value] = self.transpose(value, (0, rank - 1, *range(1, rank - 1)))
        return found

    def last(self, value: Value, rank: int) -> Value:
        """Return `value`, whose channels are first, with its channels last."""
        found = self._last.get(value)
        if found is None:
            found = self._last[value] = self.transpose(value, (0, *range(2, rank), 1))
            self._first[found] = value
        return found

    def finish(self) -> None:
        """Remove nodes that nothing reads, such as transposes that nobody asked for."""
        for node in reversed(self.graph):
            if not any(value.use_count for value in node.outputs):
                self.graph.remove(node)

    def clip(self, value: Value, lowest: float | None, highest: float | None) -> Value:
        """Return `value` within bounds, for floating-point numbers."""
        bounds = [None if bound is None else self.constant(np.float32(bound)) for bound in (lowest, highest)]
        return self.node("Clip", value, *bounds)

    def array(self, value: Value) -> Array | None:
        """Return the elements of a constant; None for any other value."""
        return None if value.constant is None else value.constant.numpy()
