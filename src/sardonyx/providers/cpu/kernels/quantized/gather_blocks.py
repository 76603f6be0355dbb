"""GatherBlockQuantized of com.microsoft: rows of tables of 2, 4 or 8 bits.

Tables of int4 and uint4, which have a byte for each number, are packed when the session is made.
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.quantized.gather_blocks import GatherBlocksParams, write_gather_blocks
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node, Tensor, Value
from sardonyx.ops.schema import place_of
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, index_type, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__: list[str] = []

_BITS = (2, 4, 8)
_SMALLEST_BLOCK = 16
_SIGNED_HALF = 8


@dataclasses.dataclass(frozen=True, slots=True)
class GatherBlocksSpec:
    """What is gathered."""

    bits: int
    """Bits of a number."""
    block: int
    """Numbers of a block."""
    zero: int
    """The zero point where there are none."""
    index: Type
    """The type of indices."""
    is_bytes: bool
    """Whether numbers have a byte each, and are packed when the session is made."""


@dataclasses.dataclass(frozen=True, slots=True)
class GatherBlocksKernel:
    """Rows of a table of few bits, dequantized."""

    bits: int
    """Bits of a number."""
    index: Type
    """The type of indices."""
    has_zeros: bool
    """Whether there are zero points."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"gather_blocks_{self.bits}_{self.index}{'_zeros' if self.has_zeros else ''}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_gather_blocks(module, symbol, self.bits, self.index, has_zeros=self.has_zeros)


def claim(node: Node) -> GatherBlocksSpec | str:
    """Return what a node gathers, or why it cannot be compiled."""
    data, index, rank = given(node.inputs[0]), index_type(node.inputs[1]), len(shape_of(node.inputs[0]))
    if isinstance(index, str):
        return index
    block, bits = node.integer("block_size", 128), node.integer("bits", 4)
    axes = [normalize_axis(node.integer(name, default), rank) for name, default in (("gather_axis", 0), ("quantize_axis", 1))]
    if axes != [0, rank - 1] or rank < 2:
        return f"rows along axis {axes[0]} with blocks along axis {axes[1]} of {rank}, expected the first and the last"
    if block < _SMALLEST_BLOCK or block & (block - 1):
        return f"blocks of {block}"
    if given(node.inputs[2]).dtype is not DataType.FLOAT:
        return f"scales of type {given(node.inputs[2]).dtype}"
    zero = 1 << (bits - 1) if bits in _BITS else 0
    return _claim_numbers(node, data, GatherBlocksSpec(bits, block, zero, index, False))


def _claim_numbers(node: Node, data: Value, spec: GatherBlocksSpec) -> GatherBlocksSpec | str:
    zeros = node.input(3)
    if zeros is not None and zeros.dtype is not data.dtype:
        return f"zero points of type {zeros.dtype}"
    if data.dtype is DataType.UINT8:
        return spec if spec.bits in _BITS else f"numbers of {spec.bits} bits"
    if data.dtype not in (DataType.INT4, DataType.UINT4):
        return f"numbers of type {data.dtype}"
    if data.constant is None or (zeros is not None and zeros.constant is None) or shape_of(data)[-1] % 2:
        return f"numbers of type {data.dtype} that the model computes, or of which a row has an odd number"
    return dataclasses.replace(spec, bits=4, zero=_SIGNED_HALF if data.dtype is DataType.INT4 else 0, is_bytes=True)


@lowers("GatherBlockQuantized", claim=claim, domain="com.microsoft", inputs=3)
def lower(low: Lowering, group: Group, spec: GatherBlocksSpec) -> None:
    """Gather by one task for each index."""
    node = group.node
    data, indices, scales, zeros = *(given(value) for value in node.inputs[:3]), node.input(3)
    shape, result = shape_of(data), low.result(group.result)
    K = shape[-1] if spec.is_bytes else shape[-1] * (8 // spec.bits)
    parts = [None if value is None else _packed(low, value) if spec.is_bytes else low.of(value) for value in (data, zeros)]
    buffers = [buffer for buffer in (parts[0], low.of(indices), low.of(scales), result, parts[1]) if buffer is not None]

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = GatherBlocksParams(sizes(shape[0]), sizes.product(shape[1:-1]), sizes(K), spec.block, spec.bits, spec.zero)
        _require_shapes(node, sizes, params, spec)
        return params.words(), sizes.product(shape_of(indices))

    low.step(group, low.kernel(GatherBlocksKernel(spec.bits, spec.index, zeros is not None)), buffers, writes=[3], plan=plan)


def _packed(low: Lowering, value: Value) -> Buffer:
    return low.packed(_packed_rows, value.constant, of=value)


def _packed_rows(tensor: Tensor) -> Array:
    """Return rows of int4 or uint4 as unsigned numbers, two in a byte."""
    shift = _SIGNED_HALF if tensor.dtype is DataType.INT4 else 0
    numbers = (tensor.numpy().astype(np.int8) + np.int8(shift)).view(np.uint8)
    if numbers.shape[-1] % 2:
        numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, 1)])
    return np.ascontiguousarray(numbers[..., ::2] | (numbers[..., 1::2] << 4))


def _require_shapes(node: Node, sizes: Sizes, params: GatherBlocksParams, spec: GatherBlocksSpec) -> None:
    """Raise InvalidArgument where scales or zero points are not those of the table."""
    blocks, outer = -(-params.K // params.block), sizes.shape(shape_of(node.inputs[0])[:-1])
    zeros = blocks if spec.is_bytes else -(-blocks * spec.bits // 8)
    for index, what, width in ((2, "scales", blocks), (3, "zero points", zeros)):
        value = node.input(index)
        found = None if value is None else tuple(sizes.shape(shape_of(value)))
        if found not in (None, (*outer, width)):
            raise InvalidArgument(
                f"{place_of(node)}: {what} of shape {found}, expected {(*outer, width)} for rows of {params.K} numbers in "
                f"blocks of {params.block}"
            )
