"""Attention: one kernel that reads Q, K and V where they lie, with heads packed in the last axis or as a dimension of their own.

What only gives them that form (Split, Transpose, Reshape before, a Transpose after) moves nothing: the kernel reads and writes by
strides. Keys and values of former runs are copied before the new ones.

Dimension letters: B batch, H query heads, M key and value heads, S queries, N new keys, P keys of former runs, T = P + N keys,
D head size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.kernels.attention.block_params import AttentionParams, scratch_elements, together
from sardonyx.codegen.kernels.attention.blocks import write_attention
from sardonyx.codegen.kernels.attention.scores import AttentionShape
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ops.views.attention import Attention
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.attention_few import Few, FewHeads, Rows, RowStrides, attend_few
from sardonyx.providers.cpu.kernels.attention_mask import NO_WINDOW, Mask, check_mask, ends_of_keys, lower_mask, seen_mask
from sardonyx.providers.cpu.kernels.attention_narrow import widened
from sardonyx.providers.cpu.kernels.attention_pairs import PairedHeads, as_attention_pairs
from sardonyx.providers.cpu.kernels.gather import GatherSpec
from sardonyx.providers.cpu.kernels.quantized.attention_codes import CODE_BITS, wide_codes
from sardonyx.providers.cpu.kernels.reshape import OrderSpec, ViewSpec
from sardonyx.providers.cpu.kernels.slice import SplitSpec
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, index_type, shape_of
from sardonyx.providers.cpu.pairs import multiplies_pairs
from sardonyx.providers.cpu.precision import BFLOAT16, FLOAT32
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.providers.cpu.strided import StridedDim, copy_region, dense_strides
from sardonyx.providers.cpu.views import View, view_of

_Q, _K, _V, _MASK, _PAST_KEY, _PAST_VALUE, _NONPAD = range(7)
"""The inputs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Heads:
    """How one of Q, K, V is seen."""

    batch: Dim
    count: int
    """How many heads."""
    rows: Dim
    """Queries or new keys."""
    size: int
    """Elements of a head."""
    is_packed: bool
    """Whether the dimensions are (B, rows, heads x size), not (B, heads, rows, size)."""

    def strides(self, strides: Sequence[Dim]) -> RowStrides:
        """Return the strides of a tensor that has these strides along its dimensions."""
        return (strides[0], self.size, strides[1]) if self.is_packed else (strides[0], strides[1], strides[2])


def heads_of(shape: Shape | None, heads: int | None) -> Heads | None:
    """Return a tensor (B, heads, rows, size), or (B, rows, heads x size) with so many heads; None where that is not known."""
    if shape is not None and len(shape) == 4:
        B, count, rows, size = shape
        if isinstance(count, int) and isinstance(size, int) and min(count, size) > 0:
            return Heads(B, count, rows, size, is_packed=False)
    if shape is not None and len(shape) == 3 and heads is not None and heads > 0:
        B, rows, width = shape
        if isinstance(width, int) and width > 0 and width % heads == 0:
            return Heads(B, heads, rows, width // heads, is_packed=True)
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class AttentionSpec:
    """Queries, keys and values of an attention."""

    q: Heads
    k: Heads
    v: Heads
    past: tuple[Dim, Dim]
    """Keys and values of former runs."""
    equal: tuple[tuple[Dim, Dim], ...]
    """What must be equal, and is known to be only when sizes are."""
    scale: float
    """What the products of queries and keys are multiplied by."""
    softcap: float
    """The limit of scores, 0 for none."""
    is_causal: bool
    """Whether no query sees later keys."""
    ends: Type | None = None
    """The type of the numbers of keys that batches have; None where all have all of them."""
    window: int = NO_WINDOW
    """How many keys a causal query sees, its own among them."""
    may_be_short: bool = False
    """Whether a mask may be for fewer keys than there are, of which the others are hidden."""

    @property
    def goes_by_position(self) -> bool:
        """Whether positions hide keys otherwise than all later ones."""
        return self.ends is not None or self.window != NO_WINDOW

    @property
    def scores(self) -> Shape:
        """(B, H, S, T)."""
        return self.q.batch, self.q.count, self.q.rows, self.k.rows + self.past[0]

    def require_fit(self, sizes: Sizes) -> None:
        """Raise InvalidArgument where inputs and outputs do not fit."""
        for left, right in self.equal:
            if sizes(left) != sizes(right):
                raise InvalidArgument(
                    f"a dimension {left} = {sizes(left)} of an input or output of Attention meets {right} = "
                    f"{sizes(right)}: batches, and numbers of keys and values, must be equal"
                )


def _read(node: Node, view: Attention) -> AttentionSpec | str:
    """Return what the node attends with, or why it is not known."""
    q, k, v = (
        None if value is None else heads_of(value.shape, heads)
        for value, heads in zip(node.inputs[:3], (view.query_heads, view.key_heads, view.key_heads), strict=True)
    )
    if q is None or k is None or v is None:
        return "the number of heads or their size is not known"
    if q.count % k.count:
        return f"{q.count} query heads for {k.count} of keys and values"
    pasts = [
        (q.batch, heads.count, 0, heads.size) if value is None else shape_of(value)
        for value, heads in zip((node.input(_PAST_KEY), node.input(_PAST_VALUE)), (k, v), strict=True)
    ]
    if any(len(shape) != 4 for shape in pasts):
        return "keys or values of former runs that do not have four dimensions"
    (_, _, P, _), (_, _, P_values, _) = pasts
    shapes = [
        (pasts[0], (q.batch, k.count, P, k.size)),
        (pasts[1], (q.batch, v.count, P_values, v.size)),
        ((k.batch, k.count, k.rows + P, k.size), (q.batch, v.count, v.rows + P_values, q.size)),
        ((v.batch,), (q.batch,)),
        *_results(node, q, v, (k.rows + P, v.rows + P_values)),
    ]
    if any(len(found) != len(wanted) for found, wanted in shapes):
        return "the rank of a result is not what it must be"
    pairs = [pair for found, wanted in shapes for pair in zip(found, wanted, strict=True) if pair[0] != pair[1]]
    for left, right in pairs:
        if isinstance(left, int) and isinstance(right, int):
            return f"dimensions that do not fit, {left} and {right}"
    scale = 1 / math.sqrt(q.size) if view.scale is None else view.scale
    return AttentionSpec(q, k, v, (P, P_values), tuple(dict.fromkeys(pairs)), scale, view.softcap, view.is_causal)


def _results(node: Node, q: Heads, v: Heads, keys: tuple[Dim, Dim]) -> list[tuple[Shape, Shape]]:
    """Return the shapes of the results that are in use, each as it is known and as it must be."""
    y = (q.batch, q.rows, q.count * v.size) if q.is_packed else (q.batch, q.count, q.rows, v.size)
    wanted = [y, *((q.batch, v.count, length, size) for length, size in zip(keys, (q.size, v.size), strict=True))]
    return [(shape_of(value), shape) for value, shape in zip(node.outputs, wanted, strict=False) if value.use_count]


def claim(node: Node) -> AttentionSpec | str:
    """Return what an Attention attends with, or why it cannot be compiled."""
    past_key, past_value = node.input(_PAST_KEY), node.input(_PAST_VALUE)
    if (past_key is None) != (past_value is None):
        return "it has keys of former runs without values, or values without keys"
    values = [*node.inputs[:3], past_key, past_value, node.outputs[0]]
    other = next((value.dtype for value in values if value is not None and value.dtype is not DataType.FLOAT), None)
    if other is not None:
        return f"attention of elements of type {other}"
    if any(value.use_count for value in node.outputs[3:]):
        return "its scores are asked for"
    view = Attention.of(node)
    if not view.is_in_float:
        return f"a softmax of another precision than float32: softmax_precision={view.softmax_precision}"
    if view.softcap < 0:
        return f"softcap={view.softcap}"
    spec, mask = _read(node, view), node.input(_MASK)
    spec = spec if isinstance(spec, str) else _with_positions(node, spec)
    if isinstance(spec, str) or mask is None:
        return spec
    problem = check_mask(mask, spec.scores, may_be_short=view.takes_short_masks)
    return problem or dataclasses.replace(spec, may_be_short=view.takes_short_masks)


def _with_positions(node: Node, spec: AttentionSpec) -> AttentionSpec | str:
    """Return the specification with numbers of keys and a window, or why these cannot be compiled."""
    left, right = (node.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    if min(left, right) < -1 or (not spec.is_causal and max(left, right) >= 0):
        return "a window of queries that see later keys"
    ends = node.input(_NONPAD)
    kind = None if ends is None else index_type(ends)
    counts: Shape = () if ends is None else shape_of(ends)
    is_ranked = len(counts) == (ends is not None)
    equal = [(count, spec.q.batch) for count in counts if count != spec.q.batch]
    is_open = not any(isinstance(one, int) and isinstance(other, int) for one, other in equal)
    if isinstance(kind, str) or not is_ranked or not is_open:
        return "numbers of keys that are not one integer for each batch"
    if ends is not None and node.input(_PAST_KEY) is not None:
        return "it has keys of former runs, and numbers of keys too"
    return dataclasses.replace(spec, equal=(*spec.equal, *equal), ends=kind, window=left + 1 if left >= 0 else NO_WINDOW)


def _joins(group: Group, spec: AttentionSpec, member: Member, value: Value) -> bool:
    """Return whether a node transposes (B, H, S, D) to (B, S, H, D), which the kernel may write as well."""
    is_swap = isinstance(member.spec, OrderSpec) and member.spec.order == (0, 2, 1, 3)
    return is_swap and not group.tail and value is group.node.outputs[0]


@dataclasses.dataclass(frozen=True, slots=True)
class AttentionKernel:
    """Attention over rows where they lie."""

    shape: AttentionShape
    """What is done to scores."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"attention_f32_{self.shape.name}_{tiling(target).name}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_attention(module, symbol, self.shape)


@lowers("Attention", claim=claim, joins=_joins, inputs=3)
def attention(low: Lowering, group: Group, call: AttentionSpec) -> None:
    """Append new keys and values to those of former runs, pack the mask where it is one of pairs, and attend."""
    node = group.node
    lengths = _lengths(low, group, call) if call.goes_by_position else None
    given_mask = node.input(_MASK)
    mask = lower_mask(low, given_mask, call.scores, is_packed=lengths is not None, may_be_short=call.may_be_short)
    if lengths is not None:
        mask = seen_mask(low, group, call.scores, call.window, lengths, mask)
    former = _former(low, node, mask)
    operands = [
        rows_of(low, given(node.inputs[_Q]), call.q),
        *(_appended(low, node, place, call, mask, former) for place in (_K, _V)),
    ]
    result = low.result(group.result)
    rows = result, _result_strides(result.shape, call.v, is_swapped=bool(group.tail))
    few = Few(call.is_causal, call.past[0], None, call.past[0], call.k.rows, lengths, call.window)
    if former is not None:
        few = dataclasses.replace(few, former=former.buffers, rows=former.rows, former_batches=former.batches)
    hides = lengths is not None
    attend(low, group, dataclasses.replace(call, is_causal=False) if hides else call, operands, rows, mask, few)


@dataclasses.dataclass(frozen=True, slots=True)
class _Former:
    """Where keys and values of former runs are."""

    buffers: tuple[Buffer, Buffer]
    """(B, M, P, D) each."""
    rows: Buffer | None = None
    """For each batch the row whose they are; None where each has its own."""
    batches: Dim = 0
    """How many rows there are, where they are named."""


def _former(low: Lowering, node: Node, mask: Mask) -> _Former | None:
    """Return where keys and values of former runs are, None without them.

    Where a Gather picks their rows, as in a search by beams, that is where they lie before it, so that they are copied once.
    """
    key, value = node.input(_PAST_KEY), node.input(_PAST_VALUE)
    if key is None or value is None:
        return None
    picked = None if mask.is_never_by_rows else (_before_pick(low, key), _before_pick(low, value))
    if (
        picked is not None
        and picked[0] is not None
        and picked[1] is not None
        and picked[0].gather.inputs[1] is picked[1].gather.inputs[1]
    ):
        return _Former((picked[0].buffer, picked[1].buffer), low.of(picked[0].gather.inputs[1]), picked[0].batches)
    return _Former((low.of(key), low.of(value)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Picked:
    """A past whose rows a Gather picks."""

    gather: Node
    """The Gather."""
    buffer: Buffer
    """The past before it."""
    batches: Dim
    """How many rows that has."""


def _before_pick(low: Lowering, past: Value) -> _Picked | None:
    """Return a past (B, M, P, D) before a Gather picked its rows, of which there are as many as before; None where none did.

    Keys and values may be picked together, (2, B, M, P, D), and taken apart then.
    """
    gather = past.producer
    while gather is not None and isinstance(low.specs.get(gather), (SplitSpec, ViewSpec)):
        source = gather.input(0)
        gather = None if source is None else source.producer
    spec = None if gather is None else low.specs.get(gather)
    if gather is None or not isinstance(spec, GatherSpec) or spec.place is not None or spec.index != I64:
        return None
    source, rows = given(gather.inputs[0]), given(gather.inputs[1])
    axis = len(shape_of(source)) - len(shape_of(past))
    is_plain = spec.axis == axis and axis in (0, 1) and len(shape_of(rows)) == 1 and source.shape == gather.output.shape
    if not is_plain or not low.holds(source) or not low.holds(rows):
        return None
    view = view_of(low, past)
    if axis and (view.buffer.base is not low.of(gather.output) or view.strides != tuple(dense_strides(shape_of(past)))):
        return None
    offset = view.buffer.offset if axis else 0
    return _Picked(gather, Buffer(DataType.FLOAT, shape_of(past), None, low.of(source), offset), shape_of(source)[axis])


def _lengths(low: Lowering, group: Group, call: AttentionSpec) -> Buffer:
    """Return (past, total) of each batch; a query that is not causal stands behind all keys."""
    if call.ends is None:
        return ends_of_keys(low, group, call.scores, None, call.past[0])
    ends = low.of(given(group.node.inputs[_NONPAD])), call.ends
    return ends_of_keys(low, group, call.scores, ends, -1 if call.is_causal else call.scores[3])


def attend(low: Lowering, group: Group, call: AttentionSpec, operands: Sequence[Rows], result: Rows, mask: Mask, few: Few) -> None:
    """Add the steps that attend: for few queries, for many, or for both, of which the sizes decide.

    Args:
        low: the lowering.
        group: what is lowered.
        call: how many heads, queries and keys there are.
        operands: queries, keys and values, those of former runs among them.
        result: where rows of the result go.
        mask: what hides keys.
        few: what is otherwise with few queries.
    """
    if not mask.is_never_by_rows:
        heads = FewHeads(
            B=call.q.batch,
            M=call.k.count,
            group=call.q.count // call.k.count,
            S=call.q.rows,
            T=call.scores[3],
            D=call.q.size,
            Dv=call.v.size,
            scale=call.scale,
            softcap=call.softcap,
        )
        attend_few(low, group, heads, operands, result, mask, few, call.require_fit)
    if not mask.is_always_by_rows:
        q, *cached = operands
        wide = [_widened(low, rows, mask) for rows in cached]
        _attend_many(low, group, call, [q, *wide], result, mask, few.sinks)


def _widened(low: Lowering, rows: Rows, mask: Mask) -> Rows:
    """Return rows of keys or values in float32, for many queries."""
    buffer, strides = rows
    if buffer.dtype in CODE_BITS:
        buffer = wide_codes(low, buffer, mask.is_by_rows)
        batch, head, row, _ = dense_strides(buffer.shape)
        return buffer, (batch, head, row)
    return widened(low, buffer, mask.is_by_rows), strides


def _attend_many(
    low: Lowering, group: Group, call: AttentionSpec, operands: Sequence[Rows], result: Rows, mask: Mask, sinks: tuple[Buffer, ...]
) -> None:
    """Add the step that attends by blocks of queries."""
    q, v = call.q, call.v
    in_pairs = multiplies_pairs(low)
    if in_pairs:
        heads = PairedHeads(call.q.batch, call.k.count, call.scores[3], (call.k.size, call.v.size))
        operands = as_attention_pairs(low, group.node, operands, heads, unless=mask.is_by_rows)
    shape = AttentionShape(mask.masking, call.is_causal, mask.replaces, call.softcap, bool(sinks), in_pairs)
    symbol = low.kernel(AttentionKernel(shape))
    strides = [strides for _, strides in (*operands, result)]
    scratch = low.temporary(DataType.FLOAT, (together(low.threads), scratch_elements(low.target, q.size, v.size)))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        call.require_fit(sizes)
        B, H, S, T = sizes.shape(call.scores)
        places = {name: _at(sizes, of) for name, of in zip("qkvy", strides, strict=True)}
        params = AttentionParams(
            B=B,
            H=H,
            group=H // call.k.count,
            S=S,
            T=T,
            D=q.size,
            Dv=v.size,
            scale=call.scale,
            past=sizes(call.past[0]),
            mask=mask.strides(sizes),
            **places,
        )
        return params.words(low.target, low.threads), params.tasks(low.target, low.threads)

    buffers = [*(buffer for buffer, _ in operands), result[0], scratch, *mask.buffers, *sinks]
    precision = BFLOAT16 if in_pairs else FLOAT32
    low.step(
        group,
        symbol,
        buffers,
        writes=[3, 4],
        plan=plan,
        together=together(low.threads),
        unless=mask.is_by_rows,
        precision=precision,
    )


def rows_of(low: Lowering, value: Value, heads: Heads) -> tuple[Buffer, RowStrides]:
    """Return where the rows of Q, K or V are.

    That is far back where the elements of each row still lie in order there, else in its own buffer.
    """
    view = view_of(low, value)
    if view.strides[-1] != 1:
        buffer = low.of(value)
        view = View(buffer, tuple(dense_strides(buffer.shape)))
    return view.buffer, heads.strides(view.strides)


def _appended(
    low: Lowering, node: Node, place: int, call: AttentionSpec, mask: Mask, former: _Former | None
) -> tuple[Buffer, RowStrides]:
    """Return where the rows of K or V are, with those of former runs before them, which few queries copy as they read them.

    They are an output of their own where one is asked for.
    """
    heads, P = (call.k, call.past[0]) if place == _K else (call.v, call.past[1])
    buffer, strides = rows_of(low, given(node.inputs[place]), heads)
    past = node.input(_PAST_KEY - _K + place)
    present = node.outputs[place] if len(node.outputs) > place and node.outputs[place].use_count else None
    if past is None and present is None:
        return buffer, strides
    B, M, N, D = heads.batch, heads.count, heads.rows, heads.size
    result = low.temporary(DataType.FLOAT, (B, M, P + N, D)) if present is None else low.result(present)
    batch, head, row, _ = dense_strides((B, M, P + N, D))
    is_copied_later = mask.is_always_by_rows or (former is not None and former.rows is not None)
    if past is not None and not is_copied_later:
        region = zip((B, M, P, D), dense_strides((B, M, P, D)), (batch, head, row, 1), strict=True)
        copy_region(low, "Append", low.of(past), result, [StridedDim(*dim) for dim in region], unless=mask.is_by_rows)
    behind = Buffer(DataType.FLOAT, (B, M, N, D), base=result, offset=P * D)
    region = zip((B, M, N, D), (*strides, 1), (batch, head, row, 1), strict=True)
    copy_region(low, "Append", buffer, behind, [StridedDim(*dim) for dim in region])
    return result, (batch, head, row)


def _result_strides(shape: Shape, v: Heads, *, is_swapped: bool) -> RowStrides:
    """Return the strides from one batch, one head, one row of the result to the next."""
    strides = dense_strides(shape)
    if is_swapped:
        return strides[0], strides[2], strides[1]
    return (strides[0], v.size, strides[1]) if len(shape) == 3 else (strides[0], strides[1], strides[2])


def _at(sizes: Sizes, strides: RowStrides) -> tuple[int, int, int]:
    batch, head, row = strides
    return sizes(batch), sizes(head), sizes(row)
