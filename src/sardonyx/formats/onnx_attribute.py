"""AttributeProto to attributes and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from sardonyx.errors import InvalidGraph
from sardonyx.formats.onnx_tensor import TensorReader, write_tensor
from sardonyx.formats.onnx_text import text_of
from sardonyx.formats.onnx_types import read_type, write_type
from sardonyx.formats.protos import Message
from sardonyx.ir import Attribute, AttributeKind, Graph, SparseTensor
from sardonyx.ir.attribute import AttributeValue

__all__ = ["AttributeReader", "write_attribute", "write_sparse"]

_INT, _TENSOR, _GRAPH, _GRAPHS = 2, 4, 5, 10
_KINDS: tuple[AttributeKind | None, ...] = (None, *(AttributeKind(number) for number in range(1, 15)))
_FIELDS = {
    AttributeKind.FLOAT: "f",
    AttributeKind.INT: "i",
    AttributeKind.STRING: "s",
    AttributeKind.TENSOR: "t",
    AttributeKind.GRAPH: "g",
    AttributeKind.SPARSE_TENSOR: "sparse_tensor",
    AttributeKind.TYPE: "tp",
    AttributeKind.FLOATS: "floats",
    AttributeKind.INTS: "ints",
    AttributeKind.STRINGS: "strings",
    AttributeKind.TENSORS: "tensors",
    AttributeKind.GRAPHS: "graphs",
    AttributeKind.SPARSE_TENSORS: "sparse_tensors",
    AttributeKind.TYPES: "type_protos",
}
_ReadGraph: TypeAlias = Callable[[Message], Graph]
_KIND_OF_FIELD = {field: kind for kind, field in _FIELDS.items()}


def _no_kind(proto: Message) -> None:
    """Fill the entry of a kind that `read` handles itself, and of a missing kind."""


class AttributeReader:
    """Reads the attributes of one model."""

    def __init__(self, tensors: TensorReader) -> None:
        """Prepare to read; `tensors` reads the tensors among them, and has the lists that were taken out."""
        self._lists = tensors.lists
        self._read_tensor = tensors.read
        self._readers: tuple[Callable[[Any], object], ...] = (
            _no_kind,
            lambda proto: proto.f,
            lambda proto: proto.i,
            lambda proto: proto.s.decode("utf-8", "surrogateescape"),
            _no_kind,
            _no_kind,
            lambda proto: tuple(proto.floats[:]),
            lambda proto: tuple(proto.ints[:]),
            lambda proto: tuple([text.decode("utf-8", "surrogateescape") for text in proto.strings]),
            lambda proto: tuple([tensors.read(tensor, "attribute") for tensor in proto.tensors]),
            _no_kind,
            lambda proto: tensors.read_sparse(proto.sparse_tensor, "attribute") if proto.HasField("sparse_tensor") else None,
            lambda proto: tuple([tensors.read_sparse(tensor, "attribute") for tensor in proto.sparse_tensors]),
            lambda proto: read_type(proto.tp) if proto.HasField("tp") else None,
            lambda proto: tuple([read_type(item) for item in proto.type_protos]),
        )

    def read(self, protos: Message, read_graph: _ReadGraph) -> dict[str, Attribute]:
        """Return the attributes in a list of AttributeProto, by name.

        Args:
            protos: the list.
            read_graph: reads a subgraph.

        Raises:
            InvalidGraph: a payload contradicts its type, or two attributes have one name; and whatever a tensor or graph raises.
        """
        found: dict[str, Attribute] = {}
        kinds, readers, read_tensor = _KINDS, self._readers, self._read_tensor
        for proto in protos:
            number = proto.type
            kind = kinds[number]
            value: AttributeValue
            if number == _TENSOR:
                value = read_tensor(proto.t, "attribute") if proto.HasField("t") else None
            elif number == _GRAPH:
                value = read_graph(proto.g) if proto.HasField("g") else None
            elif number == _GRAPHS:
                value = tuple([read_graph(graph) for graph in proto.graphs])
            else:
                value = readers[number](proto)
            name = proto.name
            if value or (number == _INT and proto.HasField("i")):
                found[name] = Attribute(kind, value)
            else:
                found[name] = self._empty(proto, kind, value, read_graph)
        if len(found) != len(protos):
            raise self._repeated(protos)
        return found

    def _empty(self, proto: Message, kind: AttributeKind | None, value: AttributeValue, read_graph: _ReadGraph) -> Attribute:
        """Read an attribute whose payload is 0, empty, absent, taken out or a reference, or may lie in another field."""
        taken = self._lists.get(proto.s)
        if taken is not None:
            return taken
        present = [_KIND_OF_FIELD[field.name] for field, _ in proto.ListFields() if field.name in _KIND_OF_FIELD]
        if proto.ref_attr_name:
            if kind is None:
                raise InvalidGraph(f"attribute {proto.name!r} refers to {proto.ref_attr_name!r} but has no type")
            return Attribute(kind, None, text_of(proto.ref_attr_name))
        if kind is None:
            return self._untyped(proto, present, read_graph)
        if [other for other in present if other is not kind]:
            raise InvalidGraph(
                f"attribute {proto.name!r} says it is {kind.name}, but its value is {present[0].name} "
                f"(field {_FIELDS[present[0]]!r}); expected its value in field {_FIELDS[kind]!r}"
            )
        if value is None:
            raise InvalidGraph(f"attribute {proto.name!r} says it is {kind.name}, but has no value (field {_FIELDS[kind]!r})")
        return Attribute(kind, value)

    def _untyped(self, proto: Message, present: list[AttributeKind], read_graph: _ReadGraph) -> Attribute:
        """Read an attribute of the first IR versions, which had no type: the one payload that is there decides."""
        if len(present) != 1:
            raise InvalidGraph(f"attribute {proto.name!r} has no type and {len(present)} values; expected its type to be set")
        copy = type(proto)()
        copy.CopyFrom(proto)
        copy.type = int(present[0])
        return self.read([copy], read_graph)[proto.name]

    def _repeated(self, protos: Message) -> InvalidGraph:
        names = [proto.name for proto in protos]
        name = next(name for name in names if names.count(name) > 1)
        return InvalidGraph(f"attribute {name!r} is given {names.count(name)} times; expected once")


def write_attribute(proto: Message, name: str, attribute: Attribute, write_graph: Callable[[Message, Graph], None]) -> None:
    """State `attribute` in an empty AttributeProto; `write_graph(graph_proto, graph)` is called for subgraphs."""
    kind, value = attribute.kind, attribute.value
    proto.name = name
    proto.type = int(kind)
    if attribute.reference is not None:
        proto.ref_attr_name = attribute.reference
        return
    writers: dict[AttributeKind, Callable[[object, Any], None]] = {
        AttributeKind.TENSOR: lambda message, tensor: write_tensor(message, tensor, tensor.name),
        AttributeKind.GRAPH: write_graph,
        AttributeKind.SPARSE_TENSOR: write_sparse,
        AttributeKind.TYPE: write_type,
    }
    field = _FIELDS[kind]
    singular = _SINGULAR.get(kind, kind)
    if singular in writers and singular is kind:
        getattr(proto, field).SetInParent()
        writers[kind](getattr(proto, field), value)
    elif singular in writers:
        for item in value:
            writers[singular](getattr(proto, field).add(), item)
    elif kind is AttributeKind.STRING:
        proto.s = value.encode("utf-8", "surrogateescape")
    elif kind is AttributeKind.STRINGS:
        proto.strings.extend(text.encode("utf-8", "surrogateescape") for text in value)
    elif singular is kind:
        setattr(proto, field, value)
    else:
        getattr(proto, field).extend(value)


_SINGULAR = {
    AttributeKind.FLOATS: AttributeKind.FLOAT,
    AttributeKind.INTS: AttributeKind.INT,
    AttributeKind.STRINGS: AttributeKind.STRING,
    AttributeKind.TENSORS: AttributeKind.TENSOR,
    AttributeKind.GRAPHS: AttributeKind.GRAPH,
    AttributeKind.SPARSE_TENSORS: AttributeKind.SPARSE_TENSOR,
    AttributeKind.TYPES: AttributeKind.TYPE,
}


def write_sparse(proto: Message, sparse: SparseTensor) -> None:
    """State `sparse` in an empty SparseTensorProto."""
    write_tensor(proto.values, sparse.values, sparse.values.name)
    write_tensor(proto.indices, sparse.indices, sparse.indices.name)
    proto.dims.extend(sparse.shape)
