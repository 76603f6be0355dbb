"""Multidirectional broadcasting (ONNX, Broadcasting.md) of shapes that may be symbolic."""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import at_most, maximum, minimum
from sardonyx.ops.zero_sizes import may_be_zero

__all__ = ["broadcast", "broadcast_dims"]


def broadcast(shapes: Iterable[Shape | None]) -> Shape | None:
    """Return the shape that all `shapes` broadcast to; None where a rank is unknown. Raises InvalidGraph where they cannot."""
    result: Shape = ()
    for shape in shapes:
        if shape is None:
            return None
        result = shape if not result else result if not shape or shape == result else _broadcast_two(result, shape)
    return result


def _broadcast_two(left: Shape, right: Shape) -> Shape:
    if len(left) < len(right):
        left, right = right, left
    lead = len(left) - len(right)
    dims = list(left)
    for axis, dim in enumerate(right, lead):
        try:
            dims[axis] = broadcast_dims(dims[axis], dim)
        except InvalidGraph as error:
            raise InvalidGraph(f"shapes [{_text(left)}] and [{_text(right)}] do not broadcast: {error}") from None
    return tuple(dims)


def _text(shape: Shape) -> str:
    return ", ".join(map(str, shape))


def broadcast_dims(left: Dim, right: Dim) -> Dim:
    """Return the dimension that two dimensions broadcast to.

    Of two symbolic ones it is the greater: the other is then equal to it, 1, or 0 where it is 1, and this last case (a tensor
    without elements against one of size 1) is taken not to occur but in builds for it. A dimension d equals max(d, 0).
    """
    if left == right or right == 1:
        return left
    if left == 1:
        return right
    if isinstance(left, int) and isinstance(right, int):
        raise InvalidGraph(f"{left} and {right} differ and neither is 1")
    if isinstance(left, int):
        return left
    if isinstance(right, int):
        return right
    if maximum(left, 0) == right:
        return left
    if maximum(right, 0) == left or (at_most(left, right) and not may_be_zero()):
        return right
    greater = left if at_most(right, left) else maximum(left, right)
    return greater * minimum(left, 1) * minimum(right, 1) if may_be_zero() else greater
