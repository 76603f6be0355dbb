"""Whether two models say the same, up to the names of values that nobody outside sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.ir import Attribute, Graph, Model, SparseTensor, Tensor, TensorType, Value
from sardonyx.ir.shape import is_anonymous

__all__ = ["assert_same_model", "same_tensor"]


def assert_same_model(left: Model, right: Model) -> None:
    """Fail where the models differ in structure, types, attributes or data."""
    assert left.opset_imports == right.opset_imports
    assert left.metadata == right.metadata
    assert left.functions.keys() == right.functions.keys()
    assert [value.name for value in left.graph.inputs] == [value.name for value in right.graph.inputs]
    assert [value.name for value in left.graph.outputs] == [value.name for value in right.graph.outputs]
    assert list(left.graph.initializers) == list(right.graph.initializers)
    _Pairs().graphs(left.graph, right.graph)
    for key, function in left.functions.items():
        other = right.functions[key]
        assert function.attributes.keys() == other.attributes.keys()
        assert function.opset_imports.items() <= other.opset_imports.items() | left.opset_imports.items()
        _Pairs().graphs(function.graph, other.graph)


def same_tensor(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors have one type, one shape and the same bits."""
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    if left.numpy().dtype == object:
        return left.numpy().tolist() == right.numpy().tolist()
    return left.numpy().tobytes() == right.numpy().tobytes()


class _Pairs:
    def __init__(self) -> None:
        self._partners: dict[Value, Value] = {}

    def graphs(self, left: Graph, right: Graph) -> None:
        sources = [(left.inputs, right.inputs), (left.initializers.values(), right.initializers.values())]
        for mine, others in sources:
            for value, other in zip(mine, others, strict=True):
                self._pair(value, other)
        assert len(left) == len(right)
        for node, twin in zip(left, right, strict=True):
            assert (node.op_type, node.domain, node.version, node.name, node.overload) == (
                twin.op_type,
                twin.domain,
                twin.version,
                twin.name,
                twin.overload,
            )
            self._same_values(node.inputs, twin.inputs)
            assert list(node.attributes) == list(twin.attributes)
            for name, attribute in node.attributes.items():
                self._attributes(attribute, twin.attributes[name])
            for value, other in zip(node.outputs, twin.outputs, strict=True):
                self._pair(value, other)
        self._same_values(left.outputs, right.outputs)

    def _same_values(self, left: tuple[Value | None, ...], right: tuple[Value | None, ...]) -> None:
        assert [None if value is None else self._partners[value] for value in left] == list(right)

    def _pair(self, left: Value, right: Value) -> None:
        self._partners[left] = right
        assert _known(left.type) == _known(right.type), (left, left.type, right.type)
        assert (left.constant is None) == (right.constant is None)
        if left.constant is not None and right.constant is not None:
            assert same_tensor(left.constant, right.constant), left

    def _attributes(self, left: Attribute, right: Attribute) -> None:
        assert (left.kind, left.reference) == (right.kind, right.reference)
        if isinstance(left.value, tuple):
            assert len(left.value) == len(right.value)
            for mine, other in zip(left.value, right.value, strict=True):
                self._payloads(mine, other)
        else:
            self._payloads(left.value, right.value)

    def _payloads(self, left: Any, right: Any) -> None:
        if isinstance(left, Graph):
            self.graphs(left, right)
        elif isinstance(left, Tensor):
            assert same_tensor(left, right)
        elif isinstance(left, SparseTensor):
            assert left.shape == right.shape
            assert same_tensor(left.values, right.values)
            assert same_tensor(left.indices, right.indices)
        elif isinstance(left, float):
            assert np.float32(left).tobytes() == np.float32(right).tobytes()
        else:
            assert _known(left) == _known(right)


def _known(value_type: Any) -> Any:
    """A type in which unknown dimensions compare equal."""
    if isinstance(value_type, TensorType) and value_type.shape is not None:
        return value_type.dtype, tuple("?" if is_anonymous(dim) else dim for dim in value_type.shape)
    return str(value_type)
