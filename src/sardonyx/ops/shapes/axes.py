"""Axes and sizes as shape functions need them; what is wrong for every run raises InvalidGraph."""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx import errors
from sardonyx.config import LIMITS
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous, is_anonymous
from sardonyx.ops.fact import Fact
from sardonyx.ops.shapes.elements import light

__all__ = [
    "merge_dims",
    "merge_shapes",
    "merge_width",
    "replace_dim",
    "require_rank",
    "size_of",
    "unknown_shape",
]


def require_rank(fact: Fact, name: str, least: int, most: int | None = None) -> Shape | None:
    """Return the shape of `fact`, None where unknown; raises InvalidGraph for a rank outside [least, most]."""
    shape = fact.shape
    if shape is None or (len(shape) >= least and (most is None or len(shape) <= most)):
        return shape
    expected = f"at least {least}" if most is None else f"{least}" if least == most else f"{least} to {most}"
    raise InvalidGraph(f"{name} has shape [{', '.join(map(str, shape))}] of rank {len(shape)}, expected rank {expected}")


def replace_dim(shape: Shape, axis: int, dim: Dim) -> Shape:
    """Return `shape` with `dim` at `axis`, counted from the front."""
    return (*shape[:axis], dim, *shape[axis + 1 :])


def size_of(dims: Iterable[Dim]) -> Dim:
    """Return the product of `dims`, anonymous where it would be too long an expression."""
    result: Dim = 1
    for dim in dims:
        result = light(result * dim)
    return result


def unknown_shape(rank: int) -> Shape:
    """Return a shape of which only the rank is known; raises NotImplemented for one that no array can have."""
    if rank > LIMITS.rank:
        raise errors.NotImplemented(
            f"the output would have {rank} dimensions, as a tensor of axes or sizes is declared to have elements; at most "
            f"{LIMITS.rank} are possible"
        )
    return tuple(anonymous() for _ in range(rank))


def merge_dims(left: Dim, right: Dim, what: str = "dimensions") -> Dim:
    """Return the better known of two dimensions that must be equal; raises InvalidGraph for two different integers."""
    if left == right:
        return left
    if isinstance(left, int) and isinstance(right, int):
        raise InvalidGraph(f"{what} must be equal, got {left} and {right}")
    if isinstance(left, int) or isinstance(right, int):
        return left if isinstance(left, int) else right
    return right if is_anonymous(left) else left


def merge_shapes(left: Shape | None, right: Shape | None, what: str = "shapes") -> Shape | None:
    """Return the better known of two shapes that must be equal, dimension by dimension."""
    if left is None or right is None:
        return left if right is None else right
    if len(left) != len(right):
        raise InvalidGraph(f"{what} must have one rank, got [{', '.join(map(str, left))}] and [{', '.join(map(str, right))}]")
    return tuple(merge_dims(a, b, f"dimension {axis} of {what}") for axis, (a, b) in enumerate(zip(left, right, strict=True)))


def merge_width(shape: Shape | None, *vectors: Fact | None) -> Shape | None:
    """Return a shape whose last axis is as long as each of the vectors that are given, as far as that is known."""
    for vector in vectors:
        if shape and vector is not None and vector.shape is not None and len(vector.shape) == 1:
            shape = (*shape[:-1], merge_dims(shape[-1], vector.shape[0], "the last axis and a vector along it"))
    return shape
