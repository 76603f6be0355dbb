"""RotaryEmbedding: pairs of elements of each head, rotated by an angle for each position.

    first'  = first * cos - second * sin            pairs are (k, k + half), or (2k, 2k + 1) where interleaved
    second' = second * cos + first * sin            elements behind the pairs are copied

One map that writes both halves. Heads are read where they lie: what only splits or transposes them before is not done.

Dimension letters: B batch, H heads, S positions, D head size.
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.elementwise import Access, MapParams
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape
from sardonyx.ops.schema import place_of
from sardonyx.ops.views.attention import RotaryEmbedding
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import MapKernel
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import StridedDim, copy_region, dense_strides
from sardonyx.providers.cpu.views import view_of

_X, _COS, _SIN, _POSITIONS = range(4)
"""The inputs."""


@dataclasses.dataclass(frozen=True, slots=True)
class RotarySpec:
    """Pairs of elements that are rotated."""

    batch: Dim
    heads: Dim
    positions: Dim
    size: int
    """Elements of a head."""
    half: int
    """Pairs of a head."""
    is_packed: bool
    """Whether x is (B, S, H x D), not (B, H, S, D)."""
    interleaved: bool
    """Whether pairs are neighbours."""

    @property
    def shape(self) -> Shape:
        """(B, H, S)."""
        return self.batch, self.heads, self.positions

    def strides(self, strides: tuple[Dim, ...]) -> tuple[Dim, Dim, Dim]:
        """Return how far it is from one batch, one head, one position to the next in a tensor like x that has these strides."""
        return (strides[0], self.size, strides[1]) if self.is_packed else (strides[0], strides[1], strides[2])


def claim(node: Node) -> RotarySpec | str:
    """Return the pairs that a RotaryEmbedding rotates, or why it cannot be compiled."""
    dtypes = [value.dtype for value in (*map(given, node.inputs[:3]), node.outputs[0])]
    if any(dtype is not DataType.FLOAT for dtype in dtypes):
        return f"rotations of {dtypes[0]} by angles of {dtypes[1]} and {dtypes[2]}"
    if node.input(_POSITIONS) is not None:
        return "angles are looked up by positions"
    view, shape = RotaryEmbedding.of(node), shape_of(node.inputs[_X])
    heads = view.heads
    last, is_packed = shape[-1] if shape else None, len(shape) == 3
    outer: Shape
    if is_packed and heads > 0 and isinstance(last, int) and last % heads == 0:
        outer, size = (shape[0], heads, shape[1]), last // heads
    elif len(shape) == 4 and isinstance(last, int):
        outer, size = shape[:3], last
    else:
        return "the number of heads or their size is not known"
    turned = view.width or size
    if turned % 2 or not 0 < turned <= size:
        return f"{turned} of {size} elements are no pairs"
    for angles in (shape_of(value) for value in node.inputs[1:3]):
        if len(angles) != 3 or angles[2] != turned // 2:
            return f"angles of shape {angles}, expected one for each of {turned // 2} pairs at each position"
    return RotarySpec(*outer, size, turned // 2, is_packed, view.is_interleaved)


@lowers("RotaryEmbedding", claim=claim, inputs=3)
def rotary_embedding(low: Lowering, group: Group, spec: RotarySpec) -> None:
    """Rotate the pairs, and copy what is behind them."""
    node = group.node
    view, cos, sin = view_of(low, given(node.inputs[_X])), low.of(node.inputs[_COS]), low.of(node.inputs[_SIN])
    result = low.result(node.outputs[0])
    source, target = spec.strides(view.strides), spec.strides(tuple(dense_strides(result.shape)))
    is_dense, step = view.strides[-1] == 1, 2 if spec.interleaved else 1
    reads = Access.ORDERED if is_dense and step == 1 else Access.STRIDED
    writes = Access.ORDERED if step == 1 else Access.STRIDED
    accesses = (reads, reads, Access.ORDERED, Access.ORDERED, writes, writes)
    first, second, c, s = (argument(place, F32) for place in range(4))
    outputs = (first * c - second * s, second * c + first * s)
    symbol = low.kernel(MapKernel("rotary", (F32,) * 4, outputs, accesses))
    behind = 1 if step == 2 else spec.half
    elements = (*source, view.strides[-1] * step), (*target, step)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        B, H, S = sizes.shape(spec.shape)
        angles = sizes.shape(cos.shape)
        if angles != sizes.shape(sin.shape) or angles[:2] != (B, S):
            raise InvalidArgument(f"{place_of(node)}: angles of shape {angles} for {S} positions in {B} batches")
        heads, made = (tuple(sizes(stride) for stride in strides) for strides in elements)
        beside = (S * spec.half, 0, spec.half, 1)
        strides = [heads, heads, beside, beside, made, made]
        params = MapParams.over((B, H, S, spec.half), strides, accesses, threads=low.threads)
        return params.words(), params.tasks()

    places = [_at(view.buffer, 0), _at(view.buffer, behind * view.strides[-1]), cos, sin, result, _at(result, behind)]
    low.step(group, symbol, places, writes=[4, 5], plan=plan)
    rest = spec.size - 2 * spec.half
    if rest > 0:
        dims = zip((*spec.shape, rest), (*source, view.strides[-1]), (*target, 1), strict=True)
        tail = _at(view.buffer, 2 * spec.half * view.strides[-1])
        copy_region(low, "Copy", tail, _at(result, 2 * spec.half), [StridedDim(*dim) for dim in dims])


def _at(buffer: Buffer, offset: Dim) -> Buffer:
    """Return the elements of `buffer` from `offset` on."""
    return Buffer(buffer.dtype, buffer.shape, buffer.constant, buffer, offset)
