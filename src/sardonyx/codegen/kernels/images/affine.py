"""Map the evenly spaced positions of an image by matrices; ONNX AffineGrid.

    y[n, p, part] = theta[n, part, r] + sum over axes a of position_a(p) * theta[n, part, r - 1 - a]

Positions go from -1 to 1: elements' centres, or with aligned corners the first and last element at the ends. They are computed in
float64 and rounded to the type of the matrices, in which the sum is.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F64, I32, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.transpose import rearranged

__all__ = ["write_affine"]


def write_affine(module: Module, symbol: str, kind: Type, rank: int, *, align_corners: bool) -> None:
    """Write the kernel `symbol`: buffers theta (N, rank, rank + 1) and y; parameters: rows of an image, then the size of each axis.

    A task is one row along the last axis.
    """
    with module.kernel(symbol) as b:
        rows, sizes = b.param(0), [b.param(1 + axis) for axis in range(rank)]
        with b.loop(b.begin, b.end) as task:
            image, rest = task // rows, b.variable(task % rows)
            theta = b.buffer(0, kind).at(image * (rank * (rank + 1)))
            positions: list[Register] = []
            for size in reversed(sizes[:-1]):
                positions.insert(0, _position(b, rest.value % size, size, align_corners=align_corners).to(kind))
                rest.set(rest.value // size)
            y = b.buffer(1, kind).at(task * sizes[-1] * rank)
            rows_of_theta = [theta.at(part * (rank + 1)) for part in range(rank)]
            firsts = []
            for row in rows_of_theta:
                first = row.load(rank)
                for axis, position in enumerate(positions):
                    first = first + position * row.load(rank - 1 - axis)
                firsts.append(first)
            for i, span in b.vectors(0, sizes[-1], kind):
                number = b.iota(I32, span.lanes) + i.to(I32)
                along = _position(b, number, sizes[-1], align_corners=align_corners).to(kind)
                _store(
                    b, y.at(i * rank), [along * row.load(0) + first for row, first in zip(rows_of_theta, firsts, strict=True)], span
                )


def _store(b: Kernel, target: Pointer, parts: Sequence[Register], span: Span) -> None:
    """Store the first elements of all parts, then the second ones and so on."""
    rank, lanes = len(parts), span.lanes
    if lanes == 1:
        for part, value in enumerate(parts):
            target.store(value, part)
    elif span.mask is not None:
        for part, value in enumerate(parts):
            target.at(part).scatter(value, b.iota(I32, lanes) * rank, span.mask)
    else:
        for place, made in rearranged(parts, [(e % rank, e // rank) for e in range(rank * lanes)], lanes):
            target.store(made, place, lanes)


def _position(b: Kernel, index: Register, size: Register, *, align_corners: bool) -> Register:
    if align_corners:
        last = b.max(size - 1, 1).to(F64)
        at = index.to(F64) * (2.0 / last) - 1.0
        return b.select(size.eq(1), 0.0, at)
    return (index.to(F64) * 2.0 + 1.0) / size.to(F64) - 1.0
