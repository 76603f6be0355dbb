"""Parse models and graphs from the IR text form, which `text.py` describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sardonyx.config import LIMITS
from sardonyx.ir.attribute import Attribute, AttributeKind, SparseTensor
from sardonyx.ir.graph import Graph, Node, Value
from sardonyx.ir.model import Function, Model
from sardonyx.ir.shape import Dim
from sardonyx.ir.tensor import Tensor
from sardonyx.ir.text_tokens import Token, Tokens, quoted
from sardonyx.ir.text_types import parse_elements, parse_number, parse_type
from sardonyx.ir.types import ValueType

__all__ = ["DEFAULT_OPSET", "parse_graph", "parse_model"]

DEFAULT_OPSET = 23
"""The version of ai.onnx that `parse_graph` reads a graph under where nothing says another."""


def parse_model(text: str) -> Model:
    """Parse a model; raises InvalidGraph naming line and column, what was found there and what was expected."""
    tokens = Tokens(text)
    try:
        return _read_model(tokens)
    except RecursionError:
        tokens.fail("brackets that are nested less deeply")


def _read_model(tokens: Tokens) -> Model:
    model = Model(Graph(), {})
    while tokens.at(*_HEADER):
        _HEADER[tokens.read().text](tokens, model)
    if not model.opset_imports:
        tokens.fail("a line such as 'opset 21' before the graph")
    parser = _Parser(tokens, model.opset_imports)
    model.graph = parser.graph(None)
    while tokens.at("function"):
        start = tokens.peek()
        function = parser.function(model.opset_imports)
        if function.id in model.functions:
            tokens.refuse(f"the function {quoted('.'.join(function.id[:2]))} is defined twice", start)
        model.functions[function.id] = function
    _expect_end(tokens, "'function' or the end of the text")
    return model


def parse_graph(text: str, *, opset_imports: Mapping[str, int] | None = None) -> Graph:
    """Parse a graph, read under the versions of its first line `opset …`, else `opset_imports`, else ai.onnx 23 and 1 elsewhere.

    Raises:
        InvalidGraph: names line and column, what was found there and what was expected.
    """
    tokens = Tokens(text)
    imports = dict(opset_imports) if opset_imports is not None else {"": DEFAULT_OPSET}
    if tokens.accept("opset"):
        imports = _parse_imports(tokens)
    try:
        graph = _Parser(tokens, imports).graph(None)
    except RecursionError:
        tokens.fail("brackets that are nested less deeply")
    _expect_end(tokens, "the end of the text")
    return graph


def _expect_end(tokens: Tokens, expected: str) -> None:
    if tokens.peek().kind != "end":
        tokens.fail(expected)


def _parse_imports(tokens: Tokens) -> dict[str, int]:
    imports: dict[str, int] = {}
    while True:
        domain = "" if tokens.peek().kind == "int" else tokens.read_kind("name string", "an opset version, or a domain").text
        imports[domain] = _integer(tokens, "an opset version")
        if not tokens.accept(","):
            return imports


def _integer(tokens: Tokens, expected: str) -> int:
    return int(tokens.read_kind("int", expected).text)


def _string(tokens: Tokens) -> str:
    return tokens.read_kind("string", "a quoted string").text


def _parse_metadata(tokens: Tokens) -> dict[str, str]:
    found: dict[str, str] = {}
    tokens.expect("{")
    while not tokens.accept("}"):
        key = _string(tokens)
        tokens.expect(":")
        found[key] = _string(tokens)
        if not tokens.at("}"):
            tokens.expect(",")
    return found


_HEADER: dict[str, Callable[[Tokens, Model], None]] = {
    "ir_version": lambda tokens, model: setattr(model, "ir_version", _integer(tokens, "a version number")),
    "opset": lambda tokens, model: model.opset_imports.update(_parse_imports(tokens)),
    "producer_name": lambda tokens, model: setattr(model, "producer_name", _string(tokens)),
    "producer_version": lambda tokens, model: setattr(model, "producer_version", _string(tokens)),
    "domain": lambda tokens, model: setattr(model, "domain", _string(tokens)),
    "version": lambda tokens, model: setattr(model, "version", _integer(tokens, "a version number")),
    "doc": lambda tokens, model: setattr(model, "doc", _string(tokens)),
    "metadata": lambda tokens, model: setattr(model, "metadata", _parse_metadata(tokens)),
}


class _Scope:
    """The values of one graph while it is read, and those read before any line defined them."""

    def __init__(self, parent: _Scope | None) -> None:
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.defined: dict[str, Value] = {}
        self.awaited: dict[str, tuple[Value, Token]] = {}

    def find(self, token: Token) -> Value:
        """Return the value of this name, from this graph or one around it; awaited here where none defines it yet."""
        scope: _Scope | None = self
        while scope is not None:
            if token.text in scope.defined:
                return scope.defined[token.text]
            if token.text in scope.awaited:
                return scope.awaited[token.text][0]
            scope = scope.parent
        value = Value("" if token.kind == "unnamed" else token.text)
        self.awaited[token.text] = value, token
        return value


class _Parser:
    """The state of reading one text."""

    def __init__(self, tokens: Tokens, imports: Mapping[str, int]) -> None:
        self._tokens, self._imports = tokens, imports
        self._tagged: dict[str, Dim] = {}

    def graph(self, parent: _Scope | None) -> Graph:
        self._tokens.expect("graph")
        graph = Graph("" if self._tokens.at("(") else self._tokens.read_kind("name string", "the graph's name or '('").text)
        scope = self._inputs(graph, parent)
        self._tokens.expect("->")
        self._body(graph, scope)
        return graph

    def function(self, outer_imports: Mapping[str, int]) -> Function:
        self._tokens.expect("function")
        domain, name = self._operator()
        overload = self._overload()
        graph = Graph(name)
        scope = self._inputs(graph, None)
        attributes = self._function_attributes()
        self._tokens.expect("->")
        self._imports = imports = dict(outer_imports)
        self._body(graph, scope, imports)
        self._imports = outer_imports
        return Function(domain, name, graph, imports, overload=overload, attributes=attributes)

    def _inputs(self, graph: Graph, parent: _Scope | None) -> _Scope:
        scope = _Scope(parent)
        if scope.depth > LIMITS.function_depth:
            self._tokens.refuse(f"graphs are nested deeper than {LIMITS.function_depth}", self._tokens.peek())
        for token, type in self._typed_names():
            graph.inputs.append(self._define(scope, token, type))
        return scope

    def _typed_names(self) -> list[tuple[Token, ValueType | None]]:
        found: list[tuple[Token, ValueType | None]] = []
        self._tokens.expect("(")
        while not self._tokens.accept(")"):
            token = self._tokens.read_kind(_VALUE, "the name of a value, or ')'")
            found.append((token, parse_type(self._tokens, self._tagged) if self._tokens.accept(":") else None))
            if not self._tokens.at(")"):
                self._tokens.expect(",", "or ')' after a value")
        return found

    def _define(self, scope: _Scope, token: Token, type: ValueType | None) -> Value:
        if token.text in scope.defined:
            self._tokens.refuse(f"the value {quoted(token.text)} is defined twice in one graph", token)
        value = Value("" if token.kind == "unnamed" else token.text)
        if token.text in scope.awaited:
            value, _ = scope.awaited.pop(token.text)
        value.type = type
        scope.defined[token.text] = value
        return value

    def _body(self, graph: Graph, scope: _Scope, imports: dict[str, int] | None = None) -> None:
        outputs = self._typed_names()
        self._tokens.expect("{", "to begin the graph's body")
        if imports is not None and self._tokens.at("opset") and self._tokens.peek(1).kind in ("int", "name", "string"):
            self._tokens.read()
            imports.clear()
            imports.update(_parse_imports(self._tokens))
        while not self._tokens.accept("}"):
            self._statement(graph, scope)
        for token, type in outputs:
            value = scope.find(token)
            value.type = value.type if type is None else type
            graph.add_output(value)
        self._close(scope)

    def _close(self, scope: _Scope) -> None:
        for name, (value, token) in scope.awaited.items():
            if scope.parent is None:
                self._tokens.refuse(f"the value {quoted(name)} is never defined", token)
            scope.parent.awaited[name] = value, token

    def _statement(self, graph: Graph, scope: _Scope) -> None:
        names: list[tuple[Token, ValueType | None]] = []
        while True:
            token = self._tokens.read_kind(_VALUE, "the name of a value, or '}'")
            names.append((token, parse_type(self._tokens, self._tagged) if self._tokens.accept(":") else None))
            if not self._tokens.accept(","):
                break
        self._tokens.expect("=", "or ',' after the name of a value")
        if self._at_operator():
            self._node(graph, scope, names)
        else:
            self._initializer(graph, scope, names)

    def _at_operator(self) -> bool:
        ahead = 3 if self._tokens.peek().kind == "string" and self._tokens.at(".", ahead=1) else 1
        return self._tokens.peek().kind in ("name", "string") and self._tokens.at("(", ":", "<", ahead=ahead)

    def _initializer(self, graph: Graph, scope: _Scope, names: list[tuple[Token, ValueType | None]]) -> None:
        token, type = names[0]
        if len(names) > 1 or type is None:
            self._tokens.fail("an operator such as Add(x, y), or a typed constant such as 'w: float[2] = [1, 2]'")
        tensor = parse_elements(self._tokens, type, "" if token.kind == "unnamed" else token.text)
        value = scope.defined.get(token.text)
        if value is None or value not in graph.inputs:
            value = self._define(scope, token, type)
        value.constant = tensor
        graph.initializers[value.name or token.text] = value

    def _node(self, graph: Graph, scope: _Scope, names: list[tuple[Token, ValueType | None]]) -> None:
        domain, op_type = self._operator()
        version = _integer(self._tokens, "an opset version") if self._tokens.accept(":") else self._imports.get(domain, 1)
        overload = self._overload()
        inputs: list[Value | None] = []
        self._tokens.expect("(")
        while not self._tokens.accept(")"):
            token = self._tokens.read_kind(_VALUE, "an input: the name of a value, '_' or ')'")
            inputs.append(None if _is_blank(token) else scope.find(token))
            if not self._tokens.at(")"):
                self._tokens.expect(",", "or ')' after an input")
        attributes = self._attributes(scope)
        name = self._tokens.read_kind("name string", "the node's name").text if self._tokens.accept("@") else ""
        outputs = [Value("", type) if _is_blank(token) else self._define(scope, token, type) for token, type in names]
        graph.append(Node(op_type, inputs, outputs, attributes, domain=domain, version=version, name=name, overload=overload))

    def _operator(self) -> tuple[str, str]:
        token = self._tokens.read_kind("name string", "the name of an operator")
        if token.kind == "string" and self._tokens.accept("."):
            return token.text, self._tokens.read_kind("string", "the quoted name of an operator").text
        if token.kind == "string":
            return "", token.text
        domain, _, name = token.text.rpartition(".")
        return domain, name

    def _overload(self) -> str:
        if not self._tokens.accept("<"):
            return ""
        text = self._tokens.read_kind("name string", "the overload's name").text
        self._tokens.expect(">")
        return text

    def _function_attributes(self) -> dict[str, Attribute | None]:
        found: dict[str, Attribute | None] = {}
        while self._tokens.accept("{") or self._tokens.accept(","):
            token = self._tokens.peek(1)
            if token.text in (",", "}"):
                found[self._tokens.read_kind("name string", "the name of an attribute").text] = None
            else:
                name, attribute = self._attribute(None)
                found[name] = attribute
        if found:
            self._tokens.expect("}", "or ',' after an attribute")
        return found

    def _attributes(self, scope: _Scope) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {}
        if not self._tokens.accept("{"):
            return found
        while not self._tokens.accept("}"):
            token = self._tokens.peek()
            name, attribute = self._attribute(scope)
            if name in found:
                self._tokens.refuse(f"the attribute {quoted(name)} is given twice", token)
            found[name] = attribute
            if not self._tokens.at("}"):
                self._tokens.expect(",", "or '}' after an attribute")
        return found

    def _attribute(self, scope: _Scope | None) -> tuple[str, Attribute]:
        name = self._tokens.read_kind("name string", "the name of an attribute, or '}'").text
        if not self._tokens.accept(":"):
            self._tokens.expect("=", "or ':' after the name of an attribute")
            return name, self._plain(scope)
        if self._tokens.peek().text.upper() not in AttributeKind.__members__ or not self._tokens.at("=", ahead=1):
            type = parse_type(self._tokens, self._tagged)
            self._tokens.expect("=")
            return name, Attribute(AttributeKind.TENSOR, parse_elements(self._tokens, type))
        kind = AttributeKind[self._tokens.read().text.upper()]
        self._tokens.expect("=")
        if self._tokens.accept("@"):
            return name, Attribute(kind, None, self._tokens.read_kind("name string", "the name of the function's attribute").text)
        return name, Attribute(kind, self._of_kind(kind, scope))

    def _plain(self, scope: _Scope | None) -> Attribute:
        """Return an attribute whose value shows its kind."""
        start = self._tokens.peek()
        if self._tokens.at("graph"):
            return Attribute(AttributeKind.GRAPH, self.graph(scope))
        if not self._tokens.at("["):
            value = self._simple()
            return Attribute.of(_as_single(value) if isinstance(value, float) else value)
        values = self._list(self._simple)
        if not values:
            self._tokens.refuse("an empty list needs a kind before it, such as 'axes: ints = []'", start)
        if len({isinstance(value, str) for value in values}) > 1:
            self._tokens.refuse("the list mixes strings and numbers; expected one kind", start)
        if any(isinstance(value, float) for value in values):
            values = [_as_single(value) for value in values]
        return Attribute.of(values)

    def _simple(self) -> int | float | str:
        return self._tokens.read().text if self._tokens.peek().kind == "string" else parse_number(self._tokens)

    def _list(self, read: Callable[[], object]) -> list[Any]:
        found = []
        self._tokens.expect("[")
        while not self._tokens.accept("]"):
            found.append(read())
            if not self._tokens.at("]"):
                self._tokens.expect(",", "or ']' after an element")
        return found

    def _of_kind(self, kind: AttributeKind, scope: _Scope | None) -> object:
        readers: dict[str, Callable[[], object]] = {
            "FLOAT": lambda: _as_single(parse_number(self._tokens)),
            "INT": lambda: int(parse_number(self._tokens)),
            "STRING": lambda: _string(self._tokens),
            "TENSOR": self._tensor,
            "GRAPH": lambda: self.graph(scope),
            "SPARSE_TENSOR": self._sparse,
            "TYPE": lambda: parse_type(self._tokens, self._tagged),
        }
        reader = readers.get(kind.name)
        return reader() if reader is not None else tuple(self._list(readers[kind.name.removesuffix("S")]))

    def _tensor(self) -> Tensor:
        return parse_elements(self._tokens, parse_type(self._tokens, self._tagged))

    def _sparse(self) -> SparseTensor:
        shape = tuple(self._list(lambda: _integer(self._tokens, "a dimension")))
        values = self._tensor()
        self._tokens.expect("at")
        return SparseTensor(values, self._tensor(), shape)


_VALUE = "name string unnamed"


def _is_blank(token: Token) -> bool:
    return token.kind == "name" and token.text == "_"


def _as_single(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))
