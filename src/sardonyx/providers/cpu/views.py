"""Values as strided views of what they were copied from, for kernels that read strides: the copies are then not made.

    x (B, S, 3, H, D) ─ Transpose ─ Split ─ Squeeze ─► q (B, H, S, D)       q[b, h, s, d] = x[b, s, 0, h, d]

Looked through are Transpose, Squeeze, Unsqueeze, Identity, Split, and Reshape and Flatten where they split dimensions. Steps whose
results nobody reads any more are left out when the partition is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Dim, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.kernels.reshape import OrderSpec, ViewSpec
from sardonyx.providers.cpu.kernels.slice import SplitSpec
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
    """Return the value as a view of the farthest buffer that it can be read from, else of its own, which is dense."""
    found = _trace(low, value)
    if found is None:
        buffer = low.of(value)
        return View(buffer, tuple(dense_strides(buffer.shape)))
    buffer, offset, strides = found
    return View(Buffer(buffer.dtype, value.shape or (), buffer.constant, buffer, offset), strides)


_StridedBuffer = tuple[Buffer, Dim, tuple[Dim, ...]]
"""A buffer, the first element in it, and the strides."""


def _trace(low: Lowering, value: Value) -> _StridedBuffer | None:
    """Return the place of a value that is copied from another by a node of the partition; None where it is not."""
    node = value.producer
    spec = None if node is None else low.specs.get(node)
    source = None if node is None or spec is None else node.input(0)
    if source is None or not low.holds(source) or source.shape is None:
        return None
    buffer = low.of(source)
    if buffer.constant is not None:
        return None
    place = _trace(low, source) or (buffer, 0, tuple(dense_strides(buffer.shape)))
    found = _look(spec, value, source.shape, place[2])
    if found is None:
        return None
    offset, strides = found
    return place[0], place[1] + offset, strides


_Moved = tuple[Dim, tuple[Dim, ...]]
"""How far behind the source's first element the value's is, and its strides."""


def _look(spec: object, value: Value, shape: Shape, strides: tuple[Dim, ...]) -> _Moved | None:
    """Return where a node of this specification leaves the elements of a source of this shape; None where it computes."""
    if isinstance(spec, OrderSpec) and spec.shape == shape:
        return 0, tuple(strides[axis] for axis in spec.order)
    if isinstance(spec, SplitSpec):
        return sum(spec.lengths[: value.index]) * strides[spec.axis], strides
    return _reshaped(shape, strides, value.shape or ()) if isinstance(spec, ViewSpec) else None


def _reshaped(shape: Shape, strides: Sequence[Dim], wanted: Shape) -> _Moved | None:
    """Return the strides of dimensions that are split, or that are 1; None where some are joined."""
    result = list(wanted)
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
