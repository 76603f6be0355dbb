"""Say in words what a pattern expects at a place, and what the model has there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx.ir import Node, TensorType, Value
from sardonyx.ir.attribute import AttributeValue
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.edit import small_constant, tensor_of
from sardonyx.optimize.fusion_report import label_text
from sardonyx.optimize.report import NodeLabel, labels
from sardonyx.optimize.terms import (
    AnyValue,
    AttributeCapture,
    Choice,
    Found,
    Nothing,
    Number,
    Operation,
    Output,
    Rest,
    Term,
    Traced,
    attribute_value,
    satisfies,
)

__all__ = ["expected_text", "found_text", "label_of", "node_text", "place_text", "value_text"]

_MOST_ELEMENTS = 4
"""Up to how many elements of a constant are shown."""


def label_of(node: Node) -> NodeLabel:
    """Return what reports call a node."""
    return labels([node])[0]


def node_text(node: Node) -> str:
    """Return the operator of a node and its name, or that of its first output."""
    return label_text(label_of(node))


def place_text(node: Node, value: Value | None, position: int) -> str:
    """Return which input of a node is meant; `position` counts where the value is left out."""
    index = next((index for index, given in enumerate(node.inputs) if given is value), position)
    schema = find_schema(node.domain, node.op_type, node.version)
    formals = () if schema is None else schema.inputs
    name = formals[index].name if index < len(formals) else str(index)
    return f"input {name} of {node_text(node)}"


def expected_text(term: Term, value: Value | None, found: Found) -> str:
    """Return what a term matches, when `found` is bound and `value` stands there instead."""
    if isinstance(term, Traced):
        return expected_text(term.term, value, found)
    if isinstance(term, Choice):
        texts = dict.fromkeys(expected_text(alternative, value, found) for alternative in term.terms)
        return ", or ".join(texts)
    if isinstance(term, AnyValue):
        return _expected_value(term, value, found)
    if isinstance(term, Number):
        return f"a constant of one element, {term.value:.7g}"
    if isinstance(term, Output):
        return _expected_output(term, value, found)
    return "no value" if isinstance(term, Nothing) else f"any values ({term.name} of the pattern)"


def _expected_value(term: AnyValue, value: Value | None, found: Found) -> str:
    known = found.values.get(term.name)
    if isinstance(known, Value) and known is not value:
        return f"the same value as for {term.name} elsewhere in the pattern, {_name(known)}"
    kind = "a constant" if term.must_be_constant else "a value"
    return f"{kind}, or none" if term.may_be_missing else f"{kind} ({term.name} of the pattern)"


def _expected_output(term: Output, value: Value | None, found: Found) -> str:
    operation, node = term.operation, None if value is None else value.producer
    known = found.nodes.get(operation)
    if known is not None:
        return f"output {term.index} of {node_text(known)}, which matched before"
    name = f"{operation.domain}.{operation.op_type}" if operation.domain else operation.op_type
    which = f"output {term.index} of " if term.index else ""
    if node is None or (node.domain, node.op_type) != (operation.domain, operation.op_type):
        return f"{which}{name}"
    return f"{which}{name}{_expected_form(operation, node)}"


def _expected_form(operation: Operation, node: Node) -> str:
    """Return what an operator of the right name must have besides, where `node` differs in it."""
    limit = len(operation.inputs)
    if len(node.inputs) > limit and not any(isinstance(term, Rest) for term in operation.inputs):
        return f" with at most {limit} inputs"
    wanted = {name: operation.constraints[name] for name in _unmet(operation, node)}
    texts = [f"another {name}" if callable(value) else f"{name} = {_attribute(value)}" for name, value in wanted.items()]
    return f" with {', '.join(texts)}" if texts else " with other inputs"


def _unmet(operation: Operation, node: Node) -> list[str]:
    """Return the attributes of which `operation` demands other values than `node` has."""
    demands = {name: wanted for name, wanted in operation.constraints.items() if not isinstance(wanted, AttributeCapture)}
    return [name for name, wanted in demands.items() if not satisfies(attribute_value(node, name), wanted)]


def found_text(value: Value | None, term: Term, overridable: frozenset[Value]) -> str:
    """Return what stands where a term does not match."""
    text = value_text(value, overridable)
    node = None if value is None else value.producer
    operations = [item.operation for item in _alternatives(term) if isinstance(item, Output)]
    for operation in operations:
        if node is not None and (node.domain, node.op_type) == (operation.domain, operation.op_type):
            return text + _found_form(operation, node)
    return text


def _found_form(operation: Operation, node: Node) -> str:
    given = [f"{name} = {_attribute(attribute_value(node, name))}" for name in _unmet(operation, node)]
    if len(node.inputs) > len(operation.inputs):
        return f", with {len(node.inputs)} inputs"
    return f", with {', '.join(given)}" if given else ""


def _alternatives(term: Term) -> Sequence[Term]:
    if not isinstance(term, Choice):
        return [term]
    return [item for alternative in term.terms for item in _alternatives(alternative)]


def value_text(value: Value | None, overridable: frozenset[Value] = frozenset()) -> str:
    """Return where a value comes from, and its type."""
    if value is None:
        return "no value"
    typed = f", {_type(value)}" if _type(value) else ""
    if value in overridable:
        return f"{_name(value)}, an input with a default, which a feed may override{typed}"
    if tensor_of(value, overridable) is not None:
        return f"{_name(value)}, a constant{_elements(value, overridable)}{typed}"
    if value.producer is not None:
        made = f"{value.name}, made by" if value.name else "an output of"
        return f"{made} {node_text(value.producer)}{typed}"
    return f"{_name(value)}, an input of the graph{typed}"


def _elements(value: Value, overridable: frozenset[Value]) -> str:
    array = small_constant(value, overridable, max_elements=_MOST_ELEMENTS)
    return "" if array is None or array.size == 0 else f" ({array.tolist()})"


def _type(value: Value) -> str:
    if not isinstance(value.type, TensorType):
        return "" if value.type is None else str(value.type)
    shape = "of unknown rank" if value.shape is None else f"[{', '.join(map(str, value.shape))}]"
    return f"{value.dtype}{shape}" if value.shape is not None else f"{value.dtype} {shape}"


def _name(value: Value) -> str:
    return value.name or "a value without a name"


def _attribute(value: AttributeValue) -> str:
    """Return an attribute's value (Any: by its kind) as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return str(dict(value))
    return str(list(value)) if isinstance(value, tuple) else str(value)
