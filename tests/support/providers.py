"""Three small providers: one that fuses, one that prefers NHWC, one whose tensors live on a pretended device.

Each compiles with the reference provider's program underneath, so their results are the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import sardonyx.providers.reference.kernels  # noqa: F401  registers the kernels that programs below look up
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Graph, Node
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.partition.layout import to_first, to_last
from sardonyx.provider import (
    HOST,
    Body,
    Bound,
    Capability,
    Claims,
    GraphView,
    Layout,
    Memory,
    Partition,
    Program,
    TensorSpec,
)
from sardonyx.providers.reference.program import ReferenceProgram
from sardonyx.providers.reference.registry import Call, find_kernel


class FusingProvider:
    """Claims chosen operators and fuses each connected run of them into one unit."""

    preferred_layout = Layout.NCHW
    memory: Memory = HOST

    def __init__(self, operators: Iterable[str], name: str = "FusingProvider", *, fuse: bool = True) -> None:
        self.name, self._operators, self._fuse = name, frozenset(operators), fuse
        self.compiled: list[Partition] = []

    def capabilities(self, view: GraphView) -> Claims:
        mine = [node for node in view.nodes if node.op_type in self._operators]
        declined = {node: f"{node.op_type} is not among its operators" for node in view.nodes if node not in mine}
        if not self._fuse:
            return Claims([Capability((node,)) for node in mine], declined)
        groups: list[list[Node]] = []
        for node in mine:
            near = [group for group in groups if any(value is not None and value.producer in group for value in node.inputs)]
            if near:
                near[0].append(node)
            else:
                groups.append([node])
        return Claims([Capability(tuple(group), fused=True, name=f"fused_{group[0].op_type}") for group in groups], declined)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        self.compiled.append(partition)
        return ReferenceProgram(partition.nodes, partition.inputs, partition.constants, partition.outputs, bodies)


class NhwcProvider:
    """Claims layout-sensitive operators, which must come to it in NHWC, with Relu and Transpose; records what it was asked."""

    name = "NhwcProvider"
    preferred_layout = Layout.NHWC
    memory: Memory = HOST

    def __init__(self, *more: str, forgetful: bool = False) -> None:
        """Claim `more` operators besides, which must have one output."""
        self.queries: list[tuple[bool, list[str]]] = []
        self.compiled: list[Partition] = []
        self._forgetful = forgetful
        self._operators = {"Relu", "Conv", "MaxPool", "AveragePool", "GlobalAveragePool", *more}

    def capabilities(self, view: GraphView) -> Claims:
        self.queries.append((view.after_layout, [f"{node.domain}.{node.op_type}".strip(".") for node in view.nodes]))
        operators = self._operators | ({"Transpose"} if view.after_layout else set())
        if view.after_layout and self._forgetful:
            operators = {"Relu"}
        return Claims([Capability((node,)) for node in view.nodes if node.op_type in operators])

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        self.compiled.append(partition)
        return _NhwcProgram(partition)


class _NhwcProgram:
    """Runs NHWC operators by the NCHW reference kernels between two transposes."""

    makes_outputs = True

    def __init__(self, partition: Partition) -> None:
        self._constants = {value: value.constant.numpy() for value in partition.constants if value.constant is not None}
        self._steps = []
        for node in partition.nodes:
            found = find_kernel("", node.op_type, node.version)
            assert found is not None
            attributes = {name: item.value for name, item in node.attributes.items()}
            self._steps.append((node, found.function, found.keywords(node, attributes)))
        self._partition = partition

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return Bound((None,) * len(self._partition.outputs))

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> list[Any]:
        values: dict[Any, Any] = dict(self._constants)
        values.update(zip(self._partition.inputs, inputs, strict=True))
        for node, function, attributes in self._steps:
            arguments = [None if value is None else values[value] for value in node.inputs]
            turned = _turned(node)
            for index in turned:
                arguments[index] = arguments[index].transpose(to_first(arguments[index].ndim))
            result = function(_call_of(node), *arguments, **attributes)
            result = result[0] if isinstance(result, tuple) else result
            if turned:
                result = result.transpose(to_last(result.ndim))
            values[node.outputs[0]] = result
        return [values[value] for value in self._partition.outputs]


def _turned(node: Node) -> tuple[int, ...]:
    """The inputs that the kernel takes in NCHW; none of Resize, whose sizes are reordered with its data."""
    if node.domain != NHWC_DOMAIN or node.op_type == "Resize" or node.flag("channels_last"):
        return ()
    return (0, 1) if node.op_type == "MaxUnpool" else (0,)


def _call_of(node: Node) -> Any:
    return Call(node.name, node.op_type, node.version, (True,) * len(node.outputs), (None,) * len(node.outputs))


class DeviceTensor:
    """A tensor that the host cannot see into."""

    def __init__(self, hidden: Array) -> None:
        self.hidden = hidden

    @property
    def shape(self) -> tuple[int, ...]:
        return self.hidden.shape


class DeviceMemory:
    """A pretended device's memory; counts the copies."""

    name = "pretended:0"

    def __init__(self) -> None:
        self.to_host_count = self.from_host_count = self.allocated_bytes = 0

    def allocate(self, size_bytes: int) -> Array:
        self.allocated_bytes += size_bytes
        return HOST.allocate(size_bytes)

    def view(self, buffer: Array, offset_bytes: int, dtype: DataType, shape: tuple[int, ...]) -> DeviceTensor:
        return DeviceTensor(HOST.view(buffer, offset_bytes, dtype, shape))

    def to_host(self, tensor: DeviceTensor) -> Array:
        self.to_host_count += 1
        return tensor.hidden.copy()

    def from_host(self, array: Array) -> DeviceTensor:
        self.from_host_count += 1
        return DeviceTensor(array.copy())


class DeviceProvider:
    """Claims element-wise fp32 operators of one shape and computes them into tensors that the runtime allocates on its device."""

    preferred_layout = Layout.NCHW

    def __init__(self, operators: Iterable[str] = ("Relu", "Neg", "Add", "Mul"), name: str = "DeviceProvider") -> None:
        self.name, self._operators = name, frozenset(operators)
        self.memory: Any = DeviceMemory()
        self.compiled: list[Partition] = []

    def capabilities(self, view: GraphView) -> Claims:
        return Claims([Capability((node,)) for node in view.nodes if node.op_type in self._operators])

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        self.compiled.append(partition)
        return _DeviceProgram(partition)


class _DeviceProgram:
    """Fills planned tensors; needs scratch memory to show that it gets some."""

    makes_outputs = False

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._constant_shapes = {value: value.constant.shape for value in partition.constants if value.constant is not None}
        self._program = ReferenceProgram(partition.nodes, partition.inputs, partition.constants, partition.outputs, _no_body)

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        known: dict[Any, tuple[int, ...]] = dict(self._constant_shapes)
        known.update((value, shape) for value, shape in zip(self._partition.inputs, shapes, strict=True) if shape is not None)
        for node in self._partition.nodes:
            known[node.output] = np.broadcast_shapes(*(known[value] for value in node.inputs if value is not None))
        return Bound(tuple(TensorSpec(DataType.FLOAT, known[value]) for value in self._partition.outputs), scratch_bytes=256)

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        assert isinstance(scratch, DeviceTensor)
        assert scratch.shape == (256,)
        values = self._program.run(None, [tensor.hidden for tensor in inputs], (), None)
        for tensor, value in zip(outputs, values, strict=True):
            tensor.hidden[...] = value
        return outputs


def _no_body(graph: Graph) -> Body:
    raise KeyError(graph)
