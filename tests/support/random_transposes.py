"""Random graphs of operators that transposes are pushed through; their elements are small whole numbers, so that sums are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.ops.infer import infer_graph

__all__ = ["random_model"]

_VERSION = 21


class _Draft:
    """A model that is being made."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.graph = Graph("main")
        self.model = Model(self.graph, {"": _VERSION}, ir_version=10)
        self.pool: list[Value] = []

    def input(self, shape: Sequence[int]) -> None:
        value = Value(f"x{len(self.graph.inputs)}", TensorType(DataType.FLOAT, tuple(shape)))
        self.graph.inputs.append(value)
        self.pool.append(value)

    def constant(self, shape: Sequence[int]) -> Value:
        return self.graph.add_initializer(Tensor.from_array(self.random.integers(-3, 4, shape).astype(np.float32)), "k")

    def integers(self, numbers: Sequence[int]) -> Value:
        return self.graph.add_initializer(Tensor.from_array(np.array(numbers, np.int64)), "i")

    def node(self, op_type: str, *inputs: Value | None, outputs: int = 1, **attributes: object) -> tuple[Value, ...]:
        made = self.graph.append(Node(op_type, inputs, outputs, attributes, version=_VERSION))
        infer_graph(self.model)
        return made.outputs

    def small(self, number: float) -> Value:
        return self.graph.add_initializer(Tensor.from_array(np.array(number, np.float32)), "n")

    def number(self, bound: int) -> int:
        return int(self.random.integers(bound))

    def like(self, x: Value) -> Value:
        """Something that broadcasts with x and does not make it larger: a constant, of a lower rank perhaps, or another value."""
        shape = _shape(x)
        same = [value for value in self.pool if value.dtype is x.dtype and _broadcasts(_shape(value), shape)]
        if same and self.number(2):
            return same[self.number(len(same))]
        return self.constant([dim if self.number(2) else 1 for dim in shape][self.number(len(shape) + 1) :])


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(dim for dim in value.shape or () if isinstance(dim, int))


def _broadcasts(own: Sequence[int], shape: Sequence[int]) -> bool:
    return len(own) <= len(shape) and all(a in (1, b) for a, b in zip(reversed(own), reversed(shape), strict=False))


_Step: TypeAlias = Callable[[_Draft, Value], "tuple[Value, ...]"]


def _transpose(draft: _Draft, x: Value) -> tuple[Value, ...]:
    rank = len(_shape(x))
    layouts = [(0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))] if rank >= 3 else []
    chosen = layouts[draft.number(2)] if layouts and draft.number(3) else draft.random.permutation(rank).tolist()
    return draft.node("Transpose", x, perm=tuple(chosen))


def _unary(draft: _Draft, x: Value) -> tuple[Value, ...]:
    return draft.node(("Relu", "Neg", "Abs", "Sign", "Floor", "Identity")[draft.number(6)], x)


def _clip(draft: _Draft, x: Value) -> tuple[Value, ...]:
    return draft.node("Clip", x, draft.constant(()), None)


def _binary(draft: _Draft, x: Value) -> tuple[Value, ...]:
    pair = [x, draft.like(x)][:: 1 if draft.number(2) else -1]
    return draft.node(("Add", "Sub", "Max", "Min")[draft.number(4)], *pair)


def _where(draft: _Draft, x: Value) -> tuple[Value, ...]:
    (condition,) = draft.node("Greater", x, draft.like(x))
    return draft.node("Where", condition, draft.like(x), x)


def _concat(draft: _Draft, x: Value) -> tuple[Value, ...]:
    axis = draft.number(len(_shape(x)))
    other = draft.node("Neg", x)[0] if draft.number(2) else draft.constant(_shape(x))
    return draft.node("Concat", x, other, axis=axis - len(_shape(x)) * draft.number(2))


def _split(draft: _Draft, x: Value) -> tuple[Value, ...]:
    axis = draft.number(len(_shape(x)))
    size = _shape(x)[axis]
    if size < 2:
        return ()
    return draft.node("Split", x, draft.integers([1, size - 1]), axis=axis, outputs=2)


def _reduce(draft: _Draft, x: Value) -> tuple[Value, ...]:
    rank = len(_shape(x))
    axes = draft.random.choice(rank, draft.number(rank) + 1, replace=False).tolist()
    kind = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean")[draft.number(4)]
    (y,) = draft.node(kind, x, draft.integers(axes), keepdims=draft.number(2))
    return draft.node("Floor", y)


def _arg(draft: _Draft, x: Value) -> tuple[Value, ...]:
    (index,) = draft.node(("ArgMax", "ArgMin")[draft.number(2)], x, axis=draft.number(len(_shape(x))), keepdims=draft.number(2))
    return draft.node("Cast", index, to=1)


def _hardmax(draft: _Draft, x: Value) -> tuple[Value, ...]:
    return draft.node("Hardmax", x, axis=draft.number(len(_shape(x))) - 1)


def _unsqueeze(draft: _Draft, x: Value) -> tuple[Value, ...]:
    rank = len(_shape(x))
    return draft.node("Unsqueeze", x, draft.integers([draft.number(rank + 1)])) if rank < 5 else ()


def _squeeze(draft: _Draft, x: Value) -> tuple[Value, ...]:
    ones = [axis for axis, dim in enumerate(_shape(x)) if dim == 1]
    return draft.node("Squeeze", x, draft.integers(ones[:2])) if ones else ()


def _slice(draft: _Draft, x: Value) -> tuple[Value, ...]:
    rank = len(_shape(x))
    axis, backwards = draft.number(rank), draft.number(2)
    bounds = (-1, -3, axis - rank, -1) if backwards else (0, 2, axis, 1)
    return draft.node("Slice", x, *(draft.integers([number]) for number in bounds))


def _gather(draft: _Draft, x: Value) -> tuple[Value, ...]:
    axis = draft.number(len(_shape(x)))
    if not _shape(x)[axis]:
        return ()
    indices = draft.random.integers(0, _shape(x)[axis], [(), (2,), (2, 1)][draft.number(3 if len(_shape(x)) < 4 else 2)])
    return draft.node("Gather", x, draft.graph.add_initializer(Tensor.from_array(np.array(indices, np.int64)), "i"), axis=axis)


def _pad(draft: _Draft, x: Value) -> tuple[Value, ...]:
    return draft.node("Pad", x, draft.integers(draft.random.integers(0, 2, 2 * len(_shape(x))).tolist()), draft.constant(()))


def _tile(draft: _Draft, x: Value) -> tuple[Value, ...]:
    return draft.node("Tile", x, draft.integers(draft.random.integers(1, 3, len(_shape(x))).tolist()))


def _expand(draft: _Draft, x: Value) -> tuple[Value, ...]:
    return draft.node("Expand", x, draft.integers([2 if dim == 1 else dim for dim in _shape(x)]))


def _resize(draft: _Draft, x: Value) -> tuple[Value, ...]:
    sizes = draft.integers([dim * (1 + draft.number(2)) for dim in _shape(x)])
    return draft.node("Resize", x, None, None, sizes, mode="nearest", coordinate_transformation_mode="asymmetric")


def _reshape(draft: _Draft, x: Value) -> tuple[Value, ...]:
    """Merge two neighbouring dimensions, split one in two, or say something else."""
    shape = list(_shape(x))
    place = draft.number(len(shape))
    even = [axis for axis, dim in enumerate(shape) if dim % 2 == 0 and dim]
    if place + 1 < len(shape) and draft.number(2):
        shape[place : place + 2] = [shape[place] * shape[place + 1]]
    elif even and len(shape) < 5:
        axis = even[draft.number(len(even))]
        shape[axis : axis + 1] = [2, shape[axis] // 2]
    else:
        shape.insert(place, 1)
    return draft.node("Reshape", x, draft.integers(shape))


def _shape_of(draft: _Draft, x: Value) -> tuple[Value, ...]:
    (shape,) = draft.node("Shape", x, **({"start": 1} if draft.number(2) and len(_shape(x)) > 1 else {}))
    return draft.node("Cast", shape, to=1)


def _quantize(draft: _Draft, x: Value) -> tuple[Value, ...]:
    axis = draft.number(len(_shape(x)))
    per_axis = draft.number(2)
    shape = (_shape(x)[axis],) if per_axis else ()
    scale = draft.graph.add_initializer(Tensor.from_array(np.exp2(draft.random.integers(-1, 2, shape)).astype(np.float32)), "s")
    zero = draft.graph.add_initializer(Tensor.from_array(draft.random.integers(-2, 3, shape).astype(np.int8)), "z")
    named = {"axis": axis} if per_axis else {}
    (quantized,) = draft.node("QuantizeLinear", x, scale, zero, **named)
    return draft.node("DequantizeLinear", quantized, scale, zero, **named)


def _quantized_constant(draft: _Draft, x: Value) -> tuple[Value, ...]:
    array = draft.random.integers(-3, 4, _shape(x)).astype(np.int8)
    quantized = draft.graph.add_initializer(Tensor.from_array(array), "q")
    (weight,) = draft.node("DequantizeLinear", quantized, draft.graph.add_initializer(Tensor.from_array(np.float32(2.0)), "s"))
    return draft.node("Add", x, weight)


def _convolution(draft: _Draft, x: Value) -> tuple[Value, ...]:
    shape = _shape(x)
    if len(shape) not in (3, 4) or 0 in shape:
        return ()
    count, rank = 1 + draft.number(4), len(shape)
    weights = draft.constant((count, shape[1], *[1 + draft.number(2)] * (rank - 2)))
    pads = [1] * (2 * (rank - 2))
    return draft.node("Clip", *draft.node("Conv", x, weights, pads=pads), draft.small(-4), draft.small(4))


def _pool(draft: _Draft, x: Value) -> tuple[Value, ...]:
    shape = _shape(x)
    if len(shape) not in (3, 4) or min(shape) < 2:
        return ()
    if not draft.number(4):
        return draft.node("GlobalMaxPool", x)
    kind = ("MaxPool", "AveragePool")[draft.number(2)]
    return draft.node("Floor", *draft.node(kind, x, kernel_shape=[2] * (len(shape) - 2)))


def _blocks(draft: _Draft, x: Value) -> tuple[Value, ...]:
    shape = _shape(x)
    if len(shape) != 4 or 0 in shape:
        return ()
    if shape[2] % 2 == 0 and shape[3] % 2 == 0:
        return draft.node("SpaceToDepth", x, blocksize=2)
    mode = ("DCR", "CRD")[draft.number(2)]
    return draft.node("DepthToSpace", x, blocksize=2, mode=mode) if shape[1] % 4 == 0 else ()


def _branch(draft: _Draft, x: Value) -> tuple[Value, ...]:
    """One branch is a convolution of what the graph around it makes, perhaps between two transposes."""
    shape = _shape(x)
    if len(shape) != 4 or 0 in shape:
        return ()
    (total,) = draft.node("ReduceSum", x, keepdims=0)
    (condition,) = draft.node("Greater", total, draft.small(0))
    data = draft.node("Transpose", *draft.node("Transpose", x, perm=(0, 2, 3, 1)), perm=(0, 3, 1, 2))[0] if draft.number(2) else x
    then, other = Graph("then"), Graph("else")
    weights = draft.constant((shape[1], shape[1], 1, 1))
    made = then.append(Node("Conv", [data, weights], 1, version=_VERSION))
    then.add_output(then.append(Node("Clip", [made.output, draft.small(-4), draft.small(4)], 1, version=_VERSION)).output)
    other.add_output(other.append(Node("Neg", [data], 1, version=_VERSION)).output)
    return draft.node("If", condition, then_branch=then, else_branch=other)


_SENSITIVE: tuple[_Step, ...] = (_convolution, _convolution, _pool, _blocks, _branch)

_STEPS: tuple[_Step, ...] = (
    _unary,
    _clip,
    _binary,
    _binary,
    _where,
    _concat,
    _split,
    _reduce,
    _arg,
    _hardmax,
    _unsqueeze,
    _squeeze,
    _slice,
    _gather,
    _pad,
    _tile,
    _expand,
    _resize,
    _reshape,
    _reshape,
    _shape_of,
    _quantize,
    _quantized_constant,
)


def random_model(seed: int, steps: int = 12, *, images: bool = False) -> Model:
    """A model whose every other node or so is a transpose; values that nobody reads are its outputs.

    Where it is of `images`, most of these are layout-sensitive operators instead.
    """
    draft = _Draft(seed)
    for shape in ([2, 3, 4, 5], [2, 4, 5, 3], [1, 6, 2])[: 1 + draft.number(3)]:
        draft.input(shape)
    while steps:
        x = draft.pool[-1 - draft.number(min(3, len(draft.pool)))]
        if not _shape(x) or np.prod(_shape(x)) > 4000:
            x = draft.pool[0]
        step = _transpose if draft.number(5) < 2 else _STEPS[draft.number(len(_STEPS))]
        if images and step is _transpose and draft.number(4):
            step = _SENSITIVE[draft.number(len(_SENSITIVE))]
        draft.pool.extend(step(draft, x))
        steps -= 1
    for index, value in enumerate(draft.pool):
        if not value.use_count and value.producer is not None:
            value.name = f"y{index}"
            draft.graph.add_output(value)
    return draft.model
