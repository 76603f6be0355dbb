"""Random models on which a rewrite rule may fire: drawn from its pattern, and varied.

    for model in models_for(rule, 40): ...        what the pattern says, with shapes, types and attributes drawn
    for model in variants(model, seed): ...       the same with more users, more outputs, inputs for constants, symbols, in a branch

Most of what is drawn makes sense; what does not is passed over.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import SardonyxError
from sardonyx.ir import Attribute, AttributeKind, Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.ir.shape import symbol
from sardonyx.ops.infer import infer_node
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.edit import clone_graph, clone_node
from sardonyx.optimize.pattern import compile_pattern
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.soundness import is_sound
from sardonyx.optimize.terms import AnyValue, AttributeCapture, Choice, Number, Operation, Output, Rest

__all__ = ["models_for", "variants"]

OPSETS = (12, 13, 17, 18, 20, 21, 23)
_IMAGES = frozenset(["AveragePool", "Conv", "ConvTranspose", "GlobalAveragePool", "MaxPool", "Pad", "QLinearConv"])
FLOATS = (DataType.FLOAT, DataType.FLOAT, DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16)
Drawn = tuple[DataType, Sequence[int], Any]
"""Type, shape, and elements where they matter (Any: what NumPy makes of them), else None."""


def models_for(rule: Rule, count: int) -> Iterator[Model]:
    """`count` attempts at a model with the pattern of `rule` in it; those that make a sound model."""
    pattern = compile_pattern(rule.pattern)
    for attempt in range(count):
        generator = np.random.default_rng((zlib.crc32(rule.name.encode()), attempt))
        drawing = _Drawing(generator, has_images=not _IMAGES.isdisjoint(_operators(pattern.results)))
        try:
            root = pattern.roots[int(generator.integers(len(pattern.roots)))]
            results = [drawing.value(root), *(drawing.value(term) for term in pattern.results[1:])]
        except (SardonyxError, ValueError, IndexError, TypeError, KeyError):
            continue
        model = drawing.model([value for value in results if value is not None])
        if is_sound(model):
            yield model


def _operators(terms: Sequence[Any]) -> Iterator[str]:
    """The operators that terms name; Any, as terms are of several classes."""
    for term in terms:
        if isinstance(term, Choice):
            yield from _operators(term.terms)
        if isinstance(term, Output):
            yield term.operation.op_type
            yield from _operators(term.operation.inputs)


class _Drawing:
    """One model in the making."""

    def __init__(self, generator: np.random.Generator, *, has_images: bool) -> None:
        self._random = generator
        self._dtype = FLOATS[int(generator.integers(len(FLOATS)))]
        self._opset = OPSETS[int(generator.integers(len(OPSETS)))]
        rank = int(generator.choice([2, 3, 4, 4]))
        self._base = [2, 4, 5, 6] if has_images else [int(size) for size in generator.choice([1, 2, 3, 4, 6], rank)]
        self._axes = int(generator.integers(30))
        self._named: dict[str, Value | None] = {}
        self._nodes: dict[Operation, Node] = {}
        self._graph = Graph("drawn")

    def model(self, outputs: Sequence[Value]) -> Model:
        """What was drawn, with `outputs` given out after one more node each, so that rules may rename them."""
        for value in outputs:
            if self._random.random() < 0.5 and value.producer is not None:
                value = self._graph.append(Node("Identity", [value], 1, version=self._opset)).output
                value.type = value.producer.inputs[0].type if value.producer and value.producer.inputs[0] else None
            if value.is_graph_output or value.producer is None:
                continue
            value.name = value.name or f"y{len(self._graph.outputs)}"
            self._graph.add_output(value)
        return Model(self._graph, {"": self._opset, "com.microsoft": 1})

    def value(self, term: Any, role: tuple[str, int] = ("", 0), before: Sequence[Value | None] = ()) -> Value | None:
        """A value for a term; Any, as terms are of several classes."""
        if isinstance(term, Choice):
            return self.value(term.terms[int(self._random.integers(len(term.terms)))], role, before)
        if isinstance(term, Output):
            return self._node(term.operation, term.index).outputs[term.index]
        if isinstance(term, Number):
            dtype = before[0].dtype if before and before[0] is not None and before[0].dtype else self._dtype
            return self._constant(np.asarray(term.value).astype(dtype.numpy))
        if isinstance(term, AnyValue):
            if term.name not in self._named:
                missing = term.may_be_missing and self._random.random() < 0.5
                self._named[term.name] = None if missing else self._leaf(role, before, is_constant=term.must_be_constant)
            return self._named[term.name]
        return None

    def _node(self, operation: Operation, index: int) -> Node:
        node = self._nodes.get(operation)
        if node is not None and len(node.outputs) > index:
            return node
        inputs: list[Value | None] = []
        for position, term in enumerate(operation.inputs):
            if isinstance(term, Rest):
                drawn = self._rest(term, operation, inputs)
                inputs += drawn
            else:
                inputs.append(self.value(term, (operation.op_type, position), inputs))
        while inputs and inputs[-1] is None:
            inputs.pop()
        version = 1 if operation.domain else self._opset
        made = Node(
            operation.op_type,
            inputs,
            index + 1,
            self._attributes(operation, inputs, version),
            domain=operation.domain,
            version=version,
        )
        self._graph.append(made)
        for value, fact in zip(made.outputs, infer_node(made), strict=False):
            value.type = fact.type
        self._nodes[operation] = made
        return made

    def _rest(self, term: Rest, operation: Operation, before: Sequence[Value | None]) -> list[Value | None]:
        schema = find_schema(operation.domain, operation.op_type, self._opset)
        most = 2 if schema is None else min(schema.max_inputs, len(before) + 2)
        count = int(self._random.integers(0, max(most - len(before), 0) + 1))
        drawn: list[Value | None] = []
        for _ in range(count):
            role = (operation.op_type, len(before) + len(drawn))
            drawn.append(self._leaf(role, [*before, *drawn], is_constant=self._random.random() < 0.8))
        self._named[term.name] = None
        return drawn

    def _leaf(self, role: tuple[str, int], before: Sequence[Value | None], *, is_constant: bool) -> Value:
        maker = _LEAVES.get(role, _any_leaf)
        dtype, shape, array = maker(_Place(self._random, self._base, self._dtype, self._axes, list(before)))
        if array is None:
            array = self._random.standard_normal(shape) if dtype.numpy.kind not in "iub" else self._random.integers(0, 5, shape)
        elements = np.asarray(array).astype(dtype.numpy).reshape(shape)
        if is_constant or maker in _ALWAYS_CONSTANT:
            return self._constant(elements)
        value = Value(f"x{len(self._graph.inputs)}", TensorType(dtype, tuple(int(size) for size in shape)))
        self._graph.inputs.append(value)
        return value

    def _constant(self, array: Any) -> Value:
        return self._graph.add_initializer(Tensor.from_array(array), f"c{len(self._graph.initializers)}")

    def _attributes(self, operation: Operation, inputs: Sequence[Value | None], version: int) -> dict[str, Any]:
        first = inputs[0] if inputs else None
        rank = len(first.shape or ()) if first is not None else 0
        drawn: dict[str, Any] = {}
        schema = find_schema(operation.domain, operation.op_type, version)
        for name, constraint in operation.constraints.items():
            if not isinstance(constraint, AttributeCapture) and not callable(constraint):
                if constraint is not None:
                    drawn[name] = list(constraint) if isinstance(constraint, (list, tuple)) else constraint
                continue
            candidates = _candidates(name, rank, self._random)
            fitting = [item for item in candidates if isinstance(constraint, AttributeCapture) or _accepts(constraint, item)]
            required = schema is not None and name in schema.attributes and schema.attributes[name].is_required
            if fitting and (required or callable(constraint) or self._random.random() < 0.7):
                drawn[name] = fitting[int(self._random.integers(len(fitting)))]
        if operation.op_type == "Transpose" and "perm" not in drawn and rank:
            drawn["perm"] = [int(axis) for axis in self._random.permutation(rank)]
        if operation.op_type == "Cast" and "to" not in drawn:
            drawn["to"] = int(DataType.FLOAT)
        return drawn


def _accepts(constraint: Callable[[Any], Any], item: Any) -> bool:
    try:
        return bool(constraint(item))
    except (TypeError, ValueError, AttributeError):
        return False


def _candidates(name: str, rank: int, generator: np.random.Generator) -> list[Any]:
    if name == "perm":
        return [[int(axis) for axis in generator.permutation(rank)] for _ in range(4)] + [list(range(rank))[::-1]]
    if name == "to":
        return [1, 10, 11, 6, 7, 9, 2, 3, 5, 16]
    if name in ("axes", "pads", "strides", "dilations"):
        return [[-1], [0], [1], [0, 1], [rank - 2, rank - 1]]
    return [0, 1, -1, 2, 1.0, 0.5, 1.702, "none", "tanh", "constant"]


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a leaf is wanted."""

    random: np.random.Generator
    base: list[int]
    """A shape for values of which nothing is known."""
    dtype: DataType
    """The type of floats in this drawing."""
    axes: int
    """Which of the usual axes reductions in this drawing go over."""
    before: list[Value | None]
    """The inputs before it."""

    @property
    def sizes(self) -> list[int]:
        """The shape of the first input."""
        return _sizes(self.before[0]) if self.before else self.base

    @property
    def kind(self) -> DataType:
        """The type of the first input."""
        return _dtype(self.before[0], self.dtype) if self.before else self.dtype

    def pick(self, options: Sequence[Any]) -> Any:
        """One of `options`."""
        return options[int(self.random.integers(len(options)))]


def _sizes(value: Value | None) -> list[int]:
    return [int(dim) if isinstance(dim, int) else 2 for dim in (value.shape or ())] if value is not None else []


def _dtype(value: Value | None, otherwise: DataType) -> DataType:
    return otherwise if value is None or value.dtype is None else value.dtype


def _any_leaf(place: _Place) -> Drawn:
    """The shape of the first input, or one that is broadcast to it."""
    shape, drawn = place.sizes, place.random.random()
    if drawn < 0.3:
        return place.kind, shape[-1:], None
    if drawn < 0.4:
        return place.kind, [], None
    if drawn < 0.5:
        return place.kind, [size if place.random.random() < 0.5 else 1 for size in shape], None
    return place.kind, shape, None


def _channels(place: _Place) -> Drawn:
    count = place.sizes[1]
    return place.kind, [count], np.abs(place.random.standard_normal(count)) + 0.1


def _image(place: _Place) -> Drawn:
    return place.dtype, [2, 4, 5, 6], None


def _bytes(place: _Place) -> Drawn:
    return place.pick((DataType.UINT8, DataType.INT8)), place.base, place.random.integers(0, 100, place.base)


def _filters(place: _Place) -> Drawn:
    return place.kind, [4, place.sizes[1], *([3] * (len(place.sizes) - 2))], None


def _bias(place: _Place) -> Drawn:
    return _dtype(place.before[1], place.dtype), [_sizes(place.before[1])[0]], None


def _right(place: _Place) -> Drawn:
    return place.kind, [place.sizes[-1], 4], None


def _columns(place: _Place) -> Drawn:
    return _dtype(place.before[1], place.dtype), [_sizes(place.before[1])[-1]], None


def _matrix(place: _Place) -> Drawn:
    return place.dtype, [3, 4], None


def _target(place: _Place) -> Drawn:
    sizes = place.sizes
    chosen = place.pick([[-1], [0, -1], [int(np.prod(sizes))], [1, -1], sizes, [*sizes[:-1], -1], [0] * len(sizes)])
    return DataType.INT64, [len(chosen)], chosen


def _axes(place: _Place) -> Drawn:
    rank = len(place.sizes)
    chosen = ([-1], [rank - 1], [0], [rank - 2, rank - 1], [-2, -1])[place.axes % 5]
    return DataType.INT64, [len(chosen)], chosen


def _ones(place: _Place) -> Drawn:
    axes = [axis for axis, size in enumerate(place.sizes) if size == 1][:1]
    return DataType.INT64, [len(axes)], axes


def _pads(place: _Place) -> Drawn:
    ends = [0, 0, *(int(end) for end in place.random.integers(0, 3, max(len(place.sizes) - 2, 0)))][: len(place.sizes)]
    return DataType.INT64, [2 * len(ends)], [*ends, *ends]


def _zero(place: _Place) -> Drawn:
    return place.kind, [], place.pick([0.0, 0.0, 1.0])


def _condition(place: _Place) -> Drawn:
    return DataType.BOOL, place.base, place.random.random(place.base) < 0.5


def _first(place: _Place) -> Drawn:
    return DataType.INT64, [1], [0]


def _last(place: _Place) -> Drawn:
    return DataType.INT64, [1], [int(place.pick([1, 2, 100, -1]))]


def _axis(place: _Place) -> Drawn:
    return DataType.INT64, [1], [int(place.pick([0, 1, -1]))]


def _one_step(place: _Place) -> Drawn:
    return DataType.INT64, [1], [int(place.pick([1, 2]))]


def _scale(place: _Place) -> Drawn:
    return DataType.FLOAT, [], (0.02, 0.05, 0.1)[place.axes % 3] if place.random.random() < 0.7 else 0.03


def _zero_point(place: _Place) -> Drawn:
    kind = place.kind if place.kind in (DataType.UINT8, DataType.INT8) else DataType.UINT8
    return kind, [], place.axes % 2 * (3 if kind is DataType.INT8 else 128)


def _floats(place: _Place) -> Drawn:
    return DataType.FLOAT, place.base, None


_Leaf = Callable[[_Place], Drawn]
_LEAVES: dict[tuple[str, int], _Leaf] = {
    **{(name, 0): _image for name in ("AveragePool", "Conv", "ConvTranspose", "FusedConv", "GlobalAveragePool", "MaxPool", "Pad")},
    **{(name, 1): _filters for name in ("Conv", "ConvTranspose", "FusedConv")},
    **{(name, 2): _bias for name in ("Conv", "ConvTranspose", "FusedConv")},
    **{(name, 0): _matrix for name in ("FusedGemm", "Gemm")},
    **{(name, 1): _right for name in ("FusedGemm", "FusedMatMul", "Gemm", "MatMul", "TransposeMatMul")},
    **{(name, 2): _columns for name in ("FusedGemm", "Gemm")},
    **{("BatchNormalization", index): _channels for index in range(1, 5)},
    **{("InstanceNormalization", index): _channels for index in range(1, 3)},
    **{(name, 1): _axes for name in ("ReduceMean", "ReduceSum", "Unsqueeze")},
    ("Clip", 1): _zero,
    ("DequantizeLinear", 0): _bytes,
    ("DequantizeLinear", 1): _scale,
    ("DequantizeLinear", 2): _zero_point,
    ("Not", 0): _condition,
    ("Pad", 1): _pads,
    ("Pad", 2): _zero,
    ("QuantizeLinear", 0): _floats,
    ("QuantizeLinear", 1): _scale,
    ("QuantizeLinear", 2): _zero_point,
    ("Reshape", 1): _target,
    ("Slice", 1): _first,
    ("Slice", 2): _last,
    ("Slice", 3): _axis,
    ("Slice", 4): _one_step,
    ("Squeeze", 1): _ones,
    ("Where", 0): _condition,
}
"""What the inputs of operators are, where they are not like the first input."""
_ALWAYS_CONSTANT = frozenset([_target, _axes, _ones, _pads, _first, _last, _axis, _one_step])


def variants(model: Model, seed: int) -> Iterator[Model]:
    """Models like `model`: one with symbols for sizes, and for each way of changing it one, so far as it is sound."""
    generator = np.random.default_rng(seed)
    for change in (_with_symbols, _with_output, _with_user, _with_input, _in_a_branch):
        copy = Model(clone_graph(model.graph, {}), dict(model.opset_imports))
        if change(copy, generator) and is_sound(copy):
            yield copy


def _with_symbols(model: Model, generator: np.random.Generator) -> bool:
    """The first dimension of all inputs that share it becomes a symbol."""
    sizes = {value.shape[0] for value in model.graph.inputs if value.shape}
    if len(sizes) != 1:
        return False
    for value in model.graph.inputs:
        if value.shape and value.dtype is not None:
            value.type = TensorType(value.dtype, (symbol("batch"), *value.shape[1:]))
    for node in model.graph:
        for value in node.outputs:
            value.type = None
    return True


def _inner(model: Model, generator: np.random.Generator) -> Value | None:
    values = [value for node in model.graph for value in node.outputs if not value.is_graph_output and value.use_count]
    return values[int(generator.integers(len(values)))] if values else None


def _with_output(model: Model, generator: np.random.Generator) -> bool:
    """An inner value is given out."""
    value = _inner(model, generator)
    if value is not None:
        value.name = value.name or "inner"
        model.graph.add_output(value)
    return value is not None


def _with_user(model: Model, generator: np.random.Generator) -> bool:
    """An inner value has another user."""
    value = _inner(model, generator)
    if value is None:
        return False
    user = model.graph.append(Node("Identity", [value], 1, version=model.opset_imports[""]))
    user.output.name = "more"
    model.graph.add_output(user.output)
    return True


def _with_input(model: Model, generator: np.random.Generator) -> bool:
    """A constant becomes an input."""
    constants = list(model.graph.initializers.values())
    if not constants:
        return False
    value = constants[int(generator.integers(len(constants)))]
    value.constant = None
    del model.graph.initializers[value.name]
    model.graph.inputs.append(value)
    return True


def _in_a_branch(model: Model, generator: np.random.Generator) -> bool:
    """The nodes stand in a branch of an If, with what they read outside of it."""
    outer = model.graph
    outputs = list(outer.outputs)
    branches = {name: Attribute(AttributeKind.GRAPH, _body(outer, name)) for name in ("then_branch", "else_branch")}
    outer.release()
    condition = Value("condition", TensorType(DataType.BOOL, ()))
    outer.inputs.append(condition)
    choice = outer.append(Node("If", [condition], len(outputs), branches, version=model.opset_imports[""]))
    for value, old in zip(choice.outputs, outputs, strict=True):
        value.name, value.type = old.name, old.type
        outer.add_output(value)
    return True


def _body(graph: Graph, name: str) -> Graph:
    """The nodes of a graph as a subgraph, which captures its inputs and constants."""
    values: dict[Value, Value] = {}
    body = Graph(name, nodes=[clone_node(node, values) for node in graph])
    for value in graph.outputs:
        copy = values.get(value)
        if copy is None:
            copy = body.append(Node("Identity", [value], 1, version=13)).output
        copy.name = f"{value.name}_{name}"
        body.add_output(copy)
    return body
