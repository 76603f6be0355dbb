"""Models to files of ONNX Runtime's format, by way of the messages that ONNX has for the same parts.

    losses = write(model, path)

ONNX Runtime infers and checks nothing of such a file: values have types, attributes their defaults, and nodes the edges between
them, the operators' versions and the number of values of each parameter. The model's types are taken as they are; whoever saves
infers them before. Functions cannot be in the format.

Source: the public schema of ONNX Runtime, and files that it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx import errors
from sardonyx.dtypes import DataType
from sardonyx.formats.elements import pack
from sardonyx.formats.files import replaced
from sardonyx.formats.flat.schema_ort import ORT
from sardonyx.formats.flat.writer import write as write_flat
from sardonyx.formats.model_format import Loss
from sardonyx.formats.onnx_tensor import write_tensor
from sardonyx.formats.onnx_write import write_model
from sardonyx.formats.ort.operators import Describe, OperatorFacts, facts_of
from sardonyx.formats.protos import Message, protos
from sardonyx.ir import Model, Tensor
from sardonyx.ir.walk import all_graphs, all_nodes

__all__ = ["to_bytes", "write"]

VERSION = "6"
"""The number of the format that is written, that of ONNX Runtime 1.15 and later."""
_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors"}
_STRING = 8


def write(model: Model, path: Path, describe: Describe = facts_of) -> Sequence[Loss]:
    """Write a model to a file, all or nothing; returns what the format does not hold.

    Args:
        model: the model, without functions, and with the types of all values.
        path: where it goes.
        describe: says what the format says of operators; by default those of the standard.

    Raises:
        NotImplemented: the model has functions, or a type or an attribute that the format lacks.
        InvalidArgument: it is larger than a FlatBuffer can be, 2 GiB.
        OSError: the file cannot be written.
    """
    content, losses = to_bytes(model, describe)
    with replaced(path) as stream:
        stream.write(content)
    return losses


def to_bytes(model: Model, describe: Describe = facts_of) -> tuple[bytes, list[Loss]]:
    """Return the bytes of a file, and what the format does not hold; raises as `write` does."""
    if model.functions:
        names = ", ".join(f"{domain}.{name}" for domain, name, _ in list(model.functions)[:5])
        raise errors.NotImplemented(
            f"{model.label}: ONNX Runtime's format has no functions, the model has {names}; inline them first"
        )
    writer = _Writer()
    proto = protos().ModelProto()
    write_model(proto, model, writer.store)
    writer.note_nodes(model, describe)
    content = write_flat(ORT, writer.session(proto))
    return content, list(_losses(model))


def _losses(model: Model) -> Iterator[Loss]:
    """Return what is left out of the file."""
    if model.training:
        yield Loss("training_info", "there is no place for it; it is left out")
    if model.configurations:
        yield Loss("configurations of devices", "there is no place for them; they are left out")
    for graph in all_graphs(model):
        if graph.metadata:
            yield Loss(f"graph {graph.name!r}", "its metadata is left out")
    count = sum(bool(node.metadata) for node in all_nodes(model))
    if count:
        yield Loss(f"{count} nodes", "their metadata is left out")


class _Writer:
    """Makes tables of messages."""

    def __init__(self) -> None:
        self._tensors: dict[bytes, Tensor] = {}
        self._facts: dict[tuple[str, str], OperatorFacts] = {}
        self._used: dict[str, OperatorFacts] = {}

    def store(self, proto: Message, tensor: Tensor, name: str) -> None:
        """State a tensor, with a key in the place of its elements."""
        if tensor.dtype is DataType.STRING:
            write_tensor(proto, tensor, name)
            return
        key = f"sardonyx {len(self._tensors)}".encode()
        self._tensors[key] = tensor
        proto.name, proto.data_type, proto.raw_data = name, int(tensor.dtype), key
        proto.dims.extend(tensor.shape)

    def note_nodes(self, model: Model, describe: Describe) -> None:
        """Find what the file says of each operator."""
        for node in all_nodes(model):
            self._facts[node.domain, node.op_type] = describe(node)
        self._used = {
            f"{domain}:{name}:{facts.since_version}": facts
            for (domain, name), facts in self._facts.items()
            if facts.inputs or facts.outputs
        }

    def session(self, proto: Message) -> Mapping[str, Any]:
        """Return the root table of the file for a ModelProto."""
        model = {
            "ir_version": proto.ir_version,
            "opset_import": [{"domain": entry.domain, "version": entry.version} for entry in proto.opset_import],
            "producer_name": proto.producer_name,
            "producer_version": proto.producer_version,
            "domain": proto.domain,
            "model_version": proto.model_version,
            "doc_string": proto.doc_string,
            "graph": self._graph(proto.graph, {}),
            "graph_doc_string": proto.graph.doc_string,
            "metadata_props": [{"key": entry.key, "value": entry.value} for entry in proto.metadata_props],
        }
        kernels = [
            {
                "op_id": name,
                "kernel_type_str_args": [
                    {"kernel_type_str": kind, "args": [{"arg_type": side, "index": index} for side, index in args]}
                    for kind, args in sorted(facts.types().items())
                ],
            }
            for name, facts in sorted(self._used.items())
        ]
        return {"ort_version": VERSION, "model": model, "kernel_type_str_resolver": {"op_kernel_type_str_args": kernels}}

    def _graph(self, proto: Message, outer: Mapping[str, Message]) -> dict[str, Any]:
        """Return a graph; `outer` has the values of graphs around it."""
        infos = {info.name: info for info in (*proto.input, *proto.value_info, *proto.output)}
        for tensor in proto.initializer:
            infos.setdefault(tensor.name, _info_of(tensor))
        own = set(infos) | {name for node in proto.node for name in node.output}
        visible = {**outer, **infos}
        nodes = [self._node(node, index, own, visible) for index, node in enumerate(proto.node)]
        used = {name for node in nodes for name in (*node["inputs"], *node["outputs"], *node["implicit_inputs"])}
        names = dict.fromkeys([*infos, *sorted(used), *(item.name for item in proto.output)])
        return {
            "initializers": [self._tensor(tensor) for tensor in proto.initializer],
            "node_args": [self._value(name, visible.get(name)) for name in names],
            "nodes": nodes,
            "max_node_index": len(nodes),
            "node_edges": _edges(nodes),
            "inputs": [item.name for item in proto.input],
            "outputs": [item.name for item in proto.output],
        }

    def _node(self, proto: Message, index: int, own: set[str], visible: Mapping[str, Message]) -> dict[str, Any]:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        facts = self._facts[domain, proto.op_type]
        given = {attribute.name for attribute in proto.attribute}
        attributes = [*proto.attribute, *(item for item in facts.defaults if item.name not in given)]
        captured = dict.fromkeys(name for attribute in proto.attribute if attribute.type == 5 for name in _captured(attribute.g))
        return {
            "name": proto.name,
            "doc_string": proto.doc_string,
            "domain": domain,
            "since_version": facts.since_version,
            "index": index,
            "op_type": proto.op_type,
            "inputs": list(proto.input),
            "outputs": list(proto.output),
            "attributes": [self._attribute(attribute, proto, visible) for attribute in attributes],
            "input_arg_counts": facts.counts(len(proto.input)),
            "implicit_inputs": list(captured),
        }

    def _attribute(self, proto: Message, node: Message, visible: Mapping[str, Message]) -> dict[str, Any]:
        field = _FIELDS.get(proto.type)
        if field is None:
            raise errors.NotImplemented(
                f"node {node.name!r} ({node.op_type}): ONNX Runtime's format has no attributes of the kind of {proto.name!r} "
                f"({proto.type}); write ONNX instead"
            )
        value: object = getattr(proto, field)
        if field == "t":
            value = self._tensor(proto.t)
        elif field == "tensors":
            value = [self._tensor(tensor) for tensor in proto.tensors]
        elif field == "g":
            value = self._graph(proto.g, visible)
        elif field not in ("f", "i", "s"):
            value = list(getattr(proto, field))
        return {"name": proto.name, "doc_string": proto.doc_string, "type": proto.type, field: value}

    def _tensor(self, proto: Message) -> dict[str, Any]:
        table = {
            "name": proto.name,
            "doc_string": proto.doc_string,
            "dims": list(proto.dims),
            "data_type": proto.data_type,
        }
        if proto.data_type == _STRING:
            return {**table, "string_data": list(proto.string_data)}
        tensor = self._tensors.get(proto.raw_data)
        return {**table, "raw_data": proto.raw_data if tensor is None else pack(tensor.numpy(), tensor.dtype)}

    def _value(self, name: str, info: Message | None) -> dict[str, Any]:
        if info is None or not info.HasField("type"):
            return {"name": name}
        return {"name": name, "doc_string": info.doc_string, "type": _type(info.type, name)}


def _info_of(tensor: Message) -> Message:
    info = protos().ValueInfoProto(name=tensor.name)
    info.type.tensor_type.elem_type = tensor.data_type
    info.type.tensor_type.shape.SetInParent()
    for size in tensor.dims:
        info.type.tensor_type.shape.dim.add(dim_value=size)
    return info


def _captured(graph: Message) -> Iterator[str]:
    """Return the names that a graph, or one in it, reads of graphs around it."""
    own = {item.name for item in (*graph.input, *graph.initializer)} | {name for node in graph.node for name in node.output}
    for node in graph.node:
        inner = (name for attribute in node.attribute if attribute.type == 5 for name in _captured(attribute.g))
        yield from (name for name in (*node.input, *inner) if name and name not in own)
    yield from (item.name for item in graph.output if item.name not in own)


def _edges(nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each node which outputs of others it reads, and who reads its own."""
    producers = {name: (node["index"], place) for node in nodes for place, name in enumerate(node["outputs"]) if name}
    reads: list[list[tuple[int, int, int]]] = [[] for _ in nodes]
    read_by: list[list[tuple[int, int, int]]] = [[] for _ in nodes]
    for node in nodes:
        for place, name in enumerate((*node["inputs"], *node["implicit_inputs"])):
            if name in producers:
                source, output = producers[name]
                reads[node["index"]].append((source, output, place))
                read_by[source].append((node["index"], output, place))
    return [
        {"node_index": index, "input_edges": sorted(reads[index]), "output_edges": sorted(read_by[index])}
        for index in range(len(nodes))
    ]


def _type(proto: Message, name: str) -> dict[str, Any]:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        table: dict[str, Any] = {"elem_type": tensor.elem_type}
        if tensor.HasField("shape"):
            table["shape"] = {"dim": [_dimension(dim) for dim in tensor.shape.dim]}
        return {"denotation": proto.denotation, "value": ("TensorTypeAndShape", table)}
    if kind == "sequence_type":
        return {"value": ("SequenceType", {"elem_type": _type(proto.sequence_type.elem_type, name)})}
    if kind == "map_type":
        inner = _type(proto.map_type.value_type, name)
        return {"value": ("MapType", {"key_type": proto.map_type.key_type, "value_type": inner})}
    if kind is None:
        return {}
    raise errors.NotImplemented(
        f"the value {name!r} is of a type that ONNX Runtime's format lacks ({kind}); it has tensors, sequences and maps"
    )


def _dimension(proto: Message) -> dict[str, Any]:
    kind = proto.WhichOneof("value")
    size: dict[str, Any] = {}
    if kind == "dim_value":
        size = {"dim_type": "VALUE", "dim_value": proto.dim_value}
    elif kind == "dim_param":
        size = {"dim_type": "PARAM", "dim_param": proto.dim_param}
    return {"value": size, "denotation": proto.denotation}
