"""Floats of 16 bits around attention, which computes in float32: queries and new rows are widened, caches are read as they are."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.types import F32, Type, of_dtype
from sardonyx.codegen.kernels.elementwise import Access, MapParams
from sardonyx.dtypes import DataType
from sardonyx.providers.cpu.kernels.elementwise import MapKernel
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["KINDS", "narrow", "type_of", "widened"]

KINDS = (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16)
"""The types of caches."""


def type_of(buffer: Buffer) -> Type:
    """Return the type of a buffer's elements, one of KINDS."""
    return of_dtype(buffer.dtype.numpy)


def widened(low: Lowering, buffer: Buffer, unless: Callable[[Sizes], bool] | None = None) -> Buffer:
    """Return a buffer's elements in float32, itself where they are; nothing is widened with sizes for which `unless` holds."""
    if type_of(buffer) == F32:
        return buffer
    key = (widened, buffer, unless is None)
    if key not in low.shared:
        low.shared[key] = low.temporary(DataType.FLOAT, buffer.shape)
        _convert(low, buffer, low.shared[key], unless)
    return low.shared[key]


def narrow(low: Lowering, source: Buffer, result: Buffer) -> None:
    """Add the step that rounds float32 elements to those of a narrower result."""
    _convert(low, source, result, None)


def _convert(low: Lowering, source: Buffer, result: Buffer, unless: Callable[[Sizes], bool] | None) -> None:
    kind, accesses = type_of(source), (Access.ORDERED, Access.ORDERED)
    symbol = low.kernel(MapKernel("map", (kind,), (argument(0, kind).to(type_of(result)),), accesses))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = MapParams.over((sizes.product(source.shape),), [(1,), (1,)], accesses, threads=low.threads)
        return params.words(), params.tasks()

    low.move("Cast", symbol, [source, result], plan, unless=unless)
