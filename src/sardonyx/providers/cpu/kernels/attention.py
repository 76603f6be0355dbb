"""Attention: one kernel that reads Q, K and V where they lie, with heads packed in the last axis or as a dimension of their own.

What only gives them that form (Split, Transpose, Reshape before, a Transpose after) moves nothing: the kernel reads and writes by
strides.

A mask of keys (B, H, 1, T) is read as it is. One of pairs (B, H, S, T) is packed first, queries along the lanes, once for all the
nodes that read it. A boolean mask becomes one of 0 and -inf.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from sardonyx.codegen.attention import AttentionParams, AttentionShape, Masking, max_tasks, scratch_elements, write_attention
from sardonyx.codegen.elementwise import Access, MapParams, write_map
from sardonyx.codegen.expr import argument, constant, select
from sardonyx.codegen.gemm import tiling
from sardonyx.codegen.pack import PackParams, write_pack
from sardonyx.codegen.types import BOOL, F32
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Plan
from sardonyx.providers.cpu.strided import dense_strides
from sardonyx.providers.cpu.views import View, view_of

_PAST = (4, 5, 6)
"""The inputs past_key, past_value and nonpad_kv_seqlen."""

_MASK = 3
"""The input attn_mask."""


_Strides = tuple[Dim, Dim, Dim]


@dataclasses.dataclass(frozen=True, slots=True)
class _Heads:
    """How one of Q, K, V, Y is seen: heads H of size D for N rows (queries or keys), and strides in elements."""

    B: Dim
    H: int
    N: Dim
    D: int
    is_packed: bool
    """Whether it has the dimensions (B, N, H x D)."""

    def strides(self, strides: Sequence[Dim]) -> _Strides:
        """From one batch, one head, one row to the next, for a tensor with these strides."""
        if self.is_packed:
            batch, row, element = strides
            return batch, element * self.D, row
        return strides[0], strides[1], strides[2]


def _heads(shape: Shape | None, heads: int | None) -> _Heads | None:
    """A tensor (B, H, N, D), or (B, N, H x D) with so many heads; None where that is not known."""
    if shape is not None and len(shape) == 4:
        B, H, N, D = shape
        if isinstance(H, int) and isinstance(D, int) and min(H, D) > 0:
            return _Heads(B, H, N, D, is_packed=False)
    if shape is not None and len(shape) == 3 and heads is not None and heads > 0:
        B, N, width = shape
        if isinstance(width, int) and width > 0 and width % heads == 0:
            return _Heads(B, heads, N, width // heads, is_packed=True)
    return None


def _read(node: Node) -> tuple[_Heads, _Heads, _Heads] | str:
    """Q, K and V, or why they are not known."""
    q, k, v = (
        None if value is None else _heads(value.shape, node.get(f"{name}_num_heads"))
        for value, name in zip(node.inputs[:3], ("q", "kv", "kv"), strict=True)
    )
    if q is None or k is None or v is None:
        return "the number of heads or their size is not known"
    if not q.B == k.B == v.B or k.N != v.N or k.H != v.H or q.D != k.D or q.H % k.H:
        return "that queries, keys and values fit depends on sizes"
    return q, k, v


def _check(node: Node) -> str | None:
    values = [*node.inputs[:3], node.outputs[0]]
    if any(value is None or value.dtype is not DataType.FLOAT for value in values):
        return "attention of other types than float"
    if any(node.input(place) is not None for place in _PAST):
        return "keys and values of former runs"
    if any(value.use_count for value in node.outputs[1:]):
        return "its keys, values or scores are asked for"
    if node.get("softmax_precision", 1) not in (0, 1) or node.get("softcap", 0.0) < 0:
        return "a softmax of another precision, or a negative softcap"
    if node.get("left_window_size", -1) != -1 or node.get("right_window_size", -1) != -1:
        return "a window"
    found = _read(node)
    if isinstance(found, str):
        return found
    mask = node.input(_MASK)
    return None if mask is None else _check_mask(mask, _scores(found))


def _scores(found: tuple[_Heads, _Heads, _Heads]) -> Shape:
    q, k, _ = found
    return q.B, q.H, q.N, k.N


def _check_mask(mask: Value, scores: Shape) -> str | None:
    if mask.dtype not in (DataType.FLOAT, DataType.BOOL):
        return f"a mask of {mask.dtype}"
    if not mask.shape or len(mask.shape) > 4 or mask.shape[-1] != scores[-1]:
        return "a mask that does not go along all keys"
    if any(dim not in (1, wide) for dim, wide in zip(reversed(mask.shape), reversed(scores), strict=False)):
        return "how the mask is broadcast depends on sizes"
    return None


def _joins(group: Group, node: Node, value: Value) -> bool:
    """Whether `node` transposes (B, H, S, D) to (B, S, H, D), which the kernel may write as well."""
    shape = value.shape
    is_swap = node.op_type == "Transpose" and not node.domain and tuple(node.get("perm", ())) == (0, 2, 1, 3)
    return is_swap and not group.tail and shape is not None and len(shape) == 4


@lowers("Attention", check=_check, joins=_joins)
def attention(low: Lowering, group: Group) -> None:
    """Pack the mask where it is one of pairs, and attend."""
    node = group.anchor
    found = _read(node)
    if isinstance(found, str):
        raise TypeError(found)
    q, k, v = found
    mask = _lower_mask(low, node.input(_MASK), _scores(found))
    shape = AttentionShape(mask.masking, bool(node.get("is_causal", 0)), mask.replaces, node.get("softcap", 0.0))
    symbol = f"attention_f32_{shape.name}_{tiling(low.target).name}_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_attention(module, name, shape))
    scale = node.get("scale")
    factor = 1 / math.sqrt(q.D) if scale is None else scale
    result = low.result(group.result)
    y = _result_strides(result.shape, v, is_swapped=bool(group.tail))
    operands = [_operand(low, value, heads) for value, heads in zip(node.inputs[:3], found, strict=True)]
    scratch = low.temporary(DataType.FLOAT, (max_tasks(low.threads), scratch_elements(low.target, q.D, v.D)))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        strides = {name: _at(sizes, of) for name, of in zip("qkvy", (*(of for _, of in operands), y), strict=True)}
        params = AttentionParams(B=sizes(q.B), H=q.H, group=q.H // k.H, S=sizes(q.N), T=sizes(k.N), D=q.D, Dv=v.D, scale=factor,
                                 mask=(sizes(mask.batch), sizes(mask.head)), **strides)  # fmt: skip
        return params.words(low.target, low.threads), params.tasks(low.target, low.threads)

    low.step(group, symbol, [*(buffer for buffer, _ in operands), result, scratch, *mask.buffers], writes=[3, 4], plan=plan)


def _operand(low: Lowering, value: Value | None, heads: _Heads) -> tuple[Buffer, _Strides]:
    """Where the rows of Q, K or V are: far back where the elements of each row still lie in order there, else in its own buffer."""
    buffer = low.of(value)
    view = View(buffer, tuple(dense_strides(buffer.shape))) if value is None else view_of(low, value)
    if view.strides[-1] != 1:
        view = View(buffer, tuple(dense_strides(buffer.shape)))
    return view.buffer, heads.strides(view.strides)


def _result_strides(shape: Shape, v: _Heads, *, is_swapped: bool) -> _Strides:
    """From one batch, one head, one row of the result to the next."""
    strides = dense_strides(shape)
    if is_swapped:
        return strides[0], strides[2], strides[1]
    return (strides[0], v.D, strides[1]) if len(shape) == 3 else (strides[0], strides[1], strides[2])


def _at(sizes: Sizes, strides: _Strides) -> tuple[int, int, int]:
    batch, head, row = strides
    return sizes(batch), sizes(head), sizes(row)


@dataclasses.dataclass(frozen=True, slots=True)
class _Mask:
    """A mask as the kernel reads it."""

    masking: Masking
    replaces: bool = False
    buffers: tuple[Buffer, ...] = ()
    """The one that holds it, if there is a mask."""
    batch: Dim = 0
    """From one batch to the next, in elements."""
    head: Dim = 0
    """From one head to the next."""


def _lower_mask(low: Lowering, value: Value | None, scores: Shape) -> _Mask:
    if value is None:
        return _Mask(Masking.NONE)
    buffer = low.of(value)
    batches, heads, queries, T = (1,) * (4 - len(buffer.shape)) + tuple(buffer.shape)
    is_full = queries != 1
    replaces = buffer.dtype is DataType.BOOL
    if replaces:
        buffer = _numbers(low, buffer)
    length: Dim = T
    if is_full:
        width = tiling(low.target).panel
        length = -(-queries // width) * width * T
        buffer = _packed(low, buffer, (product((batches, heads)), queries, T), width)
    return _Mask(Masking.FULL if is_full else Masking.KEYS, replaces, (buffer,),
                 batch=0 if batches == 1 else heads * length, head=0 if heads == 1 else length)  # fmt: skip


def _numbers(low: Lowering, mask: Buffer) -> Buffer:
    """A boolean mask as 0 where it is True, -inf where not."""
    expr = select(argument(0, BOOL), constant(0.0, F32), constant(-math.inf, F32))
    symbol = low.symbol("map", [expr], "oo")
    accesses = [Access.ORDERED] * 2
    low.kernel(symbol, lambda module, name: write_map(module, name, [BOOL], [expr], accesses))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = MapParams.over((sizes.product(mask.shape),), [(1,), (1,)], accesses, threads=low.threads)
        return params.words(), params.tasks()

    return _once(low, "Mask", symbol, mask, mask.shape, plan)


def _packed(low: Lowering, mask: Buffer, sizes_of: tuple[Dim, Dim, Dim], width: int) -> Buffer:
    """A mask of `matrices` x S x T as panels [matrices][S / width][T][width]."""
    matrices, S, T = sizes_of
    symbol = f"pack_f32_{width}_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_pack(module, name, width))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = PackParams(K=sizes(T), N=sizes(S), stride_k=1, stride_n=sizes(T), stride_batch=sizes(S) * sizes(T))
        return params.words(), params.tasks(width, sizes(matrices))

    return _once(low, "Pack", symbol, mask, (matrices, -(-S // width), T, width), plan)


def _once(low: Lowering, name: str, symbol: str, source: Buffer, shape: Shape, plan: Plan) -> Buffer:
    """What a kernel makes of `source`: by a new step, unless one before did the same."""
    for step in low.steps:
        if step.symbol == symbol and step.name == name and step.buffers[0] is source:
            return step.buffers[1]
    result = low.temporary(DataType.FLOAT, shape)
    low.move(name, symbol, [source, result], plan)
    return result
