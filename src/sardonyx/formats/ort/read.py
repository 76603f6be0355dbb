"""Files of ONNX Runtime's format to models, by way of the messages that ONNX has for the same parts.

    model = read(file)
    places = large_data(file)         where the elements of large initializers lie

Weights stay in the file: messages have keys in their place, as `formats/wire.py` has it. What only ONNX Runtime's kernels need
(edges, hashes and types of kernels, optimizations that a smaller build of it would apply) is left out; models mean the same.
Versions 1 to 6 of the format differ in such parts only, and later ones may add fields. External data, which a tensor names by an
offset, is in the file of the model's name with `.data` behind.

Source: the public schema of ONNX Runtime, and its account of the versions of the format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sardonyx.errors import InvalidArgument
from sardonyx.formats.external_data import ExternalData
from sardonyx.formats.files import Content
from sardonyx.formats.flat.blocks import in_blocks
from sardonyx.formats.flat.reader import Table, read_root
from sardonyx.formats.flat.schema_ort import ORT
from sardonyx.formats.model_format import LARGE_BYTES, ModelFile
from sardonyx.formats.onnx_read import read_model
from sardonyx.formats.onnx_tensor import TensorReader
from sardonyx.formats.protos import Message, protos
from sardonyx.formats.wire import RAW_DATA, Blob
from sardonyx.ir import Model

__all__ = ["large_data", "read"]

_STRING, _GRAPH = 8, 5
_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings", 9: "tensors", 10: "graphs"}
"""Kind of an attribute -> the field of its value, of the same name here and in ONNX."""
_UNKNOWN, _VALUE, _PARAM = range(3)


def read(file: ModelFile) -> Model:
    """Return the model of a file.

    Raises:
        InvalidFlatBuffer: an offset, a count, a text or an enumerator of the file is wrong, or a part is missing.
        InvalidGraph: the model contradicts itself.
        SardonyxError: what `read_model` raises.
    """
    reader = _Reader(file.content)
    proto = reader.model(_root(file))
    external = ExternalData(file.folder, file.path, file.in_memory)
    data_name = f"{file.path.name}.data" if file.path is not None else ""
    for message, offset in reader.external:
        if not data_name:
            raise InvalidArgument(f"initializer {message.name!r}: its data is in another file, and a model from memory has none")
        message.data_location = 1
        for key, text in (("location", data_name), ("offset", str(offset))):
            message.external_data.add(key=key, value=text)
    tensors = TensorReader(file.content, reader.blobs, external)
    model = read_model(proto, tensors, file.path)
    file.stamps.update(external.stamps)
    blobs = list(reader.blobs.values())
    for tensor, place in tensors.placed.items():
        if isinstance(place, int):
            file.note(tensor, blobs[place].offset, blobs[place].size_bytes)
        else:
            file.placed[tensor] = place
    return model


def large_data(file: ModelFile) -> Sequence[tuple[int, int]]:
    """Return offset and length of the elements of large initializers of the main graph, in the order of the file."""
    model = _root(file).table("model")
    graph = None if model is None else model.table("graph")
    places = {tensor.blob("raw_data") for tensor in (() if graph is None else graph.tables("initializers"))}
    return sorted(place for place in places if place[1] >= LARGE_BYTES)


def _root(file: ModelFile) -> Table:
    label = "model" if file.path is None else Path(os.fspath(file.path)).name
    return read_root(in_blocks(file.content), ORT, label)


class _Reader:
    """Makes messages of tables."""

    def __init__(self, content: Content) -> None:
        """Prepare to read a file with this content."""
        self._content = content
        self._nonce = os.urandom(16)
        self.blobs: dict[bytes, Blob] = {}
        """What stands in `raw_data` of a tensor -> where its data lies."""
        self.external: list[tuple[Message, int]] = []
        """Tensors whose data is in another file, with the offset there."""

    def model(self, root: Table) -> Message:
        """Return the ModelProto of a file."""
        version = root.text("ort_version")
        if not (version.isascii() and version.isdigit()):
            root.refuse("ort_version", f"{version[:40]!r} is no version of the format; expected a number")
        table = root.table("model")
        if table is None:
            root.refuse("model", "it is absent")
        proto = protos().ModelProto(ir_version=table.integer("ir_version"), model_version=table.integer("model_version"))
        for field in ("producer_name", "producer_version", "domain", "doc_string"):
            _set(proto, field, table.text(field))
        for entry in table.tables("opset_import"):
            proto.opset_import.add(domain=entry.text("domain"), version=entry.integer("version"))
        for entry in table.tables("metadata_props"):
            proto.metadata_props.add(key=entry.text("key"), value=entry.text("value"))
        graph = table.table("graph")
        if graph is None:
            table.refuse("graph", "it is absent")
        self._graph(proto.graph, graph)
        _set(proto.graph, "doc_string", table.text("graph_doc_string"))
        return proto

    def _graph(self, proto: Message, table: Table) -> None:
        proto.name = "graph"
        infos = {info.text("name"): info for info in table.tables("node_args")}
        ends = [(proto.input, table.texts("inputs")), (proto.output, table.texts("outputs"))]
        for tensor in table.tables("initializers"):
            self._tensor(proto.initializer.add(), tensor)
        for sparse in table.tables("sparse_initializers"):
            self._sparse(proto.sparse_initializer.add(), sparse)
        for node in table.tables("nodes"):
            self._node(proto.node.add(), node)
        for messages, names in ends:
            for name in names:
                self._info(messages.add(name=name), infos.get(name))
        interface = {name for _, names in ends for name in names}
        for name, info in infos.items():
            if name and name not in interface and info.table("type") is not None:
                self._info(proto.value_info.add(name=name), info)

    def _node(self, proto: Message, table: Table) -> None:
        for field in ("name", "doc_string", "domain", "op_type"):
            _set(proto, field, table.text(field))
        proto.input.extend(table.texts("inputs"))
        proto.output.extend(table.texts("outputs"))
        for attribute in table.tables("attributes"):
            self._attribute(proto.attribute.add(), attribute)

    def _attribute(self, proto: Message, table: Table) -> None:
        kind = table.integer("type")
        proto.name = table.text("name")
        if kind == _GRAPH:
            graph = table.table("g")
            if graph is None:
                table.refuse("g", "it is absent, in an attribute that is a graph")
            proto.type = kind
            self._graph(proto.g, graph)
            return
        field = _FIELDS.get(kind)
        if field is None:
            table.refuse("type", f"an attribute of kind {kind} cannot be in this format")
        proto.type = kind
        if field == "f":
            proto.f = table.real("f")
        elif field == "i":
            proto.i = table.integer("i")
        elif field == "s":
            proto.s = table.octets("s")
        elif field == "strings":
            proto.strings.extend(table.octet_list("strings"))
        elif field == "t":
            tensor = table.table("t")
            if tensor is None:
                table.refuse("t", "it is absent, in an attribute that is a tensor")
            self._tensor(proto.t, tensor)
        elif field == "tensors":
            for tensor in table.tables("tensors"):
                self._tensor(proto.tensors.add(), tensor)
        elif field == "graphs":
            for graph in table.tables("graphs"):
                self._graph(proto.graphs.add(), graph)
        else:
            getattr(proto, field).extend(table.numbers(field).tolist())

    def _tensor(self, proto: Message, table: Table) -> None:
        _set(proto, "name", table.text("name"))
        _set(proto, "doc_string", table.text("doc_string"))
        proto.data_type = table.integer("data_type")
        proto.dims.extend(table.numbers("dims").tolist())
        if proto.data_type == _STRING:
            proto.string_data.extend(table.octet_list("string_data"))
            return
        if "raw_data" not in table and table.integer("external_data_offset") >= 0:
            self.external.append((proto, table.integer("external_data_offset")))
            return
        start, size_bytes = table.blob("raw_data")
        if size_bytes < LARGE_BYTES:
            proto.raw_data = bytes(self._content.read(start, size_bytes))
            return
        key = self._nonce + len(self.blobs).to_bytes(8, "little")
        self.blobs[key] = Blob(start, size_bytes, RAW_DATA)
        proto.raw_data = key

    def _sparse(self, proto: Message, table: Table) -> None:
        for field, message in (("values", proto.values), ("indices", proto.indices)):
            tensor = table.table(field)
            if tensor is None:
                table.refuse(field, "it is absent")
            self._tensor(message, tensor)
        proto.dims.extend(table.numbers("dims").tolist())

    def _info(self, proto: Message, table: Table | None) -> None:
        if table is None:
            return
        _set(proto, "doc_string", table.text("doc_string"))
        kind = table.table("type")
        if kind is not None:
            self._type(proto.type, kind)

    def _type(self, proto: Message, table: Table) -> None:
        _set(proto, "denotation", table.text("denotation"))
        value = table.union("value")
        if value is None:
            return
        if value.name == "TensorTypeAndShape":
            proto.tensor_type.elem_type = value.integer("elem_type")
            shape = value.table("shape")
            if shape is not None:
                self._shape(proto.tensor_type.shape, shape)
            return
        inner = value.table("elem_type" if value.name == "SequenceType" else "value_type")
        if value.name == "SequenceType":
            proto.sequence_type.SetInParent()
        else:
            proto.map_type.key_type = value.integer("key_type")
        if inner is not None:
            self._type(proto.sequence_type.elem_type if value.name == "SequenceType" else proto.map_type.value_type, inner)

    def _shape(self, proto: Message, table: Table) -> None:
        proto.SetInParent()
        for dimension in table.tables("dim"):
            entry = proto.dim.add()
            _set(entry, "denotation", dimension.text("denotation"))
            size = dimension.table("value")
            kind = _UNKNOWN if size is None else size.integer("dim_type")
            if size is not None and kind == _VALUE:
                entry.dim_value = size.integer("dim_value")
            elif size is not None and kind == _PARAM:
                entry.dim_param = size.text("dim_param")


def _set(proto: Message, field: str, text: str) -> None:
    """Set a field whose text is not empty."""
    if text:
        setattr(proto, field, text)
