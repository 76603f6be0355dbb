"""DynamicQuantizeLinear: the range of a tensor, and its numbers in steps of it."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.quantized.dynamic import MOST_PIECES, DynamicParams, write_quantize, write_range
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.ops.schema import place_of
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, KernelLaunch

__all__ = ["quantize_dynamically"]


@dataclasses.dataclass(frozen=True, slots=True)
class RangeKernel:
    """The ranges of the pieces of a tensor."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"dynamic_range_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_range(module, symbol)


@dataclasses.dataclass(frozen=True, slots=True)
class DynamicQuantizeKernel:
    """The numbers of a tensor in steps of its range."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"dynamic_quantize_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_quantize(module, symbol)


@dataclasses.dataclass(frozen=True, slots=True)
class DynamicSpec:
    """There is one way to do it."""


def claim(node: Node) -> DynamicSpec | str:
    """Return that a node is claimed, or why it cannot be compiled."""
    dtype = given(node.inputs[0]).dtype
    return DynamicSpec() if dtype is DataType.FLOAT and len(node.outputs) == 3 else f"numbers of type {dtype}"


@lowers("DynamicQuantizeLinear", claim=claim)
def lower(low: Lowering, group: Group, spec: DynamicSpec) -> None:
    """Find the range, then quantize."""
    node = group.node
    numbers, scale, zero = (low.result(value) for value in node.outputs)
    quantize_dynamically(low, node, low.of(node.inputs[0]), (numbers, scale, zero))


def quantize_dynamically(low: Lowering, node: Node, source: Buffer, made: tuple[Buffer, Buffer, Buffer]) -> None:
    """Add the steps that quantize `source`, float32, into numbers (uint8), a scale (float32) and a zero point (uint8)."""
    count = product(source.shape)
    ranges = low.temporary(DataType.FLOAT, (MOST_PIECES, 2))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = DynamicParams(sizes(count))
        return params.words(), params.pieces

    low.move("Range", low.kernel(RangeKernel()), [source, ranges], plan, node)
    nodes = (low.places[node],) if node in low.places else ()
    symbol = low.kernel(DynamicQuantizeKernel())
    buffers = (source, ranges, *made)
    low.steps.append(KernelLaunch(node.op_type, place_of(node), symbol, buffers, (2, 3, 4), plan, nodes=nodes))
