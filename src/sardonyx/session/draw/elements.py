"""The elements that the operators of a model take from its inputs: indices, counts, texts of a vocabulary.

    ids ─► Cast ─► Unsqueeze ─► Gather(table [30522, 768])          ids are at least 0 and at most 30521

An input is followed forward through operators that hand its elements on (also into the bodies of Loop, Scan, If and functions) to
those that read them as numbers of rows, steps, sizes or classes. Where several do, their ranges are intersected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Graph, Model, Node, Tensor, Value
from sardonyx.ops.fact import UNKNOWN, Fact
from sardonyx.ops.infer import fact_of

__all__ = ["ANY", "Elements", "elements_of"]

_FEW = 4
"""Steps of a loop, ends of a range and their like."""


@dataclasses.dataclass(frozen=True, slots=True)
class Elements:
    """What the elements of an input may be."""

    low: int | None = None
    """The least; None where none is known."""
    high: int | None = None
    """The greatest; None where none is known."""
    vocabulary: tuple[str | int, ...] = ()
    """The texts or numbers that are known to the model; empty where there is no such list."""
    distinct: bool = False
    """Whether no two elements may be equal, as with axes."""

    def and_also(self, other: Elements) -> Elements:
        """Return what satisfies both; of two ranges without common elements the first."""
        low = max((bound for bound in (self.low, other.low) if bound is not None), default=None)
        high = min((bound for bound in (self.high, other.high) if bound is not None), default=None)
        if low is not None and high is not None and low > high:
            return self
        return Elements(low, high, self.vocabulary or other.vocabulary, self.distinct or other.distinct)

    def moved(self, by: int) -> Elements:
        """Return what an input may be to which `by` is added before these elements are read."""
        if not by:
            return self
        low = None if self.low is None else self.low - by
        return dataclasses.replace(self, low=low, high=None if self.high is None else self.high - by)


ANY = Elements()
"""No bounds."""


def elements_of(model: Model, value: Value, facts: Mapping[Value, Fact]) -> Elements:
    """Return what the elements of an input may be.

    Args:
        model: the model; nothing of it is changed.
        value: the input.
        facts: the facts of all values, for sizes that are known.
    """
    found, seen = ANY, {value}
    pending = [(value, 0)]
    while pending:
        current, added = pending.pop()
        for user, index in current.uses:
            if isinstance(user, Graph):
                continue
            reader = _READERS.get((user.op_type, index))
            if reader is not None:
                found = found.and_also(reader(_Call(user, facts)).moved(added))
            for following, more in _following(model, user, index, facts):
                if following not in seen:
                    seen.add(following)
                    pending.append((following, added + more))
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Call:
    """A node that reads elements of an input."""

    node: Node
    facts: Mapping[Value, Fact]

    def fact(self, index: int) -> Fact:
        value = self.node.input(index)
        return UNKNOWN if value is None else self.facts.get(value) or fact_of(value)

    def size(self, index: int, axis: int) -> int | None:
        """Return a size of an input, where known."""
        shape = self.fact(index).shape
        if shape is None or not -len(shape) <= axis < len(shape):
            return None
        dim = shape[axis]
        return dim if isinstance(dim, int) else None

    def number(self, name: str, default: int) -> int:
        found = self.node.get(name, default)
        return found if isinstance(found, int) else default


def _following(model: Model, node: Node, index: int, facts: Mapping[Value, Fact]) -> Iterator[tuple[Value, int]]:
    """Yield the values that have the elements of input `index`, and what is added to them."""
    function = model.functions.get((node.domain, node.op_type, node.overload))
    if function is not None:
        yield from ((value, 0) for value in function.graph.inputs[index : index + 1])
    elif node.op_type in _HANDED_ON and index in _HANDED_ON[node.op_type]:
        yield from ((value, 0) for value in node.outputs)
    elif node.op_type in ("Add", "Sub"):
        other = _Call(node, facts).fact(1 - index).constant
        if other is not None and other.size == 1 and other.dtype.kind in "iu" and (node.op_type == "Add" or index == 0):
            yield node.outputs[0], int(other.item()) * (1 if node.op_type == "Add" else -1)
    for body in node.subgraphs:
        skipped = node.op_type == "Loop"
        place = index if skipped else index - (0 if node.op_type == "Scan" else len(node.inputs))
        if 0 <= place < len(body.inputs) and (not skipped or index >= 2):
            yield body.inputs[place], 0


_HANDED_ON: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        "Identity Cast CastLike Unsqueeze Squeeze Reshape Flatten Transpose Slice Expand Tile Split Abs Pad".split(), (0,)
    ),
    **dict.fromkeys("Gather GatherElements GatherND Compress Resize ReverseSequence Clip".split(), (0,)),
    **dict.fromkeys("Concat Max Min".split(), tuple(range(64))),
    "Where": (1, 2),
    "ArrayFeatureExtractor": (0,),
}
"""Operators whose outputs have elements of these inputs."""


def _rows(data: int, axis: int | None = None) -> Callable[[_Call], Elements]:
    """Return a reader of indices into input `data` along `axis`, or that of the attribute."""

    def read(call: _Call) -> Elements:
        size = call.size(data, call.number("axis", 0) if axis is None else axis)
        return Elements(0, size - 1 if size else 0)

    return read


def _coordinates(call: _Call) -> Elements:
    """GatherND and ScatterND: all coordinates in the smallest dimension that they index."""
    indices, batch = call.fact(1).shape, call.number("batch_dims", 0)
    depth = indices[-1] if indices and isinstance(indices[-1], int) else 1
    sizes = [call.size(0, axis) for axis in range(batch, batch + depth)]
    return Elements(0, max(0, min((size or 1) for size in sizes or [1]) - 1))


def _within(low: int | None, high: int | None, *, distinct: bool = False) -> Callable[[_Call], Elements]:
    return lambda call: Elements(low, high, distinct=distinct)


def _classes(call: _Call) -> Elements:
    depth = call.fact(1).constant
    return Elements(0, max(0, int(depth.ravel()[0]) - 1) if depth is not None and depth.size else 0)


def _lengths(data: int, axis: int) -> Callable[[_Call], Elements]:
    """Return a reader of lengths of sequences, of which each has at least one step."""
    return lambda call: Elements(1, call.size(data, axis) or 1)


def _most(call: _Call) -> Elements:
    size = call.size(0, call.number("axis", -1))
    return Elements(1, min(size or 1, _FEW))


def _axes(call: _Call) -> Elements:
    return Elements(0, max(0, len(call.fact(0).shape or (1,)) - 1), distinct=True)


def _last_key(call: _Call) -> Elements:
    """GroupQueryAttention: the number of the last key of each sequence, and with it that of all keys."""
    past, new = call.size(3, 2), call.size(0, 1)
    last = (past or 0) + (new or 1) - 1
    return Elements(last, last)


def _all_keys(call: _Call) -> Elements:
    last = _last_key(call).high or 0
    return Elements(last + 1, last + 1)


def _known_keys(*names: str) -> Callable[[_Call], Elements]:
    """Return a reader of texts or numbers of which the node has a list."""

    def read(call: _Call) -> Elements:
        for name in names:
            found = call.node.get(name)
            items = found.numpy().ravel().tolist() if isinstance(found, Tensor) else found
            if isinstance(items, (list, tuple)) and items:
                return Elements(vocabulary=tuple(item for item in items if isinstance(item, (str, int))))
        return ANY

    return read


_LIST_OF_AXES = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare"

_READERS: dict[tuple[str, int], Callable[[_Call], Elements]] = {
    ("Gather", 1): _rows(0),
    ("GatherElements", 1): _rows(0),
    ("ScatterElements", 1): _rows(0),
    ("Scatter", 1): _rows(0),
    ("TensorScatter", 2): _within(0, 0),
    ("GatherND", 1): _coordinates,
    ("ScatterND", 1): _coordinates,
    ("GatherBlockQuantized", 1): _rows(0, 0),
    ("GatherPacked", 1): _rows(0),
    ("ArrayFeatureExtractor", 1): _rows(0, -1),
    ("OneHot", 0): _classes,
    ("OneHot", 1): _within(_FEW, _FEW),
    ("EmbedLayerNormalization", 0): _rows(2, 0),
    ("EmbedLayerNormalization", 1): _rows(4, 0),
    ("EmbedLayerNormalization", 8): _rows(3, 0),
    ("RotaryEmbedding", 1): _rows(2, 0),
    ("RotaryEmbedding", 3): _rows(1, 0),
    ("GroupQueryAttention", 5): _last_key,
    ("GroupQueryAttention", 6): _all_keys,
    ("SequenceAt", 1): _within(0, 0),
    ("SequenceErase", 1): _within(0, 0),
    ("SequenceInsert", 2): _within(0, 0),
    ("Loop", 0): _within(1, _FEW),
    ("TopK", 1): _most,
    ("Trilu", 1): _within(0, 0),
    ("CumSum", 1): _within(0, 0),
    ("Reshape", 1): _within(-1, -1),
    ("Expand", 1): _within(1, 1),
    ("Tile", 1): _within(1, 2),
    ("ConstantOfShape", 0): _within(1, _FEW),
    ("Pad", 1): _within(0, 1),
    ("Range", 0): _within(0, 0),
    ("Range", 1): _within(1, _FEW),
    ("Range", 2): _within(1, 1),
    ("Slice", 1): _within(0, 0),
    ("Slice", 2): _within(1, None),
    ("Slice", 3): _axes,
    ("Slice", 4): _within(1, 1),
    ("Resize", 3): _within(1, 8),
    ("Squeeze", 1): _axes,
    ("Unsqueeze", 1): _axes,
    **{(op_type, 1): _axes for op_type in _LIST_OF_AXES.split()},
    ("Div", 1): _within(1, 9),
    ("Mod", 1): _within(1, 9),
    ("BitShift", 1): _within(0, 7),
    ("NonMaxSuppression", 2): _within(1, 10),
    **{(op_type, 4): _lengths(0, 0) for op_type in ("LSTM", "GRU", "RNN")},
    ("ReverseSequence", 1): lambda call: Elements(1, call.size(0, call.number("time_axis", 0)) or 1),
    ("LabelEncoder", 0): _known_keys("keys_strings", "keys_int64s", "keys_tensor", "classes_strings"),
    ("OneHotEncoder", 0): _known_keys("cats_strings", "cats_int64s"),
    ("CategoryMapper", 0): _known_keys("cats_strings"),
    ("DictVectorizer", 0): _known_keys("string_vocabulary", "int64_vocabulary"),
    ("TfIdfVectorizer", 0): _known_keys("pool_strings", "pool_int64s"),
}
"""Operator and number of an input -> what its elements may be."""
