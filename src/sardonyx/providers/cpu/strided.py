"""Copies between strided regions: what Transpose, Concat, Split, Slice, Expand, Tile and their like come down to.

A region is a list of dimensions with a stride for the source and one for the result; stride 0 repeats an element. Dimensions that
lie densely in both are merged when sizes are known; whether the last one is walked in order is decided when code is made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sardonyx.codegen.elementwise import Access, MapParams, write_map
from sardonyx.codegen.expr import argument
from sardonyx.ir import Dim, Shape
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["Region", "copy_region", "dense_strides"]

TASK_ELEMENTS = 1 << 14
"""Elements of one task."""


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """One dimension of a strided copy."""

    size: Dim
    """How many elements."""
    source: Dim
    """From one to the next in the source, in elements."""
    result: Dim
    """From one to the next in the result, in elements."""


def dense_strides(shape: Shape) -> list[Dim]:
    """The stride of each dimension of a dense, row-major tensor, in elements."""
    strides: list[Dim] = []
    reach: Dim = 1
    for dim in reversed(shape):
        strides.append(reach)
        reach = reach * dim
    return strides[::-1]


def copy_region(low: Lowering, name: str, source: Buffer, result: Buffer, region: Sequence[Region]) -> None:
    """Add the step that copies a region, outermost dimension first, from the beginning of `source` to that of `result`."""
    kind = element_type(source.dtype)
    if kind is None:
        raise TypeError(f"kernels do not move elements of {source.dtype}")
    dims = [dim for dim in region if dim.size != 1] or [Region(1, 1, 1)]
    accesses = [_access(dims[-1].source), _access(dims[-1].result)]
    moved = argument(0, kind)
    symbol = low.symbol("copy", [moved], "".join(access.name[0].lower() for access in accesses))
    low.kernel(symbol, lambda module, key: write_map(module, key, [kind], [moved], accesses))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = _params([(sizes(dim.size), sizes(dim.source), sizes(dim.result)) for dim in dims])
        return params.words(), params.tasks()

    low.move(name, symbol, [source, result], plan)


def _access(stride: Dim) -> Access:
    if stride == 1:
        return Access.ORDERED
    return Access.FIXED if stride == 0 else Access.STRIDED


def _params(dims: Sequence[tuple[int, int, int]]) -> MapParams:
    merged = [dims[-1]]
    for size, source, result in reversed(dims[:-1]):
        inner = merged[0]
        if size == 1:
            continue
        if source == inner[0] * inner[1] and result == inner[0] * inner[2]:
            merged[0] = (size * inner[0], inner[1], inner[2])
        else:
            merged.insert(0, (size, source, result))
    inner_size, *inner_strides = merged[-1]
    rows, *row_strides = merged[-2] if len(merged) > 1 else (1, 0, 0)
    outer = merged[:-2]
    return MapParams(
        inner=inner_size,
        rows=rows,
        outer=tuple(size for size, _, _ in outer),
        inner_strides=tuple(inner_strides),
        row_strides=tuple(row_strides),
        outer_strides=tuple((source, result) for _, source, result in outer),
        block_inner=min(max(inner_size, 1), TASK_ELEMENTS),
        block_rows=max(1, min(rows, TASK_ELEMENTS // max(inner_size, 1))),
    )
