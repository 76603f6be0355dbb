"""A model to ModelProto: links become names.

Values keep their names where these are free; one without a name, or whose name is taken in its graph or in one around it, gets a
new one. Outputs that nobody reads and that have no name stay without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sardonyx import trace
from sardonyx.formats.onnx_annotations import (
    plain_metadata,
    write_devices,
    write_quantization,
    write_tensor_notes,
    write_training,
)
from sardonyx.formats.onnx_attribute import write_attribute
from sardonyx.formats.onnx_types import write_denotations, write_type
from sardonyx.formats.protos import Message
from sardonyx.ir import Function, Graph, Model, Node, Tensor, Value
from sardonyx.ir.replaced import original_domain
from sardonyx.ir.types import DENOTATIONS

__all__ = ["StoreTensor", "write_model"]

StoreTensor: TypeAlias = Callable[[Message, Tensor, str], None]
"""States an initializer in an empty TensorProto under a name; decides where its data goes."""

_IR_WITH_FREE_INITIALIZERS, _IR_WITH_FUNCTIONS, _IR_WITH_OVERLOADS = 4, 8, 10


def write_model(proto: Message, model: Model, store: StoreTensor) -> None:
    """State `model` in an empty ModelProto; raises what reading a tensor's data raises.

    The version of the file format is raised to the first that has what the model uses.
    """
    proto.ir_version = max(model.ir_version, _needed_ir_version(model))
    _set(proto, producer_name=model.producer_name, producer_version=model.producer_version)
    _set(proto, domain=model.domain, doc_string=model.doc)
    proto.model_version = model.version
    _write_metadata(proto.metadata_props, model.metadata)
    imports = dict(model.opset_imports)
    _GraphWriter(imports, store).graph(proto.graph, model.graph)
    for function in model.functions.values():
        imports.setdefault(function.domain, 1)
        _write_function(proto.functions.add(), function, store)
    _write_imports(proto.opset_import, imports)
    write_training(proto, model)


def _needed_ir_version(model: Model) -> int:
    if any(function.overload for function in model.functions.values()):
        return _IR_WITH_OVERLOADS
    return _IR_WITH_FUNCTIONS if model.functions else _IR_WITH_FREE_INITIALIZERS


def _write_function(proto: Message, function: Function, store: StoreTensor) -> None:
    imports = dict(function.opset_imports)
    writer = _GraphWriter(imports, store)
    _set(proto, domain=function.domain, name=function.name, overload=function.overload, doc_string=function.doc)
    writer.names.enter(function.graph)
    proto.input.extend(writer.names.of(value) for value in function.graph.inputs)
    proto.output.extend(writer.names.of(value) for value in function.graph.outputs)
    for name, default in function.attributes.items():
        if default is None:
            proto.attribute.append(name)
        else:
            write_attribute(proto.attribute_proto.add(), name, default, writer.graph)
    writer.body(proto, function.graph)
    _write_metadata(proto.metadata_props, function.metadata)
    _write_imports(proto.opset_import, imports)


def _set(proto: Message, **texts: str) -> None:
    """Set the fields whose text is not empty; a field that is set to "" would still take its place in the file."""
    for field, text in texts.items():
        if text:
            setattr(proto, field, text)


def _write_imports(entries: Message, imports: Mapping[str, int]) -> None:
    for domain, version in imports.items():
        entry = entries.add()
        entry.domain, entry.version = domain, version


def _write_metadata(entries: Message, metadata: Mapping[str, str] | None) -> None:
    for key, text in plain_metadata(metadata).items():
        entry = entries.add()
        entry.key, entry.value = key, text


class _Names:
    """The names that values have in the file."""

    def __init__(self) -> None:
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._serials: dict[str, int] = {}

    def of(self, value: Value | None) -> str:
        """Return the name of `value`; "" for one that is left out, or that nobody reads."""
        return "" if value is None else self._names.get(value, "")

    def enter(self, graph: Graph) -> list[str]:
        """Name the values of `graph`, those of its interface first; returns the names, to be given to `leave`."""
        before = len(self._names)
        for value in (*graph.inputs, *graph.initializers.values()):
            self._name(value)
        for value in graph.outputs:
            if value.producer is not None and value.producer.graph is graph:
                self._name(value)
        for node in graph:
            for value in node.outputs:
                if value.name or value.use_count:
                    self._name(value)
        return list(self._names.values())[before:]

    def leave(self, names: list[str]) -> None:
        """Make the names of an inner graph free again."""
        self._taken.difference_update(names)

    def _name(self, value: Value) -> None:
        if value in self._names:
            return
        base = name = value.name or "value"
        while name in self._taken or (not value.name and name == base):
            self._serials[base] = serial = self._serials.get(base, 0) + 1
            name = f"{base}_{serial}"
        self._taken.add(name)
        self._names[value] = name


def _unique(name: str, taken: set[str]) -> str:
    """Return `name`, or `name` with a number where it is taken; onnxruntime loads no graph with two nodes of one name."""
    found, serial = name, 0
    while found and found in taken:
        serial += 1
        found = f"{name}_{serial}"
    taken.add(found)
    return found


class _GraphWriter:
    """Writes the main graph, or the body of one function, with all that is nested in it."""

    def __init__(self, imports: dict[str, int], store: StoreTensor) -> None:
        self.names = _Names()
        self._imports, self._store = imports, store

    def graph(self, proto: Message, graph: Graph) -> None:
        """State `graph` in an empty GraphProto."""
        added = self.names.enter(graph)
        _set(proto, name=graph.name or "graph", doc_string=graph.doc)
        _write_metadata(proto.metadata_props, graph.metadata)
        for value in graph.inputs:
            self._info(proto.input.add(), value)
        for value in graph.initializers.values():
            if value.constant is not None:
                tensor_proto = proto.initializer.add()
                self._store(tensor_proto, value.constant, self.names.of(value))
                write_tensor_notes(tensor_proto, value)
        self.body(proto, graph)
        for value in graph.outputs:
            self._info(proto.output.add(), value)
        self._quantization(proto, graph)
        self.names.leave(added)

    def _quantization(self, proto: Message, graph: Graph) -> None:
        initializers = {self.names.of(value) for value in graph.initializers.values()}
        made = [value for node in graph for value in node.outputs]
        for value in dict.fromkeys([*graph.inputs, *graph.initializers.values(), *made]):
            if value.metadata:
                write_quantization(proto, value, self.names.of(value), initializers)

    def body(self, proto: Message, graph: Graph) -> None:
        """State the nodes, and what is known of their values, in a GraphProto or FunctionProto."""
        outputs, taken = set(graph.outputs), set[str]()
        for node in graph:
            self._node(proto.node.add(), node, _unique(node.name, taken))
            for value in node.outputs:
                says = value.type is not None or value.doc or plain_metadata(value.metadata)
                if says and value not in outputs and self.names.of(value):
                    self._info(proto.value_info.add(), value)

    def _info(self, proto: Message, value: Value) -> None:
        _set(proto, name=self.names.of(value), doc_string=value.doc)
        if value.type is not None:
            write_type(proto.type, value.type)
        metadata = dict(value.metadata or {})
        write_denotations(proto.type, metadata.pop(DENOTATIONS, ""))
        _write_metadata(proto.metadata_props, metadata)

    def _node(self, proto: Message, node: Node, name: str) -> None:
        domain = original_domain(node.domain)
        _set(proto, op_type=node.op_type, domain=domain, name=name, overload=node.overload, doc_string=node.doc)
        version = self._imports.setdefault(domain, node.version)
        if version != node.version:
            trace.event("save.version_differs", node=repr(node), written_as=version)
        proto.input.extend(map(self.names.of, node.inputs))
        proto.output.extend(map(self.names.of, node.outputs))
        for key, attribute in node.attributes.items():
            write_attribute(proto.attribute.add(), key, attribute, self.graph)
        _write_metadata(proto.metadata_props, node.metadata)
        write_devices(proto, node)
