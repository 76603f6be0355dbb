"""Models to and from the package `onnx_ir`, and rewrite rules of `onnxscript` as a pass; extra `onnxscript`.

    converted = to_onnx_ir(model)                     an onnx_ir.Model; weights are shared, not copied
    model = from_onnx_ir(converted)

    options = SessionOptions()
    options.add_pass(OnnxscriptRules(rules))          rules: RewriteRules of onnxscript, or a RewriteRuleSet

Values keep names, types and metadata; symbolic dimensions keep their names, and dimensions that are computed from several become
unknown, to be inferred again.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from sardonyx import errors
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import (
    Attribute,
    AttributeKind,
    Expr,
    Function,
    Graph,
    Model,
    Node,
    OptionalType,
    SequenceType,
    SparseTensorType,
    Tensor,
    TensorType,
    Value,
    ValueType,
)
from sardonyx.ir.shape import anonymous, symbol
from sardonyx.optimize.contract import Context, Level
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS

__all__ = ["OnnxscriptRules", "from_onnx_ir", "to_onnx_ir"]

Foreign: TypeAlias = Any
"""An object of onnx_ir or onnxscript: the packages are optional, so their types may be absent when ours are checked."""

_IDENTITY_VERSION = 16
_TENSORS = (AttributeKind.TENSOR, AttributeKind.TENSORS)
_GRAPHS = (AttributeKind.GRAPH, AttributeKind.GRAPHS)
_TYPES = (AttributeKind.TYPE, AttributeKind.TYPES)
_SPARSE = (AttributeKind.SPARSE_TENSOR, AttributeKind.SPARSE_TENSORS)


class OnnxscriptRules:
    """Apply rewrite rules that were written for onnxscript.

    Holds before: functions inlined. Holds after: the same. Cost: two conversions, O(nodes), and what onnxscript takes.
    """

    def __init__(self, rules: Foreign, *, name: str = "onnxscript_rules", level: Level = Level.BASIC) -> None:
        """Take RewriteRules or a RewriteRuleSet of onnxscript; `name` is what reports and `disabled_optimizers` call them."""
        self.name, self.level = name, level
        self._rules = rules if hasattr(rules, "apply_to_model") else _onnxscript_pattern().RewriteRuleSet(list(rules))

    def run(self, model: Model, context: Context) -> bool:
        """Rewrite; whether any rule fired."""
        converted = to_onnx_ir(model)
        if not self._rules.apply_to_model(converted):
            return False
        found = from_onnx_ir(converted)
        model.graph, model.functions, model.opset_imports = found.graph, found.functions, found.opset_imports
        context.facts.clear()
        INLINE_FUNCTIONS.run(model, context)
        INFER_SHAPES.run(model, context)
        return True


def to_onnx_ir(model: Model) -> Foreign:
    """Return the onnx_ir.Model for `model`.

    Raises:
        InvalidArgument: the package is not installed.
        NotImplemented: sparse attributes, which onnx_ir does not have.
    """
    ir = _onnx_ir()
    writer = _Writer(ir)
    functions = [
        ir.Function(
            function.domain,
            function.name,
            function.overload,
            graph=writer.graph(function.graph, dict(function.opset_imports)),
            attributes=[_formal(ir, writer, name, default) for name, default in function.attributes.items()],
        )
        for function in model.functions.values()
    ]
    return ir.Model(
        writer.graph(model.graph, dict(model.opset_imports)),
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.version,
        doc_string=model.doc,
        functions=functions,
        metadata_props=dict(model.metadata),
    )


def from_onnx_ir(converted: Foreign) -> Model:
    """Return the model for an onnx_ir.Model."""
    imports = dict(converted.graph.opset_imports)
    model = Model(_Reader(imports).graph(converted.graph), imports, ir_version=converted.ir_version)
    for function in converted.functions.values():
        own = dict(function.opset_imports)
        reader = _Reader(own)
        attributes = {attr.name: None if attr.value is None else reader.attribute(attr) for attr in function.attributes.values()}
        found = Function(
            function.domain, function.name, reader.graph(function.graph), own, overload=function.overload, attributes=attributes
        )
        model.functions[found.id] = found
    model.producer_name, model.producer_version = converted.producer_name or "", converted.producer_version or ""
    model.domain, model.doc, model.version = converted.domain or "", converted.doc_string or "", converted.model_version or 0
    model.metadata = dict(converted.metadata_props)
    return model


def _onnx_ir() -> ModuleType:
    try:
        import onnx_ir  # optional, and slow to import
    except ImportError as error:
        raise InvalidArgument("the package onnx_ir is not installed: pip install sardonyx[onnxscript]") from error
    found: ModuleType = onnx_ir
    return found


def _onnxscript_pattern() -> Foreign:
    try:
        from onnxscript.rewriter import pattern  # optional, and slow to import
    except ImportError as error:
        raise InvalidArgument("the package onnxscript is not installed: pip install sardonyx[onnxscript]") from error
    return pattern


class _Writer:
    """Makes objects of onnx_ir; values of all graphs by what they were made from."""

    def __init__(self, ir: ModuleType) -> None:
        self._ir = ir
        self._values: dict[Value, Foreign] = {}

    def graph(self, graph: Graph, imports: dict[str, int] | None = None) -> Foreign:
        """Return a graph with all that is nested in it."""
        inputs = [self._value(value) for value in graph.inputs]
        initializers = [self._value(value) for value in graph.initializers.values()]
        nodes = [self._node(node) for node in graph]
        outputs = [self._output(graph, value, nodes) for value in graph.outputs]
        return self._ir.Graph(
            inputs,
            outputs,
            nodes=nodes,
            initializers=initializers,
            name=graph.name or "graph",
            doc_string=graph.doc or None,
            opset_imports=imports,
            metadata_props=graph.metadata,
        )

    def _output(self, graph: Graph, value: Value, nodes: list[Foreign]) -> Foreign:
        """Return the value that represents an output.

        A value of an outer graph goes through an Identity, since onnx_ir does not allow it as an output.
        """
        own = value in graph.inputs or value in graph.initializers.values()
        if own or (value.producer is not None and value.producer.graph is graph):
            return self._values[value]
        type_, shape = self._type(value.type)
        copy = self._ir.Value(type=type_, shape=shape)
        nodes.append(self._ir.Node("", "Identity", [self._value(value)], outputs=[copy], version=_IDENTITY_VERSION))
        return copy

    def _value(self, value: Value) -> Foreign:
        if value not in self._values:
            type_, shape = self._type(value.type)
            constant = None if value.constant is None else self._tensor(value.constant, value.name)
            self._values[value] = self._ir.Value(
                name=value.name or None,
                type=type_,
                shape=shape,
                const_value=constant,
                doc_string=value.doc or None,
                metadata_props=value.metadata,
            )
        return self._values[value]

    def _node(self, node: Node) -> Foreign:
        attributes = [self.attribute(name, attribute) for name, attribute in node.attributes.items()]
        inputs = [None if value is None else self._value(value) for value in node.inputs]
        outputs = [self._value(value) for value in node.outputs]
        return self._ir.Node(
            node.domain,
            node.op_type,
            inputs,
            attributes,
            overload=node.overload,
            outputs=outputs,
            version=node.version,
            name=node.name or None,
            doc_string=node.doc or None,
            metadata_props=node.metadata,
        )

    def attribute(self, name: str, attribute: Attribute) -> Foreign:
        """Return an attribute, or a reference to one of the calling node."""
        kind = self._ir.AttributeType(int(attribute.kind))
        if attribute.reference is not None:
            return self._ir.Attr(name, kind, None, attribute.reference)
        return self._ir.Attr(name, kind, self._content(attribute))

    def _content(self, attribute: Attribute) -> Foreign:
        kind, value = attribute.kind, attribute.value
        if kind in _SPARSE:
            raise errors.NotImplemented("onnx_ir has no sparse attributes; turn them into dense tensors first")
        if kind in _TENSORS:
            return self._tensor(value) if kind is AttributeKind.TENSOR else [self._tensor(item) for item in value]
        if kind in _GRAPHS:
            return self.graph(value) if kind is AttributeKind.GRAPH else [self.graph(item) for item in value]
        if kind in _TYPES:
            types = [self._ir.TypeAndShape(*self._type(item)) for item in (value if isinstance(value, tuple) else [value])]
            return types[0] if kind is AttributeKind.TYPE else types
        return list(value) if isinstance(value, tuple) else value

    def _tensor(self, tensor: Tensor, name: str = "") -> Foreign:
        if tensor.dtype is DataType.STRING:
            texts = [str(text).encode() for text in tensor.numpy().reshape(-1)]
            return self._ir.StringTensor(np.array(texts, object).reshape(tensor.shape), name=name or tensor.name or None)
        kind = self._ir.DataType(int(tensor.dtype))
        return self._ir.Tensor(tensor.numpy(), kind, shape=self._ir.Shape(tensor.shape), name=name or tensor.name or None)

    def _type(self, type_: ValueType | None) -> tuple[Foreign, Foreign]:
        """Return what onnx_ir keeps apart: the type, and the shape of the innermost tensor. Maps, which it lacks, are unknown."""
        if isinstance(type_, (TensorType, SparseTensorType)):
            make = self._ir.TensorType if isinstance(type_, TensorType) else self._ir.SparseTensorType
            shape = None if type_.shape is None else self._ir.Shape([_dimension(dim) for dim in type_.shape])
            return make(self._ir.DataType(int(type_.dtype))), shape
        if isinstance(type_, (SequenceType, OptionalType)):
            inner, shape = self._type(type_.element)
            make = self._ir.SequenceType if isinstance(type_, SequenceType) else self._ir.OptionalType
            return (None, None) if inner is None else (make(inner), shape)
        return None, None


def _formal(ir: ModuleType, writer: _Writer, name: str, default: Attribute | None) -> Foreign:
    return ir.Attr(name, ir.AttributeType.UNDEFINED, None) if default is None else writer.attribute(name, default)


def _dimension(dim: int | Expr) -> int | str | None:
    if isinstance(dim, int):
        return dim
    return None if dim.name is None or dim.name.startswith("?") else dim.name


class _Reader:
    """Makes objects of ours; values of all graphs by what they were made from."""

    def __init__(self, imports: dict[str, int]) -> None:
        self._imports = imports
        self._values: dict[Foreign, Value] = {}

    def graph(self, graph: Foreign) -> Graph:
        """Return a graph with all that is nested in it."""
        found = Graph(graph.name or "", [self._value(value) for value in graph.inputs])
        found.doc, found.metadata = graph.doc_string or "", dict(graph.metadata_props) or None
        for name, value in graph.initializers.items():
            initializer = self._value(value)
            initializer.name = name
            initializer.constant = _tensor(value.const_value, name)
            initializer.type = TensorType(initializer.constant.dtype, initializer.constant.shape)
            found.initializers[name] = initializer
        for node in graph:
            found.append(self._node(node))
        for value in graph.outputs:
            found.add_output(self._value(value))
        return found

    def _value(self, value: Foreign) -> Value:
        if value not in self._values:
            made = Value(value.name or "", _type(value.type, value.shape))
            made.doc, made.metadata = value.doc_string or "", dict(value.metadata_props) or None
            self._values[value] = made
        return self._values[value]

    def _node(self, node: Foreign) -> Node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        version = node.version or self._imports.setdefault(domain, 1)
        found = Node(
            node.op_type,
            [None if value is None else self._value(value) for value in node.inputs],
            [self._value(value) for value in node.outputs],
            {attr.name: self.attribute(attr) for attr in node.attributes.values()},
            domain=domain,
            version=version,
            name=node.name or "",
            overload=node.overload,
        )
        found.doc, found.metadata = node.doc_string or "", dict(node.metadata_props) or None
        return found

    def attribute(self, attr: Foreign) -> Attribute:
        """Return an attribute, or a reference to one of the calling node."""
        kind = AttributeKind(int(attr.type))
        if attr.ref_attr_name:
            return Attribute(kind, None, attr.ref_attr_name)
        return Attribute(kind, self._content(kind, attr.value))

    def _content(self, kind: AttributeKind, value: Foreign) -> Foreign:
        if kind in _TENSORS:
            return _tensor(value) if kind is AttributeKind.TENSOR else tuple(_tensor(item) for item in value)
        if kind in _GRAPHS:
            return self.graph(value) if kind is AttributeKind.GRAPH else tuple(self.graph(item) for item in value)
        if kind in _TYPES:
            types = tuple(_type(item.type, item.shape) for item in (value if isinstance(value, Sequence) else [value]))
            return types[0] if kind is AttributeKind.TYPE else types
        return tuple(value) if kind >= AttributeKind.FLOATS else value


def _tensor(tensor: Foreign, name: str = "") -> Tensor:
    if int(tensor.dtype) == DataType.STRING:
        texts = [text.decode() if isinstance(text, bytes) else str(text) for text in np.asarray(tensor.numpy()).reshape(-1)]
        return Tensor.from_array(np.array(texts, object).reshape(tuple(tensor.shape)), name)
    return Tensor.from_array(tensor.numpy(), name or tensor.name or "")


def _type(type_: Foreign, shape: Foreign) -> ValueType | None:
    """Return a type of ours, from the type and the shape of the innermost tensor."""
    kind = type(type_).__name__
    if kind in ("SequenceType", "OptionalType"):
        inner = _type(type_.elem_type, shape)
        return SequenceType(inner) if kind == "SequenceType" else OptionalType(inner)
    if kind not in ("TensorType", "SparseTensorType") or int(type_.dtype) == DataType.UNDEFINED:
        return None
    make = TensorType if kind == "TensorType" else SparseTensorType
    dims = None if shape is None else tuple(_read_dimension(dim) for dim in shape)
    return make(DataType(int(type_.dtype)), dims)


def _read_dimension(dim: Foreign) -> int | Expr:
    if isinstance(dim, int):
        return dim
    return anonymous() if dim.value is None else symbol(str(dim.value))
