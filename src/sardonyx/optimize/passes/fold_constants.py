"""Compute what is the same in every run."""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Sequence

import numpy as np

from sardonyx.cancellation import check_cancelled, limited_to, raise_interrupt
from sardonyx.dtypes import Array, DataType, bit_width
from sardonyx.errors import Fail, SardonyxError
from sardonyx.ir import Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.schema import place_of
from sardonyx.optimize.agreement import MOVING
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import RANDOM, Names, overridable_values, take_over
from sardonyx.optimize.helpers.inline_branch import inline_branch
from sardonyx.trace import event

__all__ = ["FOLD_CONSTANTS"]

SMALL_BYTES = 64 << 10
"""A constant up to this size may be made from less than itself."""
GROWTH = 2
"""A larger one may take as many times the bytes of the constants that it is made from: a cast from float16 to float is folded."""
_FEW_ELEMENTS = 1024
_TOTAL_GROWTH = 3
"""How many times the bytes of the model's constants those may take together that there are after folding."""
_PATIENCE = 3
"""How many times as long by the clock as by the processor's time an evaluation may take: others may use the machine too."""

_KEPT = frozenset(["DequantizeLinear", "QuantizeLinear", *RANDOM])
_DOMAINS = frozenset(["", "ai.onnx.ml", "com.microsoft"])


class _FoldConstants:
    """Put initializers in the place of values that are known before the first run.

        Constant                                   ->  its tensor
        a value that shape inference knows         ->  its elements (Shape of a static shape, chains of Gather and Concat on it)
        a node all of whose inputs are constants   ->  what the context's evaluator makes of them
        If with a constant condition               ->  the nodes of the branch that is taken

    Left alone: operators that draw random numbers; QuantizeLinear and DequantizeLinear, which providers fuse with what is around
    them; other nodes with subgraphs; operators of unknown domains; what would exceed `context.fold_bytes`, or
    `context.fold_in_place_bytes` where arithmetic makes no more than it reads (weights that are standardized or scaled), or grow
    more than `GROWTH` times beyond `SMALL_BYTES` (Expand, Tile, Range, ConstantOfShape), or is of unknown size, or would make
    the model grow by more than is left of `context.fold_growth_bytes`; what the evaluator refuses, or all evaluation once
    `context.fold_seconds` of the thread's processor time are used up, whatever else the machine does, also that which is then
    under way; an Identity that gives an output its name; what would make all constants larger than `context.fold_total_bytes`, as
    many sums of one weight are, which stays. A constant that only a folded node read goes with it.

    Holds before: nodes in topological order, functions inlined, shapes inferred since the last change for the best effect.
    Cost: O(nodes) and the evaluations.
    """

    name = "fold_constants"
    aliases = (
        "ConstantFolding",
        "UnsqueezeElimination",
    )

    def run(self, model: Model, context: Context) -> bool:
        """Fold; whether anything was."""
        return _Folding(model, context).fold(model.graph)


FOLD_CONSTANTS: Pass = _FoldConstants()


class _Folding:
    """One run of the pass."""

    def __init__(self, model: Model, context: Context) -> None:
        self._model, self._context = model, context
        self._overridable = overridable_values(model)
        self._names: Names | None = None
        self._inputs = frozenset(value for graph in nested_graphs(model.graph) for value in graph.inputs)
        self._made: dict[Value, int] = {}
        total_bytes = _constant_bytes(model)
        if context.fold_total_bytes is None:
            context.fold_total_bytes = context.fold_bytes + _TOTAL_GROWTH * total_bytes
        self._left_bytes = context.fold_total_bytes - total_bytes

    def fold(self, graph: Graph) -> bool:
        changed = False
        for node in graph:
            check_cancelled()
            if node.subgraphs:
                changed |= self._fold_inside(node)
            elif self._is_candidate(node):
                arrays = self._known(node)
                if arrays is None:
                    arrays = self._evaluated(node)
                if arrays is not None:
                    self._replace(node, arrays)
                    changed = True
        return changed

    def _fold_inside(self, node: Node) -> bool:
        if node.op_type == "If" and not node.domain and node.inputs[0] is not None:
            condition = self._constant(node.inputs[0])
            if condition is not None and condition.size == 1:
                branch = "then_branch" if condition.numpy().reshape(()) else "else_branch"
                inline_branch(node, branch, self._fresh)
                return True
        changed = False
        for subgraph in node.subgraphs:
            changed |= self.fold(subgraph)
        return changed

    def _is_candidate(self, node: Node) -> bool:
        if node.domain not in _DOMAINS or node.op_type in _KEPT or not any(value.use_count for value in node.outputs):
            return False
        return node.op_type != "Identity" or not node.output.is_graph_output

    def _constant(self, value: Value) -> Tensor | None:
        """Return the tensor that a value is, from its initializer or from what shape inference knows."""
        if value in self._overridable:
            return None
        if value.constant is not None:
            return value.constant
        array = self._fact(value)
        return None if array is None else Tensor.from_array(array)

    def _fact(self, value: Value) -> Array | None:
        """Return the integers or booleans that shape inference knows.

        Floats are left to the evaluator, whose rounding is the kernels'.
        """
        fact = self._context.facts.get(value)
        array = None if fact is None else fact.constant
        return array if array is not None and array.dtype.kind in "iub" else None

    def _known(self, node: Node) -> list[Array] | None:
        """Return the outputs in use, where shape inference knows each or the node is a Constant."""
        if node.op_type == "Constant" and not node.domain:
            return _constant_arrays(node)
        arrays: list[Array] = []
        for value in node.outputs:
            array = self._fact(value) if value.use_count else None
            if array is None and value.use_count:
                return None
            arrays += [array] if array is not None else []
        return arrays

    def _evaluated(self, node: Node) -> list[Array] | None:
        evaluate = self._context.evaluate
        if evaluate is None or self._context.fold_seconds <= 0 or not node.inputs:
            return None
        inputs: list[Tensor | None] = []
        for value in node.inputs:
            inputs.append(None if value is None else self._constant(value))
            if inputs[-1] is None and value is not None:
                return None
        most_bytes = self._most_bytes(node)
        if not self._fits(node, [tensor for tensor in inputs if tensor is not None], most_bytes):
            event("fold.decline", node=node.name, operator=node.op_type, reason="the result is too large, or its size is unknown")
            return None
        start = time.thread_time()
        try:
            with np.errstate(all="ignore"), limited_to(_PATIENCE * self._context.fold_seconds, _too_long):
                results = evaluate(node, [None if tensor is None else tensor.numpy() for tensor in inputs])
        except SardonyxError as error:
            check_cancelled()
            raise_interrupt(error)
            event("fold.decline", node=node.name, operator=node.op_type, reason=str(error))
            return None
        finally:
            self._context.fold_seconds -= time.thread_time() - start
        arrays = _checked(node, results, min(most_bytes, self._spare_bytes(node)))
        self._context.fold_growth_bytes -= 0 if arrays is None else _growth(node, inputs, sum(array.nbytes for array in arrays))
        return arrays

    def _most_bytes(self, node: Node) -> int:
        """Return how large a result of `node` may be.

        Copies of large constants cost more than they save, where the constants themselves stay; a view takes no memory.
        """
        return self._context.fold_bytes if node.op_type in _COPYING else self._context.fold_in_place_bytes

    def _fits(self, node: Node, inputs: Sequence[Tensor], most_bytes: int) -> bool:
        """Return whether the result is known to be no larger than allowed, before it is computed."""
        made_bytes = 0
        for value in node.outputs:
            size = _size_bytes(value, most_bytes)
            if size is None:
                return (
                    node.op_type not in _INFLATING
                    and sum(tensor.size for tensor in inputs) <= _FEW_ELEMENTS
                    and _are_short(node, inputs)
                )
            made_bytes += size
        if made_bytes > self._spare_bytes(node):
            return False
        read_bytes = sum(tensor.size_bytes for tensor in inputs)
        if _growth(node, inputs, made_bytes) > self._context.fold_growth_bytes:
            return False
        if made_bytes > (most_bytes if made_bytes <= read_bytes else self._context.fold_bytes):
            return False
        return made_bytes <= max(SMALL_BYTES, GROWTH * read_bytes)

    def _replace(self, node: Node, arrays: Sequence[Array]) -> None:
        """Put initializers in the place of the outputs in use and remove the node."""
        graph = node.graph
        if graph is None:
            raise ValueError(f"{place_of(node)} is in no graph")
        used, freed = [value for value in node.outputs if value.use_count], self._freed(node)
        for value, array in zip(used, arrays, strict=True):
            tensor = Tensor.from_array(np.ascontiguousarray(array).reshape(array.shape))
            name = value.name
            if not name or value.is_graph_output or name in graph.initializers:
                name = self._fresh(f"{name or node.name or node.op_type}/folded")
            made = graph.add_initializer(tensor, name)
            if node.op_type != "Constant":
                self._made[made] = tensor.size_bytes
                self._left_bytes -= tensor.size_bytes
            take_over(value, made, node.version)
        graph.remove(node)
        for value in freed:
            del graph.initializers[value.name]
            self._left_bytes += self._made.pop(value, 0)

    def _spare_bytes(self, node: Node) -> int:
        """Return how large the results of `node` may be, so that all constants are no larger than allowed."""
        return self._left_bytes + sum(self._made.get(value, 0) for value in self._freed(node))

    def _freed(self, node: Node) -> list[Value]:
        """Return the initializers of its graph that only `node` reads: they go with it."""
        graph, counts = node.graph, collections.Counter(node.inputs)
        if graph is None:
            return []
        return [
            value
            for value, count in counts.items()
            if value is not None
            and value.use_count == count
            and graph.initializers.get(value.name) is value
            and value not in self._inputs
        ]

    def _fresh(self, base: str) -> str:
        if self._names is None:
            self._names = Names.of(self._model)
        return self._names.fresh(base)


def _constant_arrays(node: Node) -> list[Array] | None:
    for name, attribute in node.attributes.items():
        if attribute.reference is None and name in _CONSTANT_DTYPES:
            return [np.asarray(attribute.value, _CONSTANT_DTYPES[name].numpy)]
        if name == "value" and attribute.reference is None:
            tensor: Tensor = attribute.value
            return [tensor.numpy()]
    return None


_CONSTANT_DTYPES = {
    "value_float": DataType.FLOAT,
    "value_floats": DataType.FLOAT,
    "value_int": DataType.INT64,
    "value_ints": DataType.INT64,
    "value_string": DataType.STRING,
    "value_strings": DataType.STRING,
}


def _too_long() -> SardonyxError:
    return Fail("it takes longer than folding may")


def _constant_bytes(model: Model) -> int:
    """Return the bytes of all constants: initializers, and tensors of Constant nodes, which calls of a function share."""
    tensors: dict[int, Tensor] = {}
    for graph in nested_graphs(model.graph):
        tensors |= {id(value.constant): value.constant for value in graph.initializers.values() if value.constant is not None}
        for node in graph:
            attribute = node.attributes.get("value") if node.op_type == "Constant" else None
            if attribute is not None and isinstance(attribute.value, Tensor):
                tensors[id(attribute.value)] = attribute.value
    return sum(tensor.size_bytes for tensor in tensors.values())


def _are_short(node: Node, inputs: Sequence[Tensor]) -> bool:
    """Return whether texts that are joined stay short: joined with itself again and again, a short one is long."""
    texts = [tensor for tensor in inputs if tensor.dtype is DataType.STRING]
    if node.op_type != "StringConcat" or not texts:
        return True
    longest = sum(max(map(len, tensor.numpy().reshape(-1).tolist()), default=0) for tensor in texts)
    return longest * math.prod(tensor.size for tensor in texts) <= SMALL_BYTES


def _growth(node: Node, inputs: Sequence[Tensor | None], made_bytes: int) -> int:
    """Return by how many bytes the model grows when the result takes the place of the node and its constants."""
    if node.op_type in ("Cast", "CastLike"):
        return 0
    return max(0, made_bytes - sum(tensor.size_bytes for tensor in inputs if tensor is not None))


_COPYING = MOVING - {"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}
_INFLATING = frozenset(
    ["CenterCropPad", "ConstantOfShape", "Einsum", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"]
)


def _size_bytes(value: Value, most_bytes: int) -> int | None:
    """Return bytes that a value takes, None where unknown; an output that nobody reads takes none."""
    if not value.use_count:
        return 0
    if value.type is not None and not isinstance(value.type, TensorType):
        return most_bytes + 1
    if value.type is None or value.type.shape is None or value.type.dtype is DataType.STRING:
        return None
    elements = 1
    for dim in value.type.shape:
        if not isinstance(dim, int):
            return None
        elements *= dim
    return elements * bit_width(value.type.dtype) // 8


def _checked(node: Node, results: Sequence[object], most_bytes: int) -> list[Array] | None:
    """Return the arrays for the outputs in use.

    None where one is no tensor, is too large, or is not of the type that is expected.
    """
    arrays: list[Array] = []
    for value, result in zip(node.outputs, results, strict=False):
        if not value.use_count:
            continue
        if not isinstance(result, np.ndarray) or result.nbytes > most_bytes:
            return None
        if value.dtype is not None and value.dtype is not DataType.from_numpy(result.dtype):
            event("fold.decline", node=node.name, operator=node.op_type, reason=f"got {result.dtype}, expected {value.dtype}")
            return None
        arrays.append(result)
    return arrays
