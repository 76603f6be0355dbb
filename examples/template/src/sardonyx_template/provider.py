"""A provider whose tensors live in a memory of its own, which the host does not look into: it copies them at the borders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph
from sardonyx.provider import HOST, Body, Bound, Capability, Claims, GraphView, Layout, Memory, Partition, TensorSpec

__all__ = ["NAME", "TemplateProvider", "create"]

NAME = "TemplateExecutionProvider"
_FUNCTIONS = {"Abs": np.abs, "Neg": np.negative, "Sqrt": np.sqrt}


class DeviceTensor:
    """A tensor of the device."""

    def __init__(self, elements: Array) -> None:
        """Hold its elements."""
        self.elements = elements

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.elements.shape


class DeviceMemory:
    """The device's memory; the runtime plans an arena in it and copies tensors at its borders."""

    name = "template:0"

    def allocate(self, size_bytes: int) -> Any:
        """Make a buffer."""
        return HOST.allocate(size_bytes)

    def view(self, buffer: Any, offset_bytes: int, dtype: DataType, shape: tuple[int, ...]) -> DeviceTensor:
        """Return the tensor at a place of a buffer."""
        return DeviceTensor(HOST.view(buffer, offset_bytes, dtype, shape))

    def to_host(self, tensor: DeviceTensor) -> Array:
        """Copy to the host."""
        return tensor.elements.copy()

    def from_host(self, array: Array) -> DeviceTensor:
        """Copy from the host."""
        return DeviceTensor(array.copy())


class TemplateProvider:
    """Runs a few operators of one float32 tensor."""

    name = NAME
    preferred_layout = Layout.NCHW

    def __init__(self) -> None:
        """Make the provider with a memory of its own."""
        self.memory: Memory = DeviceMemory()

    def capabilities(self, view: GraphView) -> Claims:
        """Claim what it runs, and say of the rest why not."""
        claims, declined = [], {}
        for node in view.nodes:
            value = node.inputs[0] if node.inputs else None
            if node.domain or node.op_type not in _FUNCTIONS:
                declined[node] = f"runs {', '.join(_FUNCTIONS)} only"
            elif value is None or value.dtype is not DataType.FLOAT:
                declined[node] = "runs float32 only"
            else:
                claims.append(Capability((node,)))
        return Claims(claims, declined)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> TemplateProgram:
        """Do all expensive work here, once per session."""
        return TemplateProgram(partition)


class TemplateProgram:
    """Runs a partition; many threads may run it at a time, so it changes nothing of its own."""

    makes_outputs = False

    def __init__(self, partition: Partition) -> None:
        """Keep what a run needs."""
        self._inputs, self._outputs = tuple(partition.inputs), tuple(partition.outputs)
        self._steps = [(_FUNCTIONS[node.op_type], node.inputs[0], node.outputs[0]) for node in partition.nodes]
        self._constants = {value: value.constant.numpy() for value in partition.constants if value.constant is not None}

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Say which tensors the runtime is to allocate."""
        known: dict[Any, Any] = {value: array.shape for value, array in self._constants.items()}
        known.update(zip(self._inputs, shapes, strict=True))
        for _, source, result in self._steps:
            known[result] = known[source]
        return Bound(tuple(TensorSpec(DataType.FLOAT, known[value]) for value in self._outputs))

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        """Fill `outputs`."""
        values: dict[Any, Array] = dict(self._constants)
        values.update((value, tensor.elements) for value, tensor in zip(self._inputs, inputs, strict=True))
        for function, source, result in self._steps:
            values[result] = function(values[source])
        for value, tensor in zip(self._outputs, outputs, strict=True):
            tensor.elements[...] = values[value]
        return outputs


def create(options: Mapping[str, str]) -> TemplateProvider:
    """Make the provider for a session; raises InvalidArgument for an option, as it has none."""
    if options:
        raise InvalidArgument(f"{NAME} has no options, got {sorted(options)}")
    return TemplateProvider()
