"""Distinct elements, and boxes that survive better ones: how many there are is known only when they have run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels import distinct, distinct_blocks
from sardonyx.codegen.kernels.images import suppress
from sardonyx.codegen.kernels.ranking import DIGITS, MOST_KEYS
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ir.shape import ceil_div, maximum, minimum, product
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.sort import NonMaxSuppression, Unique
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type, scalar_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer

_TASKS_PER_THREAD = 4


@dataclasses.dataclass(frozen=True, slots=True)
class UniqueSpec:
    """A Unique."""

    kind: Type
    """The type of elements."""
    axis: int | None
    """The axis along which slices are compared; None for all elements."""
    is_sorted: bool
    """Whether the result is ascending."""


def claim_unique(node: Node) -> UniqueSpec | str:
    """Return what a Unique compares, or why it cannot be compiled."""
    view, dtype, rank = Unique.of(node), given(node.inputs[0]).dtype, len(shape_of(node.inputs[0]))
    kind = element_type(dtype)
    if kind is None:
        return f"elements of type {dtype}"
    return UniqueSpec(kind, None if view.axis is None else normalize_axis(view.axis, rank), view.is_sorted)


@dataclasses.dataclass(frozen=True, slots=True)
class UniqueKernel:
    """The distinct slices of an array."""

    kind: Type
    """The type of elements."""
    single: bool
    """Whether a slice is one element."""
    is_sorted: bool
    """Whether the result is ascending."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        parts = [
            f"unique_{self.kind.kind.value}{self.kind.bits}",
            "single" if self.single else "",
            "" if self.is_sorted else "first",
        ]
        return "_".join([*filter(None, parts), target.isa])

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        distinct.write_distinct(module, symbol, self.kind, single=self.single, is_sorted=self.is_sorted)


@dataclasses.dataclass(frozen=True, slots=True)
class UniqueStepKernel:
    """One of the steps that find the distinct elements of large arrays."""

    kind: Type
    """The type of elements."""
    name: str
    """One of STEPS."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"unique_{self.name}_{self.kind.kind.value}{self.kind.bits}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        distinct_blocks.write_step(module, symbol, self.kind, self.name)


@lowers("Unique", claim=claim_unique, counts=lambda spec: True)
def unique(low: Lowering, group: Group, spec: UniqueSpec) -> None:
    """Lower to a kernel that sorts slices, and stores all four results; many elements are sorted block by block."""
    node, source, length = group.node, low.of(group.node.inputs[0]), low.counter()
    shape, axis = ((product(source.shape),), 0) if spec.axis is None else (source.shape, spec.axis)
    n, sides = shape[axis], (product(shape[:axis]), product(shape[axis + 1 :]))
    results = [
        low.result_up_to(node.outputs[0], shape, length, axis),
        _vector(low, node, 1, n, length),
        low.result(node.outputs[2]) if len(node.outputs) > 2 else low.temporary(DataType.INT64, (n,)),
        _vector(low, node, 3, n, length),
    ]
    work = low.temporary(DataType.UINT8, (n, distinct.work_bytes(spec.kind)))
    buffers = [source, *results, length, work]
    may_be_many = spec.axis is None and not (isinstance(n, int) and n <= _FEW)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        if sizes(n) > MOST_KEYS:
            raise InvalidArgument(
                f"Unique among {sizes(n)} slices of data of shape {sizes.shape(source.shape)}; give it {MOST_KEYS}"
            )
        before, after = sizes(sides[0]), sizes(sides[1])
        is_many = may_be_many and sizes(n) > _FEW
        params = [before if after else 0, sizes(n), max(after, 1)]
        return params, 0 if is_many else params[0] * params[2] + 1

    if not may_be_many or not isinstance(n, int):
        symbol = low.kernel(UniqueKernel(spec.kind, spec.axis is None, spec.is_sorted))
        low.step(group, symbol, buffers, writes=range(1, 7), plan=plan, together=1)
    if may_be_many:
        _add_blocks(low, group, spec, buffers, n)


_FEW = 1 << 14
"""Up to so many elements are one task."""


def _add_blocks(low: Lowering, group: Group, spec: UniqueSpec, buffers: Sequence[Buffer], n: Dim) -> None:
    """Add the steps that find distinct elements block by block, which do nothing where there are few."""
    digits = distinct_blocks.digits_of(spec.kind)
    blocks = maximum(minimum(ceil_div(n, distinct_blocks.block_of(0)), distinct_blocks.MOST_BLOCKS), 1)
    workspace = [
        low.temporary(DataType.INT32, (blocks, digits * DIGITS)),
        low.temporary(DataType.INT64, (distinct_blocks.STATE_WORDS,)),
        low.temporary(DataType.INT64, (blocks,)),
    ]

    def add(name: str, number: int = 0) -> None:
        def plan(sizes: Sizes) -> tuple[list[int], int]:
            count = sizes(n)
            if count > MOST_KEYS:
                raise InvalidArgument(f"Unique among {count} elements; give it {MOST_KEYS}")
            block = distinct_blocks.block_of(count)
            tasks = 0 if count <= _FEW else 1 if name == "shared" else -(-count // block)
            return [count, block, -(-count // block), number], tasks

        symbol = low.kernel(UniqueStepKernel(spec.kind, name))
        low.step(group, symbol, [*buffers, *workspace], writes=range(1, 10), plan=plan)

    add("keys")
    add("shared")
    for number in range(digits):
        if number:
            add("recount", number)
        add("spread", number)
    add("groups")
    add("numbers")
    if spec.is_sorted:
        add("results")
        return
    for name in ("firsts", "renumber", "renumbered_results", "inverse"):
        add(name)


def _vector(low: Lowering, node: Node, number: int, n: Dim, length: Buffer) -> Buffer:
    if number >= len(node.outputs):
        return low.temporary(DataType.INT64, (n,))
    return low.result_up_to(node.outputs[number], (n,), length)


@dataclasses.dataclass(frozen=True, slots=True)
class SuppressSpec:
    """A NonMaxSuppression."""

    has_centers: bool
    """Whether a box is its center and its size."""
    limits_scores: bool
    """Whether boxes need a least score."""
    limit: int | None
    """The most boxes of a class; None where that is computed."""


_LIMIT, _OVERLAP, _LEAST = 2, 3, 4
_PART_PAIRS = 1 << 24
"""How many overlaps a task computes about, while a run that is to end has to wait."""
_NUMBERS = {_LIMIT: DataType.INT64, _OVERLAP: DataType.FLOAT, _LEAST: DataType.FLOAT}


def claim_suppression(node: Node) -> SuppressSpec | str:
    """Return what a NonMaxSuppression selects, or why it cannot be compiled."""
    boxes, scores = shape_of(node.inputs[0]), shape_of(node.inputs[1])
    if any(given(value).dtype is not DataType.FLOAT for value in node.inputs[:2]):
        return "boxes or scores that are no float32"
    if len(boxes) != 3 or len(scores) != 3 or any(isinstance(a - b, int) and a != b for a, b in _pairs(boxes, scores)):
        return f"that boxes (N, M, 4) and scores (N, C, M) fit each other {open_or_wrong(boxes, scores)}"
    for index, dtype in _NUMBERS.items():
        value = node.input(index)
        if value is not None and (value.dtype is not dtype or product(shape_of(value)) != 1):
            return f"input {index} is not one number of type {dtype}"
    limit = 0 if node.input(_LIMIT) is None else scalar_of(node, _LIMIT)
    limit = None if limit is None else max(int(limit), 0)
    return SuppressSpec(NonMaxSuppression.of(node).has_centers, node.input(_LEAST) is not None, limit)


def _pairs(boxes: Shape, scores: Shape) -> list[tuple[Dim, Dim]]:
    """Return the sizes that must be equal, those that only the run shows are compared then."""
    return [(boxes[0], scores[0]), (boxes[1], scores[2]), (boxes[2], 4)]


@dataclasses.dataclass(frozen=True, slots=True)
class SuppressKernel:
    """The boxes of each class that survive."""

    has_centers: bool
    """Whether a box is its center and its size."""
    limits_scores: bool
    """Whether boxes need a least score."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"suppress_{'centers' if self.has_centers else 'corners'}{'_scores' if self.limits_scores else ''}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        suppress.write_suppress(module, symbol, centers=self.has_centers, limits_scores=self.limits_scores)


@dataclasses.dataclass(frozen=True, slots=True)
class SelectedKernel:
    """The boxes of all classes in one list."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"selected_boxes_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        suppress.write_selected(module, symbol)


@lowers("NonMaxSuppression", claim=claim_suppression, counts=lambda spec: True, inputs=2)
def non_max_suppression(low: Lowering, group: Group, spec: SuppressSpec) -> None:
    """Select for each class, then list: at most the limit of boxes for each, or all boxes where the limit is computed."""
    node = group.node
    boxes, scores, length = low.of(node.inputs[0]), low.of(node.inputs[1]), low.counter()
    N, C, M = scores.shape
    most = M if spec.limit is None else minimum(M, spec.limit)
    together = 1 if low.threads == 1 else _TASKS_PER_THREAD * low.threads
    per_box, per_kept = suppress.work_words()
    words = M * per_box + (most + suppress.PADDING) * per_kept + 1
    kept, counts = low.temporary(DataType.INT32, (N * C, most)), low.temporary(DataType.INT64, (N * C,))
    work = low.temporary(DataType.INT32, (together, words))
    numbers = [
        _number(low, node.input(_LIMIT), np.array([spec.limit or 0], np.int64)),
        _number(low, node.input(_OVERLAP), np.zeros(1, np.float32)),
        _number(low, node.input(_LEAST), np.zeros(1, np.float32)),
    ]
    symbol = low.kernel(SuppressKernel(spec.has_centers, spec.limits_scores))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        if any(sizes(a) != sizes(b) for a, b in _pairs(boxes.shape, scores.shape)):
            found = f"boxes {sizes.shape(boxes.shape)} and scores {sizes.shape(scores.shape)}"
            raise InvalidArgument(f"{found}; expected (N, M, 4) and (N, C, M)")
        if sizes(M) > MOST_KEYS:
            raise InvalidArgument(f"NonMaxSuppression of {sizes(M)} boxes; at most {MOST_KEYS} are possible")
        share = max(64, _PART_PAIRS // max(sizes(most), 1))
        parts, every = max(1, -(-sizes(M) // share)), max(sizes.product((N, C)), 0)
        params = [max(sizes(C), 1), sizes(M), sizes(most), together, sizes(words), parts, share, every]
        return params, -(-every // together) * parts * together

    buffers = [boxes, scores, *numbers, kept, counts, work, STATUS]
    low.step(group, symbol, buffers, writes=[5, 6, 7], plan=plan, together=together, failure=_FAILURE)
    result: Shape = (N * C * most, 3)
    low.step(
        group,
        low.kernel(SelectedKernel()),
        [kept, counts, low.result_up_to(node.output, result, length), length],
        writes=[2, 3],
        plan=lambda sizes: ([sizes.product((N, C)), max(sizes(C), 1), sizes(most)], 1),
    )


_FAILURE = "iou_threshold is no number from 0 to 1"


def _number(low: Lowering, value: Value | None, default: np.ndarray) -> Buffer:
    return low.constant(default) if value is None else low.of(value)
