"""Function bodies that the standard gives for operators, as serialized FunctionProtos, which `formats` can turn into the IR.

A plain body depends on the operator and its opset version alone; a context-dependent one also on the node's attributes and the
types of its inputs. Both come from the `onnx` package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.forks import without_fork
from sardonyx.ir import (
    Attribute,
    AttributeKind,
    Expr,
    Graph,
    Node,
    OptionalType,
    SequenceType,
    Tensor,
    TensorType,
    Value,
    ValueType,
)

__all__ = ["FunctionBody", "function_body"]

GraphWriter = Callable[[Graph], bytes]
"""Serializes a graph as a GraphProto."""

_MOST_VERSION = (1 << 31) - 1
"""The newest opset that `onnx` can be asked for; files may name newer ones."""


@dataclasses.dataclass(frozen=True, slots=True)
class FunctionBody:
    """What an operator does, in terms of other operators."""

    proto: bytes
    """A serialized FunctionProto, which may define attributes that the node's values must replace."""
    opset_imports: dict[str, int]
    """Domain -> opset version under which its nodes are read."""


def function_body(node: Node, write_graph: GraphWriter | None = None) -> FunctionBody | None:
    """Return the standard's function body for `node`, read under the node's opset version.

    Args:
        node: the node; `type` of its inputs should be known, as bodies such as that of CastLike depend on them.
        write_graph: serializes graph attributes; without it, a node that has one (SequenceMap, FlexAttention) has no body.

    Returns:
        None where the standard gives no body, or none for these types. Outputs that the node does not list are left out, since
        bodies do not compute them.
    """
    with without_fork():
        import onnx.defs

    try:
        version = max(0, min(node.version, _MOST_VERSION))
        schema = onnx.defs.get_schema(node.op_type, version, "" if node.domain == "ai.onnx" else node.domain)
    except onnx.defs.SchemaError:
        return None
    if not schema.has_function and not schema.has_context_dependent_function:
        return None
    if node.subgraphs and write_graph is None:
        return None
    return _body(schema, node, write_graph)


def _body(schema: Any, node: Node, write_graph: GraphWriter | None) -> FunctionBody | None:
    """Return the body whose own opset is the newest that the node's opset allows, or else the oldest there is."""
    with without_fork():
        import onnx

    versions = sorted(schema.context_dependent_function_opset_versions or schema.function_opset_versions)
    version = max((item for item in versions if item <= node.version), default=versions[0])
    if schema.has_context_dependent_function:
        types = [_type_proto(value).SerializeToString() for value in node.inputs]
        written = schema.get_context_dependent_function_with_opset_version(
            version, _node_proto(node, write_graph).SerializeToString(), types
        )
    else:
        written = schema.get_function_with_opset_version(version)
    if not written:
        return None
    function = onnx.FunctionProto.FromString(bytes(written))
    del function.output[len(node.outputs) :]
    imports = {"" if item.domain == "ai.onnx" else item.domain: item.version for item in function.opset_import}
    return FunctionBody(function.SerializeToString(), imports or {"": version})


def _node_proto(node: Node, write_graph: GraphWriter | None) -> Any:
    with without_fork():
        import onnx

    names = [_input_name(index, value) for index, value in enumerate(node.inputs)]
    outputs = [value.name or f"output_{index}" for index, value in enumerate(node.outputs)]
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain, name=node.name, input=names, output=outputs)
    for name, attribute in node.attributes.items():
        proto.attribute.append(_attribute_proto(name, attribute, write_graph))
    return proto


def _input_name(index: int, value: Value | None) -> str:
    return "" if value is None else value.name or f"input_{index}"


def _attribute_proto(name: str, attribute: Attribute, write_graph: GraphWriter | None) -> object:
    with without_fork():
        import onnx
        from onnx import helper, numpy_helper

    value, kind = attribute.value, attribute.kind
    if attribute.reference is not None:
        return onnx.AttributeProto(name=name, type=int(kind), ref_attr_name=attribute.reference)
    if kind is AttributeKind.TENSOR:
        return helper.make_attribute(name, _tensor_proto(value, numpy_helper))
    if kind is AttributeKind.GRAPH and write_graph is not None:
        return helper.make_attribute(name, onnx.GraphProto.FromString(write_graph(value)))
    return helper.make_attribute(name, value, attr_type=int(kind))


def _tensor_proto(tensor: Tensor, numpy_helper: Any) -> object:
    return numpy_helper.from_array(tensor.numpy(), tensor.name)


def _type_proto(value: Value | None) -> Any:
    with without_fork():
        import onnx

    return onnx.TypeProto() if value is None or value.type is None else _proto_of(value.type)


def _proto_of(type: ValueType) -> object:
    with without_fork():
        import onnx
        from onnx import helper

    if isinstance(type, TensorType):
        shape = None if type.shape is None else [str(dim) if isinstance(dim, Expr) else dim for dim in type.shape]
        return helper.make_tensor_type_proto(int(type.dtype), shape)
    if isinstance(type, SequenceType) and type.element is not None:
        return helper.make_sequence_type_proto(_proto_of(type.element))
    if isinstance(type, OptionalType) and type.element is not None:
        return helper.make_optional_type_proto(_proto_of(type.element))
    return onnx.TypeProto()
