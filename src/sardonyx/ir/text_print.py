"""Print models and graphs in the IR text form, which `text.py` describes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sardonyx.ir.attribute import Attribute, AttributeKind, AttributeValue, SparseTensor
from sardonyx.ir.graph import Graph, Node, Value
from sardonyx.ir.model import Function, Model
from sardonyx.ir.shape import symbols_in
from sardonyx.ir.tensor import Tensor
from sardonyx.ir.text_tokens import quoted, spelled
from sardonyx.ir.text_types import print_elements, print_float, print_type
from sardonyx.ir.types import SparseTensorType, TensorType
from sardonyx.ir.walk import nested_graphs

__all__ = ["print_graph", "print_model"]


def print_model(model: Model, *, max_elements: int | None = 16, types: bool = True) -> str:
    """Print a model.

    Args:
        model: what to print.
        max_elements: larger tensors are printed as `...`; None prints all elements, so that parsing gives an equal model.
        types: whether to print the types of values between the nodes.
    """
    graphs = [model.graph, *(function.graph for function in model.functions.values())]
    printer = _Printer(model.opset_imports, max_elements, types, _tags(graphs))
    lines = [f"ir_version {model.ir_version}", f"opset {_imports(model.opset_imports)}"]
    texts = (("producer_name", model.producer_name), ("producer_version", model.producer_version), ("domain", model.domain))
    lines += [f"{key} {quoted(text)}" for key, text in (*texts, ("doc", model.doc)) if text]
    lines += [f"version {model.version}"] if model.version else []
    if model.metadata:
        lines.append(f"metadata {{{', '.join(f'{quoted(key)}: {quoted(value)}' for key, value in model.metadata.items())}}}")
    lines.append(printer.graph(model.graph, set(), ""))
    lines += [printer.function(function) for function in model.functions.values()]
    return "\n".join(lines) + "\n"


def print_graph(
    graph: Graph, *, opset_imports: Mapping[str, int] | None = None, max_elements: int | None = 16, types: bool = True
) -> str:
    """Print a graph; versions are compared with `opset_imports`, or from a first line that the text then begins with."""
    imports = _found_imports(graph) if opset_imports is None else opset_imports
    printer = _Printer(imports, max_elements, types, _tags([graph]))
    header = f"opset {_imports(imports)}\n" if opset_imports is None and imports else ""
    return f"{header}{printer.graph(graph, set(), '')}\n"


def _found_imports(graph: Graph) -> dict[str, int]:
    versions: dict[str, Counter[int]] = {}
    for inner in nested_graphs(graph):
        for node in inner:
            versions.setdefault(node.domain, Counter())[node.version] += 1
    return {domain: counter.most_common(1)[0][0] for domain, counter in sorted(versions.items())}


def _imports(imports: Mapping[str, int]) -> str:
    return ", ".join(f"{version}" if not domain else f"{spelled(domain)} {version}" for domain, version in imports.items())


def _tags(graphs: Iterable[Graph]) -> dict[str, str]:
    """Return tags for the anonymous dimensions that occur more than once, numbered in order of occurrence."""
    counts: Counter[str] = Counter()
    for outer in graphs:
        for graph in nested_graphs(outer):
            for value in [*graph.inputs, *(output for node in graph for output in node.outputs)]:
                if isinstance(value.type, (TensorType, SparseTensorType)):
                    for dim in value.type.shape or ():
                        counts.update(name for name in symbols_in(dim) if name.startswith("?"))
    return {name: f"?{index}" for index, name in enumerate(name for name, count in counts.items() if count > 1)}


class _Printer:
    """The state of printing one text: the names given to values so far."""

    def __init__(self, imports: Mapping[str, int], max_elements: int | None, types: bool, tags: Mapping[str, str]) -> None:
        self._imports, self._max_elements, self._types, self._tags = imports, max_elements, types, tags
        self._names: dict[Value, str] = {}
        self._serial = 0

    def function(self, function: Function) -> str:
        overload = f"<{spelled(function.overload)}>" if function.overload else ""
        defaults = [
            spelled(name) if default is None else self._attribute(name, default, set(), "")
            for name, default in function.attributes.items()
        ]
        attributes = f" {{{', '.join(defaults)}}}" if defaults else ""
        outer, self._imports = self._imports, function.opset_imports
        body = self._body(function.graph, set(), "", f"    opset {_imports(function.opset_imports)}\n")
        self._imports = outer
        inputs = self._inputs(function.graph)
        return f"function {_operator(function.domain, function.name)}{overload}({inputs}){attributes} -> {body}"

    def graph(self, graph: Graph, visible: set[str], indent: str) -> str:
        body = self._body(graph, visible, indent, "")
        name = f" {spelled(graph.name)}" if graph.name else ""
        return f"graph{name}({self._inputs(graph)}) -> {body}"

    def _inputs(self, graph: Graph) -> str:
        return ", ".join(self._typed(value, True) for value in graph.inputs)

    def _body(self, graph: Graph, visible: set[str], indent: str, header: str) -> str:
        visible = set(visible)
        for value in [*graph.inputs, *graph.initializers.values()]:
            self._name(value, visible)
        for node in graph:
            for value in node.outputs:
                self._name(value, visible)
        inner = indent + "    "
        outputs = ", ".join(self._typed(value, _is_made_in(value, graph)) for value in graph.outputs)
        lines = [f"{inner}{self._initializer(value)}\n" for value in graph.initializers.values()]
        lines += [f"{inner}{self._node(node, visible, inner)}\n" for node in graph]
        return f"({outputs}) {{\n{header}{''.join(lines)}{indent}}}"

    def _name(self, value: Value, visible: set[str]) -> str:
        known = self._names.get(value)
        if known is not None:
            return known
        text = spelled(value.name)
        if not value.name or text in visible:
            text = f"%{self._serial}"
            self._serial += 1
        visible.add(text)
        self._names[value] = text
        return text

    def _typed(self, value: Value, with_type: bool) -> str:
        name = self._name(value, set())
        return f"{name}: {print_type(value.type, self._tags)}" if with_type and value.type is not None else name

    def _initializer(self, value: Value) -> str:
        name = self._name(value, set())
        return name if value.constant is None else f"{name}: {self._tensor(value.constant, ' = ')}"

    def _tensor(self, tensor: Tensor, between: str = " ") -> str:
        return f"{print_type(TensorType(tensor.dtype, tensor.shape), {})}{between}{print_elements(tensor, self._max_elements)}"

    def _node(self, node: Node, visible: set[str], indent: str) -> str:
        inputs = ", ".join("_" if value is None else self._name(value, visible) for value in node.inputs)
        version = "" if node.version == self._imports.get(node.domain, 1) else f":{node.version}"
        overload = f"<{spelled(node.overload)}>" if node.overload else ""
        attributes = ", ".join(self._attribute(name, value, visible, indent) for name, value in node.attributes.items())
        text = f"{self._outputs(node)} = {_operator(node.domain, node.op_type)}{version}{overload}({inputs})"
        return f"{text}{f' {{{attributes}}}' if attributes else ''}{f' @{spelled(node.name)}' if node.name else ''}"

    def _outputs(self, node: Node) -> str:
        return ", ".join(
            "_" if not value.name and not value.use_count else self._typed(value, self._types and not _given_out(value, node.graph))
            for value in node.outputs
        )

    def _attribute(self, name: str, attribute: Attribute, visible: set[str], indent: str) -> str:
        kind = attribute.kind
        if attribute.reference is not None:
            return f"{spelled(name)}: {kind.name.lower()} = @{spelled(attribute.reference)}"
        if kind is AttributeKind.TENSOR:
            return f"{spelled(name)}: {self._tensor(attribute.value, ' = ')}"
        if kind is AttributeKind.GRAPH:
            return f"{spelled(name)} = {self.graph(attribute.value, visible, indent)}"
        if kind not in _SINGULAR:
            return f"{spelled(name)}{_annotation(kind)} = {self._scalar(kind, attribute.value, visible, indent)}"
        items = ", ".join(self._scalar(_SINGULAR[kind], item, visible, indent) for item in attribute.value)
        return f"{spelled(name)}{_annotation(kind, bool(items))} = [{items}]"

    def _scalar(self, kind: AttributeKind, value: AttributeValue, visible: set[str], indent: str) -> str:
        if kind is AttributeKind.FLOAT:
            return print_float(value)
        if kind is AttributeKind.STRING:
            return quoted(value)
        if kind is AttributeKind.TENSOR:
            return self._tensor(value)
        if kind is AttributeKind.GRAPH:
            return self.graph(value, visible, indent)
        if kind is AttributeKind.SPARSE_TENSOR:
            return self._sparse(value)
        return print_type(value, self._tags) if kind is AttributeKind.TYPE else str(int(value))

    def _sparse(self, value: SparseTensor) -> str:
        return f"{list(value.shape)} {self._tensor(value.values)} at {self._tensor(value.indices)}"


_SINGULAR = {
    AttributeKind.FLOATS: AttributeKind.FLOAT,
    AttributeKind.INTS: AttributeKind.INT,
    AttributeKind.STRINGS: AttributeKind.STRING,
    AttributeKind.TENSORS: AttributeKind.TENSOR,
    AttributeKind.GRAPHS: AttributeKind.GRAPH,
    AttributeKind.SPARSE_TENSORS: AttributeKind.SPARSE_TENSOR,
    AttributeKind.TYPES: AttributeKind.TYPE,
}
_SELF_EVIDENT = {
    AttributeKind.FLOAT,
    AttributeKind.INT,
    AttributeKind.STRING,
    AttributeKind.FLOATS,
    AttributeKind.INTS,
    AttributeKind.STRINGS,
}


def _annotation(kind: AttributeKind, filled: bool = True) -> str:
    return "" if filled and kind in _SELF_EVIDENT else f": {kind.name.lower()}"


def _operator(domain: str, name: str) -> str:
    if not domain:
        return quoted(name) if "." in name else spelled(name)
    joined = f"{domain}.{name}"
    return joined if spelled(joined) == joined and "." not in name else f"{quoted(domain)}.{quoted(name)}"


def _given_out(value: Value, graph: Graph | None) -> bool:
    return any(user is graph for user, _ in value.uses)


def _is_made_in(value: Value, graph: Graph) -> bool:
    return value.producer is not None and value.producer.graph is graph
