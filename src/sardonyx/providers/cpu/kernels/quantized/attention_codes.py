"""Quantized caches of attention: their scales, the steps that write and widen them, and rows that scales are multiplied into."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.attention.codes import stored_name, write_append_codes, write_scaled_rows, write_wide_codes
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.attention_few import Rows
from sardonyx.providers.cpu.kernels.attention_narrow import type_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import StridedDim, copy_region

__all__ = ["CODE_BITS", "append_codes", "code_problem", "scaled_rows", "scales_of", "wide_codes"]

CODE_BITS = {DataType.INT8: 8, DataType.UINT8: 4}
"""The types of quantized caches, and how many bits a number has."""
_KINDS = ("PER_TENSOR", "PER_CHANNEL")


def code_problem(node: Node, scale: Value | None, cache: Value, way: str, channels: int, size: int) -> str | None:
    """Return why a quantized cache cannot be compiled, None where it can.

    Args:
        node: the attention.
        scale: its scales.
        cache: the former one.
        way: the attribute that says how it is quantized.
        channels: heads of keys times their size.
        size: elements of a head.
    """
    bits, kind = CODE_BITS.get(cache.dtype or DataType.FLOAT), node.text(way, "NONE")
    if bits is None or kind not in _KINDS or node.integer("kv_cache_bit_width", 0) not in (bits, 0 if bits == 8 else bits):
        return f"a cache of {cache.dtype} with {way}={kind!r}, kv_cache_bit_width={node.integer('kv_cache_bit_width', 0)}"
    count = None if scale is None else product(shape_of(scale))
    if scale is None or scale.dtype is not DataType.FLOAT or count not in (1, channels):
        return f"scales of a cache {None if scale is None else scale.shape}, not known to be 1 or {channels}"
    return f"heads of {size} elements, which are not whole bytes" if bits == 4 and size % 2 else None


def scales_of(low: Lowering, scale: Value, channels: int) -> Buffer:
    """Return the scales of all channels; a constant one for all is spread once."""
    key = (scales_of, scale, channels)
    if key not in low.shared:
        low.shared[key] = _spread(low, scale, channels)
    return low.shared[key]


def _spread(low: Lowering, scale: Value, channels: int) -> Buffer:
    if scale.constant is not None:
        return low.constant(np.ascontiguousarray(np.broadcast_to(scale.constant.numpy().reshape(-1), channels)))
    if product(shape_of(scale)) == channels:
        return low.of(scale)
    result = low.temporary(DataType.FLOAT, (channels,))
    copy_region(low, "Expand", low.of(scale), result, [StridedDim(channels, 0, 1)])
    return result


@dataclasses.dataclass(frozen=True, slots=True)
class AppendCodesKernel:
    """Rows that are quantized into a cache."""

    kind: Type
    """The type of its elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"append_codes_{stored_name(self.kind)}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_append_codes(module, symbol, self.kind)


@dataclasses.dataclass(frozen=True, slots=True)
class ScaledRowsKernel:
    """Rows of heads times scales."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"scaled_rows_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_scaled_rows(module, symbol)


@dataclasses.dataclass(frozen=True, slots=True)
class WideCodesKernel:
    """A quantized cache in float32, without its scales."""

    kind: Type
    """The type of its elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"wide_codes_{stored_name(self.kind)}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_wide_codes(module, symbol, self.kind)


def append_codes(
    low: Lowering,
    group: Group,
    buffers: Sequence[Buffer],
    numbers: Sequence[Dim],
    batch: Dim,
    copies: Callable[[Sizes], bool],
) -> None:
    """Add the step that quantizes new rows into a cache.

    Args:
        low: the lowering.
        group: what is lowered.
        buffers: the past, new rows, scales, (past, total), and the cache.
        numbers: the parameters of the kernel but the last.
        batch: how many batches there are.
        copies: whether the past is copied, and what follows is cleared.
    """

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        words = [sizes(number) for number in numbers]
        return [*words, int(copies(sizes))], sizes(batch) * words[0]

    symbol = low.kernel(AppendCodesKernel(type_of(buffers[-1])))
    low.step(group, symbol, buffers, writes=[4], plan=plan, shares=[(0, 4)])


def scaled_rows(
    low: Lowering, group: Group, rows: Rows, scales: Buffer, result: Buffer, heads: tuple[int, int], sizes: tuple[Dim, Dim, int]
) -> None:
    """Add the step that multiplies rows by scales.

    Args:
        low: the lowering.
        group: what is lowered.
        rows: where they lie.
        scales: of each head of keys (M, D).
        result: (B, S, H, D).
        heads: H and M.
        sizes: B, S and D.
    """
    (source, strides), (H, M), (B, S, D) = rows, heads, sizes

    def plan(known: Sizes) -> tuple[list[int], int]:
        return [H, H // M, D, known(S), *(known(stride) for stride in strides)], known(B) * known(S)

    low.step(group, low.kernel(ScaledRowsKernel()), [source, scales, result], writes=[2], plan=plan)


def wide_codes(low: Lowering, cache: Buffer, unless: Callable[[Sizes], bool]) -> Buffer:
    """Return a quantized cache in float32, without its scales; nothing is widened with sizes for which `unless` holds."""
    size = cache.shape[-1] * 8 // CODE_BITS[cache.dtype]
    result = low.temporary(DataType.FLOAT, (*cache.shape[:-1], size))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes(size)], sizes.product(cache.shape[:-1])

    low.move("Cast", low.kernel(WideCodesKernel(type_of(cache))), [cache, result], plan, unless=unless)
    return result
