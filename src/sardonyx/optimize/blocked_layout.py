"""Models that ONNX Runtime saved with channels in blocks (domain com.microsoft.nchwc) to the plain layout.

    Conv(x, blocks of w)   ->  FusedConv or Conv (x, w)             w [output channels, input channels, …], in their order again
    ReorderInput(x)        ->  x, channels padded to whole blocks, from channels last where it says so
    ReorderOutput(x)       ->  x without the channels that pad the last block, to channels last where it says so
    MaxPool, AveragePool, GlobalMaxPool, GlobalAveragePool          the operators of the standard
    Upsample               ->  Resize

Values keep the channels that pad their last block, which are zero or are met by weights of zero. The file does not state how many
channels a block has: it is the number that ONNX Runtime uses on the processor it runs on, 16 with AVX-512 and on ARM, else 8. Where
a number of channels shows that the file is of blocks of 8, those are taken; else those of this processor, as ONNX Runtime does.

Source of the operators and of the order of weights: ONNX Runtime's NchwcTransformer, and the descriptions of MLAS.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from sardonyx import trace
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidGraph
from sardonyx.forks import without_fork
from sardonyx.ir import Attribute, Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.ir.walk import all_graphs
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import infer_node

__all__ = ["BLOCKED_DOMAIN", "make_plain"]

BLOCKED_DOMAIN = "com.microsoft.nchwc"
"""The domain of operators on channels in blocks."""
_SAME = ("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool")
_FUSED = "com.microsoft"
_SIZES = (16, 8)
_WITH_INPUTS = 11
"""The version from which on Slice, Pad and Resize take all they need as inputs."""


def make_plain(model: Model, block: int | None = None) -> bool:
    """Replace the operators on blocked channels, in place; returns whether there were any.

    Args:
        model: the model, as it was read.
        block: how many channels a block has; where None, what the file shows, or this processor.

    Raises:
        InvalidGraph: an operator that is none of these, or weights that are no whole blocks.
    """
    if BLOCKED_DOMAIN not in model.opset_imports:
        return False
    graphs = [graph for graph in all_graphs(model) if any(node.domain == BLOCKED_DOMAIN for node in graph)]
    if graphs:
        size = block or _block_of(node for graph in graphs for node in graph if node.domain == BLOCKED_DOMAIN)
        trace.event("load.blocked_layout", model=model.label, channels=size)
        version = model.opset_imports.get("", 1)
        for graph in graphs:
            _Plain(graph, size, version).run()
        model.opset_imports.setdefault(_FUSED, 1)
    del model.opset_imports[BLOCKED_DOMAIN]
    return bool(graphs)


def _block_of(nodes: Iterable[Node]) -> int:
    """Return the number of channels in a block."""
    for node in nodes:
        if node.op_type == "Conv":
            channels = _weights(node).shape[:2]
            if channels[0] % _SIZES[0] or (channels[1] >= _SIZES[0] and channels[1] % _SIZES[0]):
                return _SIZES[1]
            if _SIZES[1] < channels[1] < _SIZES[0]:
                return _SIZES[0]
    with without_fork():
        from sardonyx.codegen.target import host_target  # which only models in doubt need

    return _SIZES[1] if host_target().isa in ("portable", "avx2") else _SIZES[0]


def _weights(node: Node) -> Tensor:
    value = node.input(1)
    if value is None or value.constant is None or value.constant.dtype is not DataType.FLOAT or len(value.constant.shape) != 4:
        raise InvalidGraph(f"{node.place}: its weights are blocks of a constant of float32 with 4 dimensions, got {value!r}")
    return value.constant


class _Plain:
    """Rewrites one graph."""

    def __init__(self, graph: Graph, block: int, version: int) -> None:
        self._graph, self._block, self._version = graph, block, version
        self._blocked: set[Value] = set()
        self._facts: dict[Value, Fact] = {}

    def run(self) -> None:
        for node in list(self._graph):
            if node.domain == BLOCKED_DOMAIN:
                self._replace(node)
                continue
            if any(value in self._blocked for value in node.inputs):
                self._forget_shapes(node.outputs)
            self._infer(node)

    def _infer(self, node: Node) -> None:
        self._facts.update(zip(node.outputs, infer_node(node, self._facts), strict=False))

    def _replace(self, node: Node) -> None:
        if node.op_type == "ReorderInput":
            self._reorder_input(node)
        elif node.op_type == "ReorderOutput":
            self._reorder_output(node)
        elif node.op_type == "Conv":
            self._conv(node)
        elif node.op_type == "Upsample":
            self._upsample(node)
        elif node.op_type in _SAME:
            self._become(node, node.op_type, node.inputs, dict(node.attributes))
        else:
            raise InvalidGraph(
                f"{node.place}: ONNX Runtime saved this model with channels in blocks, by an operator that is not known; save it "
                "again with graph_optimization_level ORT_ENABLE_EXTENDED or lower"
            )

    def _conv(self, node: Node) -> None:
        weights = _weights(node)
        group, (outputs, inputs) = node.integer("group", 1), weights.shape[:2]
        is_depthwise = group > 1 and inputs == 1
        whole = outputs % self._block == 0 and (is_depthwise or inputs < self._block or inputs % self._block == 0)
        if not whole:
            raise InvalidGraph(
                f"{node.place}: weights of shape {list(weights.shape)} are no whole blocks of {self._block} channels"
            )
        source = functools.partial(_unblocked, weights, self._block, 1 if inputs < self._block else self._block)
        plain = self._graph.add_initializer(Tensor(DataType.FLOAT, weights.shape, source, weights.name), f"{weights.name}_plain")
        attributes = dict(node.attributes)
        if is_depthwise:
            attributes["group"] = Attribute.of(outputs)
        is_fused = "activation" in attributes or node.input(3) is not None
        made_of = (node.inputs[0], plain, *node.inputs[2:])
        self._become(node, "FusedConv" if is_fused else "Conv", made_of, attributes, _FUSED if is_fused else "")

    def _upsample(self, node: Node) -> None:
        scales = np.array(node.integers("scales", ()), np.float32)
        mode = node.text("mode", "nearest")
        factors = self._constant(scales, f"{node.name}_scales")
        if self._version < _WITH_INPUTS:
            is_resize = self._version >= 10
            self._become(node, "Resize" if is_resize else "Upsample", (node.inputs[0], factors), {"mode": Attribute.of(mode)})
            return
        attributes = {
            "mode": Attribute.of(mode),
            "coordinate_transformation_mode": Attribute.of(node.text("coordinate_transformation_mode", "asymmetric")),
            "nearest_mode": Attribute.of("floor"),
        }
        nothing = self._constant(np.zeros(0, np.float32), f"{node.name}_roi")
        self._become(node, "Resize", (node.inputs[0], nothing, factors), attributes)

    def _reorder_input(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        fact = self._facts.get(value)
        kind = value.type if fact is None else fact.type
        shape = kind.shape if isinstance(kind, TensorType) else None
        is_last = bool(node.integer("channels_last", 0))
        channels = shape[3 if is_last else 1] if shape is not None and len(shape) == 4 else None
        if not isinstance(channels, int):
            raise InvalidGraph(f"{node.place}: the number of channels of its input {value.name!r} is not known; its type is {kind}")
        if is_last:
            value = self._insert(node, "Transpose", (value,), {"perm": Attribute.of([0, 3, 1, 2])})
        missing = -channels % self._block
        if missing:
            value = self._pad(node, value, missing)
        self._redirect(node, value)
        self._blocked.add(value)

    def _reorder_output(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        channels = node.integer("channels", 0)
        if channels % self._block:
            value = self._slice(node, value, channels)
        if node.integer("channels_last", 0):
            value = self._insert(node, "Transpose", (value,), {"perm": Attribute.of([0, 2, 3, 1])})
        self._redirect(node, value)

    def _pad(self, place: Node, value: Value, count: int) -> Value:
        pads = [0, 0, 0, 0, 0, count, 0, 0]
        if self._version < _WITH_INPUTS:
            return self._insert(place, "Pad", (value,), {"pads": Attribute.of(pads)})
        return self._insert(place, "Pad", (value, self._constant(np.array(pads, np.int64), f"{place.name}_pads")), {})

    def _slice(self, place: Node, value: Value, stop: int) -> Value:
        numbers = {"starts": [0], "ends": [stop], "axes": [1]}
        if self._version < _WITH_INPUTS - 1:
            return self._insert(place, "Slice", (value,), {name: Attribute.of(item) for name, item in numbers.items()})
        inputs = [self._constant(np.array(item, np.int64), f"{place.name}_{name}") for name, item in numbers.items()]
        return self._insert(place, "Slice", (value, *inputs), {})

    def _constant(self, array: Array, name: str) -> Value:
        return self._graph.add_initializer(Tensor.from_array(array, name), name)

    def _insert(self, place: Node, op_type: str, inputs: tuple[Value | None, ...], attributes: dict[str, Attribute]) -> Value:
        node = Node(op_type, inputs, 1, attributes, version=self._version, name=f"{place.name}_{op_type}")
        self._graph.insert_before(place, node)
        self._infer(node)
        return node.output

    def _become(
        self, node: Node, op_type: str, inputs: tuple[Value | None, ...], attributes: dict[str, Attribute], domain: str = ""
    ) -> None:
        """Put another operator in the place of `node`, which makes its outputs."""
        version = self._version if not domain else 1
        made = Node(op_type, inputs, len(node.outputs), attributes, domain=domain, version=version, name=node.name)
        self._graph.insert_before(node, made)
        for old, new in zip(node.outputs, made.outputs, strict=True):
            new.name, new.type = old.name, old.type
            old.replace_all_uses_with(new)
        self._graph.remove(node)
        self._forget_shapes(made.outputs)
        self._infer(made)

    def _redirect(self, node: Node, value: Value) -> None:
        """Let whoever reads the output of `node` read `value`."""
        node.output.replace_all_uses_with(value)
        self._graph.remove(node)

    def _forget_shapes(self, values: Iterable[Value]) -> None:
        """Note that values have channels that pad their last block, which no shape of the file counts."""
        for value in values:
            self._blocked.add(value)
            if value.type is not None and not value.is_graph_output:
                value.type = TensorType(value.type.dtype) if isinstance(value.type, TensorType) else value.type


def _unblocked(weights: Tensor, block: int, inner: int) -> Array:
    """Return weights [output channels, input channels, height, width] of blocks.

    They are stored as [output blocks, input blocks, height, width, `inner` input channels, `block` output channels].
    """
    outputs, inputs, height, width = weights.shape
    blocks = weights.numpy().reshape(outputs // block, inputs // inner, height, width, inner, block)
    plain = np.ascontiguousarray(blocks.transpose(0, 5, 1, 4, 2, 3)).reshape(weights.shape)
    weights.release()
    return plain
