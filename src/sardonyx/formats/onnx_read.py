"""ModelProto to a model: names become links.

Names are resolved while the nodes are read, in one pass. A name that nothing has defined yet is looked for among the outputs of
later nodes and in the graphs around; a graph that needed the former is sorted afterwards. What cannot be linked (a value with two
producers or with none, a cycle) is an InvalidGraph. Constant nodes become initializers, but in functions, which have none.

"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from sardonyx import trace
from sardonyx.cancellation import check_cancelled
from sardonyx.config import LIMITS
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph, SardonyxError, located
from sardonyx.forks import without_fork
from sardonyx.formats.onnx_annotations import read_devices, read_quantization, read_tensor_notes, read_training
from sardonyx.formats.onnx_attribute import AttributeReader
from sardonyx.formats.onnx_tensor import TensorReader, densified
from sardonyx.formats.onnx_text import check_texts, text_of
from sardonyx.formats.onnx_types import read_denotations, read_type
from sardonyx.formats.protos import Message
from sardonyx.ir import Attribute, AttributeKind, Function, Graph, Model, Tensor, TensorType, Value
from sardonyx.ir.types import DENOTATIONS, SparseTensorType
from sardonyx.ir.verify import describe_cycle, describe_node
from sardonyx.spelling import nearest

__all__ = ["read_model"]

_FIRST_IR_WITH_OPSETS = 3
_FIRST_IR_WITH_NODE_METADATA = 10
_HINT_NAMES = 2000
_TENSOR = int(AttributeKind.TENSOR)
_SPARSE_TENSOR = int(AttributeKind.SPARSE_TENSOR)


def read_model(proto: Message, tensors: TensorReader, path: Path | None) -> Model:
    """Return the model that a ModelProto states.

    Args:
        proto: the message; not kept.
        tensors: reads its tensors.
        path: where it came from.

    Raises:
        InvalidGraph: names do not link, or a tensor or attribute contradicts itself.
        InvalidProtobuf: a name is no UTF-8 text.
        SardonyxError: what `TensorReader.read` and `read_type` raise.
    """
    reader = _ModelReader(proto, tensors)
    imports = {_domain(entry.domain): entry.version for entry in proto.opset_import}
    scope = _Scope(proto.graph.node, imports, None)
    model = Model(reader.graph(proto.graph, scope), imports, ir_version=proto.ir_version, path=path)
    model.producer_name, model.producer_version = text_of(proto.producer_name), text_of(proto.producer_version)
    model.domain, model.version, model.doc = text_of(proto.domain), proto.model_version, text_of(proto.doc_string)
    model.metadata = _metadata(proto) or {}
    try:
        for value in model.graph.inputs:
            if value.type is None:
                raise InvalidGraph(f"input {value.name!r} of the main graph has no type; expected an element type at least")
        _read_functions(model, proto.functions, reader)
        read_training(model, proto)
    except BaseException:
        model.dismantle()
        raise
    return model


def _read_functions(model: Model, protos: Message, reader: _ModelReader) -> None:
    for proto in protos:
        function = reader.function(proto, model.opset_imports)
        if function.id in model.functions:
            raise InvalidGraph(f"function {_function_name(function)} is defined twice; expected one, or different overloads")
        model.functions[function.id] = function


class _Scope:
    """The names that the nodes of one graph see."""

    __slots__ = ("depth", "imports", "nodes", "outer", "pending", "produced", "unsorted", "values")

    def __init__(self, nodes: Any, imports: dict[str, int], outer: _Scope | None) -> None:
        self.nodes, self.imports, self.outer = nodes, imports, outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.values: dict[str, Value] = {}
        self.pending: set[str] = set()
        self.produced: set[str] | None = None
        self.unsorted = False

    def produces(self, name: str) -> bool:
        """Return whether any node of the graph, read or not, has an output called `name`."""
        if self.produced is None:
            self.produced = {output for node in self.nodes for output in node.output}
        return name in self.produced

    def find(self, name: str) -> Value:
        """Return the value called `name` in this graph, of a node that is yet to come if need be, or in a graph around it."""
        scope: _Scope | None = self
        while scope is not None:
            value = scope.values.get(name)
            if value is not None:
                return value
            if scope.produces(name):
                scope.pending.add(name)
                scope.values[name] = value = Value(name)
                return value
            scope = scope.outer
        raise InvalidGraph(
            f"the value {name!r} is produced by nothing: no node, input or initializer of this graph, or of one around it, "
            f"has that name{self._hint(name)}"
        )

    def redefine(self, name: str) -> Value:
        """Return the value called `name`, which has been read before a node produced it; any other redefinition is an error."""
        value = self.values[name]
        if name not in self.pending:
            first = "an input or initializer of the graph" if value.producer is None else describe_node(value.producer)
            raise InvalidGraph(f"the value {name!r} has two producers, the other is {first}; expected one per name")
        self.pending.remove(name)
        self.unsorted = True
        return value

    def _hint(self, name: str) -> str:
        names: set[str] = set()
        scope: _Scope | None = self
        while scope is not None:
            names.update(itertools.islice(scope.values, _HINT_NAMES))
            scope = scope.outer
        check_texts([name, *names])
        close = nearest(name[:200], sorted(names), likeness=0.6)
        return f"; did you mean {close!r}?" if close else ""


class _ModelReader:
    def __init__(self, proto: Message, tensors: TensorReader) -> None:
        self._tensors = tensors
        self._read_tensor = tensors.read
        self._attributes = AttributeReader(tensors)
        self._ir_version: int = proto.ir_version
        self._tensor_types: dict[tuple[DataType, tuple[int, ...]], TensorType] = {}
        self._sparse_names: set[str] = set()
        self._has_functions, self._has_configurations = len(proto.functions) > 0, len(proto.configuration) > 0

    def graph(self, proto: Message, scope: _Scope) -> Graph:
        """Return the graph in a GraphProto, whose names `scope` holds."""
        if scope.depth > LIMITS.function_depth:
            raise InvalidGraph(f"subgraphs are nested more than {LIMITS.function_depth} levels deep")
        graph = Graph(text_of(proto.name))
        try:
            self._fill(graph, proto, scope)
        except BaseException:
            graph.dismantle()
            raise
        return graph

    def _fill(self, graph: Graph, proto: Message, scope: _Scope) -> None:
        graph.doc, graph.metadata = text_of(proto.doc_string), _metadata(proto)
        self._inputs(proto, graph, scope)
        self._initializers(proto, graph, scope)
        self._nodes(proto.node, graph, scope, initializers_allowed=True)
        _types(proto.value_info, scope)
        for info in proto.output:
            _output(info.name, graph, scope)
        _types(proto.output, scope)
        for value in graph.outputs if scope.outer is None else ():
            if value.name in self._sparse_names and isinstance(value.type, TensorType):
                value.type = SparseTensorType(value.type.dtype, value.type.shape)
        _finish(graph, scope)
        read_quantization(proto.quantization_annotation, scope.values)

    def function(self, proto: Message, model_imports: dict[str, int]) -> Function:
        """Return the function in a FunctionProto; domains that it does not import are read as the model imports them."""
        imports = model_imports | {_domain(entry.domain): entry.version for entry in proto.opset_import}
        scope = _Scope(proto.node, imports, None)
        graph = Graph(text_of(proto.name))
        function = Function(_domain(proto.domain), graph.name, graph, imports, overload=text_of(proto.overload))
        try:
            for name in proto.input:
                graph.inputs.append(_input(name, scope))
            self._nodes(proto.node, graph, scope, initializers_allowed=False)
            _types(proto.value_info, scope)
            for name in proto.output:
                _output(name, graph, scope)
            _finish(graph, scope)
            defaults = self._attributes.read(proto.attribute_proto, lambda body: self.graph(body, _Scope(body.node, imports, None)))
        except SardonyxError as error:
            graph.dismantle()
            raise located(error, f"function {_function_name(function)}") from error
        attributes: dict[str, Attribute | None] = dict.fromkeys(map(text_of, proto.attribute))
        attributes.update(defaults)
        function.attributes = attributes
        function.doc, function.metadata = text_of(proto.doc_string), _metadata(proto)
        return function

    def _inputs(self, proto: Message, graph: Graph, scope: _Scope) -> None:
        for info in proto.input:
            value = _input(info.name, scope)
            _describe(value, info)
            graph.inputs.append(value)

    def _initializers(self, proto: Message, graph: Graph, scope: _Scope) -> None:
        read = self._read_tensor
        for tensor_proto in proto.initializer:
            value = self._initializer(read(tensor_proto), graph, scope)
            if value is not None:
                read_tensor_notes(value, tensor_proto)
        for sparse_proto in proto.sparse_initializer:
            tensor = densified(self._tensors.read_sparse(sparse_proto))
            self._sparse_names.add(tensor.name)
            self._initializer(tensor, graph, scope)

    def _initializer(self, tensor: Tensor, graph: Graph, scope: _Scope) -> Value | None:
        name = tensor.name
        if not name:
            trace.event("load.ignored", what="initializer without a name", tensor=repr(tensor))
            return None
        value = scope.values.get(name)
        if value is None:
            value = scope.values[name] = Value(name, self._tensor_type(tensor))
        elif value.constant is not None:
            trace.event("load.duplicate_initializer", tensor=name, fallback="the last one counts")
            value.type = self._tensor_type(tensor)
        elif value.dtype is not None and value.dtype is not tensor.dtype:
            raise InvalidGraph(f"initializer {name!r} holds {tensor.dtype}, but the input of that name is declared as {value.type}")
        value.constant = tensor
        graph.initializers[name] = value
        return value

    def _constant(self, proto: Message, graph: Graph, scope: _Scope) -> bool:
        """Make an initializer of a Constant node; False where it holds no tensor, plain or sparse."""
        names, attributes, domain = proto.output[:], proto.attribute[:], proto.domain
        if len(names) != 1 or len(attributes) != 1 or (domain and domain != "ai.onnx"):
            return False
        name, attribute, values = names[0], attributes[0], scope.values
        if name and attribute.type == _SPARSE_TENSOR and attribute.name in ("value", "sparse_value"):
            tensor = densified(self._tensors.read_sparse(attribute.sparse_tensor, "constant"))
            self._sparse_names.add(name)
        elif name and attribute.type == _TENSOR and attribute.name == "value":
            tensor = self._read_tensor(attribute.t, "constant")
        else:
            return False
        if name not in values:
            value = Value(name)
        elif name in graph.initializers:
            trace.event("load.duplicate_initializer", tensor=name, fallback="the last one counts")
            value = values[name]
        else:
            value = scope.redefine(name)
        value.constant = tensor
        value.type = self._tensor_type(tensor)
        values[name] = graph.initializers[name] = value
        return True

    def _tensor_type(self, tensor: Tensor) -> TensorType:
        """Return the type of `tensor`, one object for all tensors alike."""
        key = tensor.dtype, tensor.shape
        found = self._tensor_types.get(key)
        if found is None:
            found = self._tensor_types[key] = TensorType(*key)
        return found

    def _nodes(self, protos: Message, graph: Graph, scope: _Scope, *, initializers_allowed: bool) -> None:
        """Read the nodes; the time to load a large model is spent here, so fields are read once and as slices, which is fastest."""
        values, look_up, find, imports = scope.values, scope.values.__getitem__, scope.find, scope.imports
        append, read_attributes = graph.append_new, self._attributes.read
        overloads, configured = self._has_functions, self._has_configurations
        metadata_exists = self._ir_version >= _FIRST_IR_WITH_NODE_METADATA
        texts: list[str] = []
        inputs: tuple[Value | None, ...]
        proto: Message = None

        def read_graph(subgraph: Message) -> Graph:
            return self.graph(subgraph, _Scope(subgraph.node, imports, scope))

        try:
            for proto in protos:
                check_cancelled()
                op_type = proto.op_type
                if op_type == "Constant" and initializers_allowed and self._constant(proto, graph, scope):
                    continue
                try:
                    inputs = tuple(map(look_up, proto.input[:]))
                except KeyError:
                    inputs = tuple([find(name) if name else None for name in proto.input])
                attributes = proto.attribute
                if attributes:
                    attributes = read_attributes(attributes, read_graph)
                    texts += attributes
                else:
                    attributes = {}
                outputs = []
                for name in proto.output[:]:
                    if name in values:
                        outputs.append(scope.redefine(name))
                        continue
                    value = Value(name)
                    outputs.append(value)
                    if name:
                        values[name] = value
                domain = proto.domain
                if not op_type:
                    raise InvalidGraph("it has no op_type; expected the name of an operator")
                if domain == "ai.onnx":
                    domain = ""
                version = imports.get(domain)
                if version is None:
                    version = self._missing_version(domain, imports)
                name = proto.name
                texts += (op_type, name)
                overload = text_of(proto.overload) if overloads else ""
                node = append(op_type, inputs, tuple(outputs), attributes, domain, version, name, overload)
                doc = proto.doc_string
                if doc:
                    node.doc = text_of(doc)
                if metadata_exists and proto.metadata_props:
                    node.metadata = _metadata(proto)
                if configured:
                    read_devices(node, proto)
        except SardonyxError as error:
            raise located(error, _node_place(proto)) from error
        check_texts(texts)

    def _missing_version(self, domain: str, imports: dict[str, int]) -> int:
        """Return the version of a domain that the model does not import: the latest known, as in ONNX Runtime.

        1 for a custom domain.
        """
        if not imports and self._ir_version >= _FIRST_IR_WITH_OPSETS:
            raise InvalidGraph(
                f"the model imports no operator set, which leaves the meaning of its operators open "
                f"(its ir_version is {self._ir_version}); expected an opset_import for domain {domain!r}"
            )
        text_of(domain)
        version = 1 if self._ir_version < _FIRST_IR_WITH_OPSETS else _latest_version(domain)
        trace.event("load.missing_opset_import", domain=domain, fallback=version)
        imports[domain] = version
        return version


def _latest_version(domain: str) -> int:
    with without_fork():
        import onnx.defs

    known = {"": onnx.defs.onnx_opset_version, "ai.onnx.ml": onnx.defs.onnx_ml_opset_version}
    return int(known[domain]()) if domain in known else 1


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else text_of(domain)


def _metadata(proto: Message) -> dict[str, str] | None:
    return {text_of(entry.key): text_of(entry.value) for entry in proto.metadata_props} or None


def _input(name: str, scope: _Scope) -> Value:
    if name in scope.values:
        raise InvalidGraph(f"two inputs of the graph are called {name!r}; expected different names")
    value = Value(name)
    if name:
        scope.values[name] = value
    return value


def _describe(value: Value, info: Message) -> None:
    try:
        value.type = read_type(info.type) if info.HasField("type") else value.type
    except SardonyxError as error:
        raise located(error, f"value {value.name!r}") from error
    value.doc = text_of(info.doc_string)
    if info.metadata_props:
        value.metadata = _metadata(info)
    denotations = read_denotations(info.type) if info.HasField("type") else ""
    if denotations:
        value.metadata = {**(value.metadata or {}), DENOTATIONS: denotations}


def _types(infos: Message, scope: _Scope) -> None:
    values = scope.values
    for info in infos:
        value = values.get(info.name)
        if value is not None and value.constant is None:
            _describe(value, info)


def _output(name: str, graph: Graph, scope: _Scope) -> None:
    try:
        graph.add_output(scope.find(name))
    except InvalidGraph as error:
        raise located(error, f"output {name!r} of graph {graph.name!r}") from error


def _finish(graph: Graph, scope: _Scope) -> None:
    check_texts(scope.values)
    if not scope.unsorted:
        return
    stuck = graph.sort()
    if stuck:
        raise InvalidGraph(f"graph {graph.name!r} has a cycle: {describe_cycle(stuck)}")
    trace.event("load.sorted", graph=graph.name, nodes=len(graph))


def _node_place(proto: Message) -> str:
    """Return the name that messages give a node that is being read, as `describe_node` does one that has been."""
    operator = f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type
    return f"node {proto.name!r} ({operator})" if proto.name else f"node ({operator}) -> {list(proto.output)}"


def _function_name(function: Function) -> str:
    overload = f":{function.overload}" if function.overload else ""
    return repr(f"{function.domain}.{function.name}{overload}")
