"""Values as strided views of what they were copied from, for kernels that read strides: the copies are then not made.

    x (B, S, 3, H, D) ─ Transpose ─ Split ─ Squeeze ─► q (B, H, S, D)       q[b, h, s, d] = x[b, s, 0, h, d]

Looked through are Transpose, Squeeze, Unsqueeze, Identity, Split, and Reshape where it splits dimensions. Steps whose results
nobody reads any more are left out when the partition is compiled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import dense_strides

__all__ = ["View", "view_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """Where the elements of a value are."""

    buffer: Buffer
    """What holds them, from the first one on."""
    strides: tuple[Dim, ...]
    """From one to the next along each dimension, in elements."""


def view_of(low: Lowering, value: Value) -> View:
    """The value as a view of the farthest buffer that it can be read from, else of its own, which is dense."""
    found = _trace(low, value)
    if found is None:
        buffer = low.of(value)
        return View(buffer, tuple(dense_strides(buffer.shape)))
    buffer, offset, strides = found
    return View(Buffer(buffer.dtype, value.shape or (), buffer.constant, buffer, offset), strides)


_Place = tuple[Buffer, Dim, tuple[Dim, ...]]
"""A buffer, the first element in it, and the strides."""


def _trace(low: Lowering, value: Value) -> _Place | None:
    """The place of a value that is copied from another by a node of the partition; None where it is not."""
    node = value.producer
    source = None if node is None or node.domain or not node.inputs else node.inputs[0]
    look = _LOOKS.get(node.op_type) if node is not None and source is not None else None
    if node is None or look is None or source is None or not low.holds(source) or source.shape is None or value.shape is None:
        return None
    buffer = low.of(source)
    if buffer.constant is not None:
        return None
    place = _trace(low, source) or (buffer, 0, tuple(dense_strides(buffer.shape)))
    found = look(node, value, source.shape, place[2])
    if found is None:
        return None
    offset, strides = found
    return place[0], place[1] + offset, strides


_Moved = tuple[Dim, tuple[Dim, ...]]
"""How far behind the source's first element the value's is, and its strides."""


def _transpose(node: Node, value: Value, shape: Shape, strides: Sequence[Dim]) -> _Moved:
    perm = node.get("perm") or tuple(reversed(range(len(shape))))
    return 0, tuple(strides[axis] for axis in perm)


def _split(node: Node, value: Value, shape: Shape, strides: Sequence[Dim]) -> _Moved | None:
    axis = node.get("axis", 0) % len(shape)
    before: Dim = 0
    for output in node.outputs[: value.index]:
        if output.shape is None:
            return None
        before = before + output.shape[axis]
    return before * strides[axis], tuple(strides)


def _reshape(node: Node, value: Value, shape: Shape, strides: Sequence[Dim]) -> _Moved | None:
    """Dimensions that are split, or that are 1; None where some are joined."""
    result = list(value.shape or ())
    made: list[Dim] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        parts: list[Dim] = []
        while product(parts) != size:
            if not result:
                return None
            parts.append(result.pop(0))
        made += [stride * product(parts[place + 1 :]) for place in range(len(parts))]
    if any(dim != 1 for dim in result):
        return None
    return 0, (*made, *(0 for _ in result))


_LOOKS: Mapping[str, Callable[[Node, Value, Shape, Sequence[Dim]], _Moved | None]] = {
    "Identity": _reshape,
    "Reshape": _reshape,
    "Split": _split,
    "Squeeze": _reshape,
    "Transpose": _transpose,
    "Unsqueeze": _reshape,
}
"""Operator -> where the elements of its output are."""
