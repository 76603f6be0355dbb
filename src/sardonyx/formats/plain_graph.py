"""Graphs as plain data: numbers, texts, bytes and tuples of these, which `marshal` writes and reads quickest.

    plain = PlainWriter(placed).graph(graph)
    graph, values = PlainReader(tensor_of).graph(plain)

Nodes, types, names and small constants are in the data. A constant whose elements lie in the model's file is a number, one whose
elements lie in another file that file's location, an offset and a length, and the reader is told what these stand for.
Documentation and metadata of nodes and values are left out. Subgraphs are in their nodes; values of all graphs are numbered
together. Symbols that stand for unknown dimensions get new names when they are read, the same for the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import checked
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Dim, Expr, Graph, Node, Tensor, Value
from sardonyx.ir.attribute import ArrayAttribute, Attribute, AttributeKind, AttributeValue
from sardonyx.ir.shape import FUNCTIONS, anonymous, symbol
from sardonyx.ir.types import MapType, OptionalType, SequenceType, SparseTensorType, TensorType, ValueType

__all__ = ["KeptProgram", "NoPlainForm", "Place", "Plain", "PlainReader", "PlainWriter"]

Plain: TypeAlias = Any
"""Numbers, texts, bytes, None and tuples of these, nested."""
Place: TypeAlias = "int | tuple[str, int, int]"
"""The number of a tensor whose elements lie in the model's file; of one in another file location, offset and length in bytes."""
_PLACE_PARTS = 3

_KINDS = {int(kind): kind for kind in AttributeKind}
_AS_ARRAY = 100
"""Added to the kind of a list that is an array."""
_DTYPES = {int(dtype): dtype for dtype in DataType}
_SCALARS: Mapping[AttributeKind, Callable[[AttributeValue], Plain]] = {
    AttributeKind.FLOAT: float,
    AttributeKind.INT: int,
    AttributeKind.STRING: str,
}
_LISTS: Mapping[AttributeKind, Callable[[AttributeValue], Plain]] = {
    AttributeKind.FLOATS: float,
    AttributeKind.INTS: int,
    AttributeKind.STRINGS: str,
}


@dataclasses.dataclass(frozen=True, slots=True)
class KeptProgram:
    """A program of a provider, outside of a process."""

    plain: Plain
    """All but the elements of constants."""
    arrays: Sequence[Array]
    """The constants, dense; the program that is made of it uses them where they are."""


class NoPlainForm(Exception):
    """The graph holds something that has no plain form, such as a reference to an attribute of a function."""


class PlainWriter:
    """Writes graphs and parts of them, values by number."""

    def __init__(self, placed: Mapping[Tensor, Place], most_bytes: int = 1 << 62) -> None:
        """Prepare to write; `placed` has where elements of tensors lie in the model's files.

        What holds more than `most_bytes` of other elements has no plain form; it is not read.
        """
        self._placed, self._most_bytes = placed, most_bytes
        self._numbers: dict[Value, int] = {}
        self._values: list[Value] = []
        self._depth = 0
        self.held_bytes = 0
        """How many bytes of elements were written so far."""

    def graph(self, graph: Graph, others: Iterable[Value] = ()) -> Plain:
        """Return a graph; `others` are values that its nodes do not mention.

        Raises:
            NoPlainForm: it holds what has no plain form.
        """
        return self._with_values(self._part(graph), others)

    def nodes(self, name: str, nodes: Iterable[Node], others: Iterable[Value]) -> Plain:
        """Return some nodes as a graph of that name without inputs and outputs; see `graph`."""
        return self._with_values((name, (), (), self._nodes(nodes), ()), others)

    def _with_values(self, part: Plain, others: Iterable[Value]) -> Plain:
        self.numbers(others)
        return tuple((value.name, self.type(value.type), self._constant(value.constant)) for value in checked(self._values)), part

    def _part(self, graph: Graph) -> Plain:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise NoPlainForm(f"subgraphs in more than {_MOST_DEPTH} others")
        inputs, initializers = self.numbers(graph.inputs), self.numbers(graph.initializers.values())
        nodes = self._nodes(graph)
        self._depth -= 1
        return graph.name, inputs, initializers, nodes, self.numbers(graph.outputs)

    def _nodes(self, nodes: Iterable[Node]) -> Plain:
        return tuple(
            (
                node.op_type,
                node.domain,
                node.version,
                node.name,
                node.overload,
                tuple(-1 if value is None else self._number(value) for value in node.inputs),
                self.numbers(node.outputs),
                tuple((name, *self._attribute(attribute)) for name, attribute in node.attributes.items()),
            )
            for node in nodes
        )

    def numbers(self, values: Iterable[Value]) -> tuple[int, ...]:
        """Return the numbers of values."""
        return tuple(map(self._number, values))

    def dim(self, dim: Dim) -> Plain:
        """Return a dimension."""
        if not isinstance(dim, Expr):
            return int(dim)
        return dim.name or tuple(
            (factor, tuple((self._atom(atom), power) for atom, power in monomial)) for monomial, factor in dim.terms
        )

    def type(self, kind: ValueType | None) -> Plain:
        """Return a type."""
        if isinstance(kind, (TensorType, SparseTensorType)):
            shape = None if kind.shape is None else tuple(map(self.dim, kind.shape))
            return "t" if isinstance(kind, TensorType) else "p", int(kind.dtype), shape
        if isinstance(kind, (SequenceType, OptionalType)):
            return "s" if isinstance(kind, SequenceType) else "o", self.type(kind.element)
        return None if kind is None else ("m", int(kind.key), self.type(kind.value))

    def array(self, array: Array) -> Plain:
        """Return an array."""
        self._hold(array.nbytes)
        return self._elements(DataType.from_numpy(array.dtype), array)

    def _atom(self, atom: Any) -> Plain:  # a symbol, or a function of two dimensions
        return atom.name if atom.kind == "symbol" else (atom.kind, self.dim(atom.left), self.dim(atom.right))

    def _number(self, value: Value) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self._values)
            self._values.append(value)
        return found

    def _constant(self, tensor: Tensor | None) -> Plain:
        if tensor is None:
            return None
        place = self._placed.get(tensor)
        if place is not None:
            return int(tensor.dtype), tuple(map(int, tensor.shape)), place
        if tensor.narrow is not None:
            return int(tensor.dtype), tuple(map(int, tensor.shape)), ("narrow", self._constant(tensor.narrow))
        self._hold(tensor.size_bytes)
        return self._elements(tensor.dtype, tensor.numpy())

    def _hold(self, size_bytes: int) -> None:
        self.held_bytes += size_bytes
        if self.held_bytes > self._most_bytes:
            raise NoPlainForm(f"more than {self._most_bytes} bytes of elements")

    def _elements(self, dtype: DataType, array: Array) -> Plain:
        shape = tuple(map(int, array.shape))
        if dtype is DataType.STRING:
            texts = tuple(map(str, array.reshape(-1)))
            self._hold(sum(map(len, texts)))
            return int(dtype), shape, texts
        return int(dtype), shape, np.ascontiguousarray(array).tobytes()

    def _attribute(self, attribute: Attribute) -> Plain:
        kind, value = attribute.kind, attribute.value
        if attribute.reference is not None or (kind not in _SCALARS and kind not in _LISTS and kind not in _OTHERS):
            raise NoPlainForm(f"an attribute of the kind {kind.name}")
        if isinstance(attribute, ArrayAttribute):
            self._hold(attribute.array.nbytes + sum(map(len, attribute.texts)))
            return int(kind) + _AS_ARRAY, (attribute.array.dtype.str, attribute.array.tobytes(), tuple(map(str, attribute.texts)))
        if kind in _SCALARS:
            return int(kind), _SCALARS[kind](value)
        if kind in _LISTS:
            self._hold(8 * len(value))
            return int(kind), tuple(map(_LISTS[kind], value))
        if kind is AttributeKind.TYPE:
            return int(kind), self.type(value)
        if kind in (AttributeKind.GRAPH, AttributeKind.GRAPHS):
            return int(kind), self._part(value) if kind is AttributeKind.GRAPH else tuple(map(self._part, value))
        return int(kind), self._constant(value) if kind is AttributeKind.TENSOR else tuple(map(self._constant, value))


_OTHERS = (AttributeKind.TENSOR, AttributeKind.TENSORS, AttributeKind.TYPE, AttributeKind.GRAPH, AttributeKind.GRAPHS)
_MOST_DEPTH = 32
"""How deep subgraphs may lie in one another."""


class PlainReader:
    """Reads what `PlainWriter` wrote."""

    def __init__(self, tensor_of: Callable[[DataType, tuple[int, ...], Place], Tensor]) -> None:
        """Prepare to read; `tensor_of` makes the tensor of a place, given its type and shape before."""
        self._tensor_of = tensor_of
        self._placed: dict[Place, Tensor] = {}
        self._wide: dict[Place, Tensor] = {}
        self._names: dict[str, Expr] = {}
        self.values: list[Value] = []
        """The values of the graph by number."""

    def graph(self, plain: Plain) -> Graph:
        """Return a graph; what is not in the form that is written raises ValueError, TypeError or LookupError."""
        values, part = plain
        self.values = [Value(title, self.type(kind), self._constant(constant)) for title, kind, constant in checked(values)]
        return self._part(part)

    def _part(self, plain: Plain) -> Graph:
        (name, inputs, initializers, nodes, outputs), found = plain, self.values
        graph = Graph(name, self.of(inputs), (), self.of(initializers))
        for op_type, domain, version, title, overload, reads, makes, attributes in checked(nodes):
            graph.append_new(
                op_type,
                tuple([None if number < 0 else found[number] for number in reads]),
                tuple([found[number] for number in makes]),
                {name: self._attribute(kind, value) for name, kind, value in attributes},
                domain,
                version,
                title,
                overload,
            )
        for value in self.of(outputs):
            graph.add_output(value)
        return graph

    def of(self, numbers: Iterable[int]) -> tuple[Value, ...]:
        """Return values by number."""
        return tuple([self.values[number] for number in numbers])

    def dim(self, plain: Plain) -> Dim:
        """Return a dimension."""
        if isinstance(plain, int):
            return plain
        if isinstance(plain, str):
            return self._symbol(plain)
        total: Dim = 0
        for factor, monomial in plain:
            term: Dim = factor
            for atom, power in monomial:
                for _ in range(power):
                    term = term * (self._symbol(atom) if isinstance(atom, str) else self._function(*atom))
            total = total + term
        return total

    def type(self, plain: Plain) -> ValueType | None:
        """Return a type."""
        if plain is None:
            return None
        letter, first, *rest = plain
        if letter in "tp":
            shape = None if rest[0] is None else tuple(map(self.dim, rest[0]))
            return TensorType(_DTYPES[first], shape) if letter == "t" else SparseTensorType(_DTYPES[first], shape)
        if letter in "so":
            return SequenceType(self.type(first)) if letter == "s" else OptionalType(self.type(first))
        return MapType(_DTYPES[first], self.type(rest[0]))

    def array(self, plain: Plain) -> Array:
        """Return an array."""
        number, shape, content = plain
        return _array(_DTYPES[number], shape, content)

    def _symbol(self, name: str) -> Expr:
        if not name.startswith("?"):
            return symbol(name)
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = anonymous()
        return found

    def _function(self, kind: str, left: Plain, right: Plain) -> Dim:
        return FUNCTIONS[kind](self.dim(left), self.dim(right))

    def _constant(self, plain: Plain) -> Tensor | None:
        if plain is None:
            return None
        number, shape, content = plain
        dtype = _DTYPES[number]
        if dtype is DataType.STRING or isinstance(content, bytes):
            return Tensor(dtype, shape, functools.partial(_array, dtype, shape, content))
        if not _is_place(content):
            narrow = self._constant(content[1])
            return None if narrow is None else self._widened(content[1], narrow)
        found = self._placed.get(content)
        if found is None or (found.dtype, found.shape) != (dtype, shape):
            found = self._placed[content] = self._tensor_of(dtype, shape, content)
        return found

    def _widened(self, plain: Plain, narrow: Tensor) -> Tensor:
        """Return the wide form of a tensor, one for each that is in the file."""
        place = plain[2]
        if not _is_place(place):
            return Tensor.widened(narrow)
        if place not in self._wide:
            self._wide[place] = Tensor.widened(narrow)
        return self._wide[place]

    def _attribute(self, number: int, plain: Plain) -> Attribute:
        if number > _AS_ARRAY:
            form, content, texts = plain
            return ArrayAttribute(_KINDS[number - _AS_ARRAY], np.frombuffer(content, form), texts)
        kind = _KINDS[number]
        if kind is AttributeKind.TENSOR:
            return Attribute(kind, self._constant(plain))
        if kind is AttributeKind.GRAPH:
            return Attribute(kind, self._part(plain))
        if kind is AttributeKind.GRAPHS:
            return Attribute(kind, tuple(map(self._part, plain)))
        if kind is AttributeKind.TENSORS:
            return Attribute(kind, tuple(map(self._constant, plain)))
        return Attribute(kind, self.type(plain) if kind is AttributeKind.TYPE else plain)


def _is_place(content: Plain) -> bool:
    """Return whether this is a `Place`, and not the narrow form of a tensor, a name and a constant."""
    return isinstance(content, int) or (isinstance(content, tuple) and len(content) == _PLACE_PARTS)


def _array(dtype: DataType, shape: tuple[int, ...], content: bytes | tuple[str, ...]) -> Array:
    if isinstance(content, bytes):
        return np.frombuffer(content, np.uint8).view(dtype.numpy).reshape(shape)
    array = np.empty(len(content), object)
    array[:] = content
    return array.reshape(shape)
