"""The k largest or smallest elements along an axis."""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.kernels.ranking import MOST_KEYS
from sardonyx.codegen.kernels.top_k import SORTED_FROM, STATE_BYTES, TopKParams, list_room, sorting_passes, work_bytes, write_top_k
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node, Shape
from sardonyx.ir.shape import minimum, product
from sardonyx.ops.views.sort import TopK
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type, scalar_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, index_type, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer
from sardonyx.providers.cpu.strided import TASK_ELEMENTS, StridedDim, copy_region, dense_strides

_TASKS_PER_THREAD = 4


@dataclasses.dataclass(frozen=True, slots=True)
class TopKSpec:
    """A TopK."""

    kind: Type
    """The type of elements."""
    axis: int
    """The axis that is searched."""
    takes_largest: bool
    """Whether the largest are wanted, or the smallest."""
    k: int | None
    """How many; None where that is computed."""


def claim(node: Node) -> TopKSpec | str:
    """Return what a TopK finds, or why it cannot be compiled."""
    shape, dtype = shape_of(node.inputs[0]), given(node.inputs[0]).dtype
    kind, view = element_type(dtype), TopK.of(node)
    if kind is None:
        return f"elements of type {dtype}"
    if not shape:
        return "the data is a scalar"
    k = view.k
    if k is None:
        if node.input(1) is None or index_type(node.inputs[1]) != I64:
            return "k is no int64"
        if product(shape_of(node.inputs[1])) != 1:
            return "that k is one number depends on sizes, or is not so"
        number = scalar_of(node, 1)
        k = None if number is None else int(number)
    axis = view.place(len(shape))
    return TopKSpec(kind, axis, view.takes_largest, k)


@dataclasses.dataclass(frozen=True, slots=True)
class TopKKernel:
    """The k first elements of rows."""

    kind: Type
    """The type of elements."""
    largest: bool
    """Whether the largest are wanted, or the smallest."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"top_k_{self.kind.kind.value}{self.kind.bits}_{'largest' if self.largest else 'smallest'}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_top_k(module, symbol, self.kind, largest=self.largest)


@lowers("TopK", claim=claim, counts=lambda spec: spec.k is None)
def top_k(low: Lowering, group: Group, spec: TopKSpec) -> None:
    """Bring the axis to the end, and find the first elements of each row; a computed k leaves room for all."""
    node, axis = group.node, spec.axis
    data = low.of(node.inputs[0])
    n, inner = data.shape[axis], product(data.shape[axis + 1 :])
    rows = product(data.shape[:axis]) * inner
    k = n if spec.k is None else spec.k
    source = data if inner == 1 else _brought_last(low, node, data, axis)
    length, count = low.counter(), low.of(node.inputs[1]) if spec.k is None else low.constant(np.array([spec.k], np.int64))
    most = (*data.shape[:axis], k, *data.shape[axis + 1 :])
    results = [_result(low, node, number, most, length, spec) for number in (0, 1)]
    together = 1 if low.threads == 1 else _TASKS_PER_THREAD * low.threads
    room = n if spec.k is None or spec.k > SORTED_FROM else minimum(n, list_room(spec.k))
    work = low.temporary(DataType.UINT8, (together, STATE_BYTES + room * work_bytes(spec.kind)))
    symbol = low.kernel(TopKKernel(spec.kind, spec.takes_largest))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        length = sizes(n)
        if not 0 <= sizes(k) <= length <= MOST_KEYS:
            found = f"k={sizes(k)} along axis {axis} of data of shape {sizes.shape(data.shape)}"
            raise InvalidArgument(f"{found}; expected 0 to {min(length, MOST_KEYS)}, of an axis of at most {MOST_KEYS} elements")
        block = max(1, TASK_ELEMENTS // max(length, 1))
        passes = sorting_passes(spec.kind) if sizes(k) > SORTED_FROM else 1
        params = TopKParams(sizes(rows), length, sizes(inner), block, together, sizes(work.shape[1]), passes)
        return params.words(), params.tasks()

    buffers = [source, *results, work, length, count, STATUS]
    low.step(group, symbol, buffers, writes=[1, 2, 3, 4], plan=plan, together=together, failure=_FAILURE)


_FAILURE = "k is negative, or more than the axis has elements; expected 0 to the length of the axis"


def _result(low: Lowering, node: Node, number: int, most: Shape, length: Buffer, spec: TopKSpec) -> Buffer:
    if number >= len(node.outputs):
        return low.temporary(DataType.INT64, most)
    value = node.outputs[number]
    return low.result(value) if spec.k is not None else low.result_up_to(value, most, length, spec.axis)


def _brought_last(low: Lowering, node: Node, data: Buffer, axis: int) -> Buffer:
    """Return a copy of the data whose last dimension is the axis."""
    order = [*(place for place in range(len(data.shape)) if place != axis), axis]
    shape, strides = tuple(data.shape[place] for place in order), dense_strides(data.shape)
    result = low.temporary(data.dtype, shape)
    region = zip(shape, (strides[place] for place in order), dense_strides(shape), strict=True)
    copy_region(low, "TopK", data, result, [StridedDim(*dim) for dim in region], node)
    return result
