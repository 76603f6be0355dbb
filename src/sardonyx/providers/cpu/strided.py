"""Copies between strided regions: what Transpose, Concat, Split, Slice, Expand, Tile and their like come down to.

A region is a list of dimensions with a stride for the source and one for the result; stride 0 repeats an element. Elements are
moved as integers of their size. Neighbours that lie densely in both are merged, as far as symbols show when code is made, and again
when sizes are known. What the last dimension is like decides on the kernel:

    dense in both                        rows of vectors; those that are repeated are read once
    dense in the result only, with       planes are transposed, by tiles, or by streams where one side has a few elements
    another that is dense in the source
    dense in the result only             by a table of places
    anything else                        element by element

What is repeated along several dimensions is repeated along the innermost one first, then as whole rows of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, I16, I32, I64, Type
from sardonyx.codegen.kernels.elementwise import Access, MapParams, write_map
from sardonyx.codegen.kernels.moves.places import PlacesParams, write_places
from sardonyx.codegen.kernels.moves.repeat import RepeatParams, write_repeat
from sardonyx.codegen.kernels.transpose import PlaneParams, write_deinterleave, write_interleave, write_transpose
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node
from sardonyx.providers.cpu.lowering import KernelSpec, Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Plan

__all__ = ["TASK_ELEMENTS", "StridedDim", "copy_region", "dense_strides", "moved_type"]

TASK_ELEMENTS = 1 << 14
"""Elements of one task."""

_WIDE = (I16, I32, I64)
"""Types as which rows of a few elements are moved."""

_MOST_STREAMS = 4
"""Up to so many rows or columns a plane is moved as streams: a tile would be mostly empty."""


@dataclasses.dataclass(frozen=True, slots=True)
class StridedDim:
    """One dimension of a strided copy."""

    size: Dim
    """How many elements."""
    source: Dim
    """From one to the next in the source, in elements."""
    result: Dim
    """From one to the next in the result, in elements."""


def moved_type(dtype: DataType | None) -> Type | None:
    """Return the integer type as which elements of `dtype` are moved, or None where there is none.

    There is none for elements that are no plain bytes, or whose number is not known.
    """
    if dtype is None or dtype in (DataType.UNDEFINED, DataType.STRING):
        return None
    return {1: I8, 2: I16, 4: I32, 8: I64}.get(dtype.numpy.itemsize)


def dense_strides(shape: Sequence[Dim]) -> list[Dim]:
    """Return the stride of each dimension of a dense, row-major tensor, in elements."""
    strides: list[Dim] = []
    reach: Dim = 1
    for dim in reversed(shape):
        strides.append(reach)
        reach = reach * dim
    return strides[::-1]


def copy_region(
    low: Lowering,
    name: str,
    source: Buffer,
    result: Buffer,
    region: Sequence[StridedDim],
    node: Node | None = None,
    *,
    unless: Callable[[Sizes], bool] | None = None,
) -> None:
    """Add the step that copies a region, outermost dimension first, from the beginning of `source` to that of `result`.

    It is made for `node`, or for no node of the graph. Nothing is copied with sizes for which `unless` holds.
    """
    kind = moved_type(source.dtype)
    if kind is None:
        raise TypeError(f"kernels do not move elements of {source.dtype}")
    dims = _merged(region)
    while (inner := _repeated_first(dims)) is not None:
        source, dims = _repeat_within(low, name, source, dims, inner, node, unless)
    kernel, plan = _kernel_of(*_widened(kind, dims))
    low.move(name, low.kernel(kernel), [source, result], plan, node, unless=unless)


def _widened(kind: Type, dims: list[StridedDim]) -> tuple[Type, list[StridedDim]]:
    """Return the copy in elements of a row where these make up a larger one: three bytes stay so, four are one of 32 bits."""
    *outer, row = dims
    wide = next((wide for wide in _WIDE if isinstance(row.size, int) and wide.size_bytes == kind.size_bytes * row.size), None)
    steps = [step for dim in outer for step in (dim.source, dim.result)]
    if wide is None or row.size == 1 or not row.source == row.result == 1 or not outer:
        return kind, dims
    if any(not isinstance(step, int) or step % row.size for step in steps):
        return kind, dims
    return wide, _merged([StridedDim(dim.size, dim.source // row.size, dim.result // row.size) for dim in outer])


def _kernel_of(kind: Type, dims: Sequence[StridedDim]) -> tuple[KernelSpec, Plan]:
    plane = _plane_of(dims)
    if plane is not None:
        return _by_planes(kind, dims, plane)
    if _repeats_rows(dims):
        return _by_times(kind, dims)
    return _by_places(kind, dims) if _lies_apart(dims) else _by_rows(kind, dims)


def _repeated_first(dims: Sequence[StridedDim]) -> int | None:
    """Return the innermost dimension that is repeated, where others around it are too and the result is dense."""
    repeated = [place for place, dim in enumerate(dims) if dim.source == 0]
    return repeated[-1] if len(repeated) > 1 and _is_dense(dims) else None


def _repeat_within(
    low: Lowering,
    name: str,
    source: Buffer,
    dims: Sequence[StridedDim],
    inner: int,
    node: Node | None,
    unless: Callable[[Sizes], bool] | None,
) -> tuple[Buffer, list[StridedDim]]:
    """Add the steps that make what the dimensions around `inner` repeat; return it, and what to copy of it."""
    kept = [dim for place, dim in enumerate(dims) if place >= inner or dim.source != 0]
    strides = dense_strides([dim.size for dim in kept])
    made = low.temporary(source.dtype, tuple(dim.size for dim in kept))
    copy_region(
        low,
        name,
        source,
        made,
        [StridedDim(dim.size, dim.source, stride) for dim, stride in zip(kept, strides, strict=True)],
        node,
        unless=unless,
    )
    steps = iter(strides)
    rest = [
        StridedDim(dim.size, next(steps) if place >= inner or dim.source != 0 else 0, dim.result) for place, dim in enumerate(dims)
    ]
    return made, _merged(rest)


def _repeats_rows(dims: Sequence[StridedDim]) -> bool:
    """Return whether dense rows are repeated, one time behind the other, and all of the result is dense."""
    return len(dims) > 1 and dims[-1].source == 1 and dims[-2].source == 0 and _is_dense(dims)


def _lies_apart(dims: Sequence[StridedDim]) -> bool:
    """Return whether elements lie apart in the source, or in rows of a few, and all of the result is dense."""
    row = dims[-1]
    is_short = row.source == 1 and len(dims) > 1 and isinstance(row.size, int) and row.size <= _MOST_STREAMS
    return (is_short or row.source not in (0, 1)) and _is_dense(dims)


def _is_dense(dims: Sequence[StridedDim]) -> bool:
    """Return whether all of the result is dense."""
    return all(dim.result == stride for dim, stride in zip(dims, dense_strides([dim.size for dim in dims]), strict=True))


def _merged(region: Sequence[StridedDim]) -> list[StridedDim]:
    """Drop dimensions of one element, with neighbours that lie densely in both taken as one."""
    merged: list[StridedDim] = []
    for dim in region:
        if dim.size == 1:
            continue
        last = merged[-1] if merged else None
        if last is not None and last.source == dim.size * dim.source and last.result == dim.size * dim.result:
            merged[-1] = StridedDim(last.size * dim.size, dim.source, dim.result)
        else:
            merged.append(dim)
    return merged or [StridedDim(1, 1, 1)]


def _plane_of(dims: Sequence[StridedDim]) -> int | None:
    """Return which dimension makes a plane with the last one: it is dense in the source, and the last one is in the result."""
    last = dims[-1]
    if last.result != 1 or last.source in (0, 1):
        return None
    return next((place for place, dim in enumerate(dims) if dim.source == 1), None)


@dataclasses.dataclass(frozen=True, slots=True)
class TransposeKernel:
    """Planes, transposed by tiles."""

    kind: Type
    """The type as which elements are moved."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"transpose_{self.kind.size_bytes}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_transpose(module, symbol, self.kind)


@dataclasses.dataclass(frozen=True, slots=True)
class StreamsKernel:
    """Planes with a side of a few elements, moved as streams."""

    kind: Type
    """The type as which elements are moved."""
    streams: int
    """How many elements."""
    interleaves: bool
    """Whether they are joined, or taken apart."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"{'' if self.interleaves else 'de'}interleave_{self.streams}_{self.kind.size_bytes}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        writer = write_interleave if self.interleaves else write_deinterleave
        writer(module, symbol, self.kind, self.streams)


def _by_planes(kind: Type, dims: Sequence[StridedDim], place: int) -> tuple[KernelSpec, Plan]:
    rows, columns = dims[-1], dims[place]
    outer = [dim for number, dim in enumerate(dims[:-1]) if number != place]
    kernel: KernelSpec = TransposeKernel(kind)
    streams: int | None = None
    if isinstance(rows.size, int) and 0 < rows.size <= _MOST_STREAMS and columns.result == rows.size:
        streams, kernel = rows.size, StreamsKernel(kind, rows.size, interleaves=True)
    elif isinstance(columns.size, int) and 0 < columns.size <= _MOST_STREAMS and rows.source == columns.size:
        streams, kernel = columns.size, StreamsKernel(kind, columns.size, interleaves=False)
    side = 64 if streams is None else TASK_ELEMENTS // streams

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        around = [(sizes(dim.size), sizes(dim.source), sizes(dim.result)) for dim in outer]
        params = PlaneParams.blocked(
            sizes(rows.size),
            sizes(columns.size),
            sizes(rows.source),
            sizes(columns.result),
            [dim for dim in around if dim[0] != 1],
            side=side,
            grain=TASK_ELEMENTS,
        )
        return params.words(), params.tasks()

    return kernel, plan


@dataclasses.dataclass(frozen=True, slots=True)
class RepeatKernel:
    """Rows that are repeated."""

    kind: Type
    """The type as which elements are moved."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"repeat_{self.kind.size_bytes}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_repeat(module, symbol, self.kind)


def _by_times(kind: Type, dims: Sequence[StridedDim]) -> tuple[KernelSpec, Plan]:
    *outer, times, row = dims

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        around = [(sizes(dim.size), sizes(dim.source)) for dim in outer]
        params = RepeatParams.blocked(sizes(row.size), sizes(times.size), around, grain=TASK_ELEMENTS)
        return params.words(), params.tasks()

    return RepeatKernel(kind), plan


@dataclasses.dataclass(frozen=True, slots=True)
class PlacesKernel:
    """Elements that lie apart."""

    kind: Type
    """The type as which elements are moved."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"places_{self.kind.size_bytes}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_places(module, symbol, self.kind)


def _by_places(kind: Type, dims: Sequence[StridedDim]) -> tuple[KernelSpec, Plan]:

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = PlacesParams.of([(sizes(dim.size), sizes(dim.source)) for dim in dims], TASK_ELEMENTS)
        return params.words(), params.tasks()

    return PlacesKernel(kind), plan


@dataclasses.dataclass(frozen=True, slots=True)
class RowsKernel:
    """Rows, copied."""

    kind: Type
    """The type as which elements are moved."""
    accesses: tuple[Access, Access]
    """How the source and the result are walked along a row."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"copy_{self.kind.size_bytes}_{''.join(access.name[0].lower() for access in self.accesses)}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_map(module, symbol, [self.kind], [argument(0, self.kind)], self.accesses)


def _by_rows(kind: Type, dims: Sequence[StridedDim]) -> tuple[KernelSpec, Plan]:

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = _params([(sizes(dim.size), sizes(dim.source), sizes(dim.result)) for dim in dims])
        return params.words(), params.tasks()

    return RowsKernel(kind, (_access(dims[-1].source), _access(dims[-1].result))), plan


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
