"""GroupQueryAttention of com.microsoft: rows are rotated into the cache, then attended to as Attention of ai.onnx does.

Dimension letters: B batch, H query heads, M key and value heads, S new rows, P rows of the past, C rows of the cache, D head size.
Rows of the cache behind the end of a sequence are zeros, as in onnxruntime where past and present are not one buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.kernels.attention.group_query import Rotation, write_append, write_lengths, write_rotate
from sardonyx.codegen.kernels.attention.rows import FEW
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.attention import AttentionSpec, Heads, attend, heads_of, rows_of
from sardonyx.providers.cpu.kernels.attention_few import Few, Rows
from sardonyx.providers.cpu.kernels.attention_mask import NO_WINDOW, check_mask, lower_mask, seen_mask
from sardonyx.providers.cpu.kernels.attention_narrow import KINDS, narrow, type_of, widened
from sardonyx.providers.cpu.kernels.quantized.attention_codes import CODE_BITS, append_codes, code_problem, scaled_rows, scales_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, index_type, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer
from sardonyx.providers.cpu.strided import dense_strides

_QUERY, _KEY, _VALUE, _PAST_KEY, _PAST_VALUE, _LENGTHS, _LONGEST, _COS, _SIN = range(9)
"""The inputs that are compiled with."""
_BIAS, _SINK, _KEY_SCALE, _VALUE_SCALE = range(10, 14)
"""And those behind positions, which are not."""

_COMPILED = (_BIAS, _SINK, _KEY_SCALE, _VALUE_SCALE)
_WAYS = ("k_quant_type", "v_quant_type")
"""The attributes that say whether caches have a scale for all of them, or for each element of a head."""

_ANY = -1
"""In place of how many keys a bias is for, where there is none."""

_FAILURE = (
    "element {} of seqlens_k does not fit: it counts the rows of a sequence less 1, at least the new ones but for a first "
    "run, at most total_sequence_length, which is what attention_bias is for, and more than the new ones by no more than the past "
    "holds and than there are angles for"
)
"""The message where a length does not fit."""


@dataclasses.dataclass(frozen=True, slots=True)
class GroupQuerySpec:
    """An attention with a cache."""

    q: Heads
    k: Heads
    v: Heads
    P: Dim
    """Rows of the past."""
    C: Dim
    """Rows of the cache."""
    half: int
    """Pairs of a head that are rotated."""
    rotation: Rotation
    """Which elements are a pair."""
    window: int
    """Keys that a query sees at most."""
    scale: float
    softcap: float
    """The limit of scores, 0 for none."""
    kinds: tuple[Type, Type]
    """The types of lengths."""
    is_packed: bool
    """Whether queries, keys and values lie beside one another in rows of one tensor."""
    is_smooth: bool
    """Whether its softmax is smooth: as if there were one more score, 0."""
    is_quantized: bool
    """Whether the caches hold integers, of which scales make numbers."""
    is_causal: bool
    """Whether no query sees later keys."""
    equal: tuple[tuple[Dim, Dim], ...]
    """What must be equal, and is known to be only when sizes are."""


def claim(node: Node) -> GroupQuerySpec | str:
    """Return what a GroupQueryAttention attends with, or why it cannot be compiled."""
    problem = _problem_of(node)
    if problem is not None:
        return problem
    view = MicrosoftAttention.of(node)
    is_packed = node.input(_KEY) is None
    q, k, v = (_packed_heads if is_packed else _heads)(node, view.heads, view.key_heads)
    if q is None or k is None or v is None or not (q.is_packed and k.is_packed and v.is_packed):
        return "the number of heads or their size is not known"
    if q.count % k.count or not q.size == k.size == v.size:
        return f"{q.count} query heads of {q.size} elements for {k.count} of keys and values of {k.size} and {v.size}"
    past, caches = node.input(_PAST_KEY), [shape_of(value) for value in node.outputs[1:3]]
    P: Dim = 0 if past is None else shape_of(past)[2]
    is_quantized = past is not None and past.dtype in CODE_BITS
    problem = _problem_of_codes(node, k.count, k.size) if is_quantized else None
    if problem is not None:
        return problem
    stored = q.size if past is None or past.dtype is not DataType.UINT8 else q.size // 2
    equal = _pairs(node, q, (k, v), (q.batch, k.count, P, stored))
    known = next((pair for pair in equal if isinstance(pair[0], int) and isinstance(pair[1], int)), None)
    if known is not None:
        return f"dimensions that do not fit, {known[0]} and {known[1]}: of queries, keys and values, caches, or lengths"
    problem = _problem_of_bias(node, (q.batch, q.count, q.rows, caches[0][2]))
    if problem is not None:
        return problem
    kinds = index_type(given(node.inputs[_LENGTHS])), index_type(given(node.inputs[_LONGEST]))
    if isinstance(kinds[0], str) or isinstance(kinds[1], str):
        return "lengths of another type than int32 and int64"
    half, window = 0, node.integer("local_window_size", -1)
    if node.flag("do_rotary"):
        half = _half_of(node, q.size)
        if not half:
            return "angles that are no table (positions, pairs of a head)"
    rotation = Rotation.NONE if not half else Rotation.NEIGHBOURS if node.flag("rotary_interleaved") else Rotation.HALVES
    scale = 1 / math.sqrt(q.size) if view.scale is None else view.scale
    softcap = node.number("softcap", 0.0)
    is_causal = node.integer("causal", 1) != 0
    window = window if window > 0 and is_causal else NO_WINDOW
    types = kinds[0], kinds[1]
    is_smooth = node.integer("smooth_softmax", -1) == 1
    ways = is_packed, is_smooth, is_quantized, is_causal
    return GroupQuerySpec(q, k, v, P, caches[0][2], half, rotation, window, scale, softcap, types, *ways, equal)


def _heads(node: Node, heads: int, key_heads: int) -> Sequence[Heads | None]:
    """Return how queries, keys and values are seen, each in a tensor of its own; None for what is not known."""
    pairs = zip((_QUERY, _KEY, _VALUE), (heads, key_heads, key_heads), strict=True)
    return [heads_of(shape_of(given(node.inputs[index])), count) for index, count in pairs]


def _packed_heads(node: Node, heads: int, key_heads: int) -> Sequence[Heads | None]:
    """Return how they are seen in one tensor (B, S, (H + M + M) x D)."""
    whole = heads_of(shape_of(given(node.inputs[_QUERY])), heads + 2 * key_heads)
    if whole is None or min(heads, key_heads) <= 0:
        return [None] * 3
    return [dataclasses.replace(whole, count=count) for count in (heads, key_heads, key_heads)]


def _problem_of(node: Node) -> str | None:
    """Return which part of the operator is left to another provider, None where there is none."""
    if any(node.input(index) is None for index in (_QUERY, _LENGTHS, _LONGEST)):
        return "queries or lengths are left out"
    if (node.input(_KEY) is None) != (node.input(_VALUE) is None):
        return "it has keys without values, or values without keys"
    if any(node.input(index) is not None for index in range(_SIN + 1, len(node.inputs)) if index not in _COMPILED):
        return "positions, or norms of rows"
    sinks = node.input(_SINK)
    if sinks is not None and sinks.shape != (MicrosoftAttention.of(node).heads,):
        return f"sinks of shape {sinks.shape}, which are to be one for each head"
    if (node.input(_PAST_KEY) is None) != (node.input(_PAST_VALUE) is None):
        return "it has keys of former runs without values, or values without keys"
    if node.flag("sliding_window_cache") or node.number("softcap", 0.0) < 0:
        return f"{'sliding_window_cache' if node.flag('sliding_window_cache') else 'softcap'} is set"
    read = [node.input(index) for index in (_QUERY, _KEY, _VALUE, _COS, _SIN, _SINK)]
    kind = node.outputs[0].dtype
    other = next((value.dtype for value in read if value is not None and value.dtype is not kind), None)
    if kind not in KINDS or other is not None:
        return f"attention of elements of type {kind if kind not in KINDS else other}"
    caches = {value.dtype for value in (node.input(_PAST_KEY), node.input(_PAST_VALUE), *node.outputs[1:3]) if value is not None}
    if len(caches) > 1 or not caches <= {kind, *CODE_BITS}:
        return f"caches of type {', '.join(sorted(map(str, caches)))}"
    ways = [node.text(way, "NONE") for way in _WAYS]
    if caches == {kind} and ways != ["NONE", "NONE"]:
        return f"caches of type {kind} that are quantized, {' and '.join(ways)}"
    if len(node.outputs) < 3 or any(len(shape_of(value)) != 4 for value in node.outputs[1:3]):
        return "the caches are not asked for"
    if len(node.outputs) > 3 and node.outputs[3].use_count:
        return "its scores are asked for"
    pasts = [shape_of(given(node.inputs[index])) for index in (_PAST_KEY, _PAST_VALUE) if node.input(index) is not None]
    return "caches of other ranks than four" if any(len(shape) != 4 for shape in pasts) else None


def _problem_of_codes(node: Node, heads: int, size: int) -> str | None:
    """Return why quantized caches cannot be compiled, None where they can."""
    pasts = [(_PAST_KEY, _KEY_SCALE, _WAYS[0]), (_PAST_VALUE, _VALUE_SCALE, _WAYS[1])]
    problems = [
        code_problem(node, node.input(scale), given(node.inputs[past]), way, heads * size, size) for past, scale, way in pasts
    ]
    return problems[0] or problems[1]


def _problem_of_bias(node: Node, scores: Shape) -> str | None:
    """Return why a bias that is added to the scores (B, H, S, C) cannot be compiled, None where it can or there is none."""
    bias = node.input(_BIAS)
    if bias is None:
        return None
    if bias.dtype is not DataType.FLOAT or len(bias.shape or ()) != len(scores) or shape_of(bias)[-1] == 1:
        return f"a bias of {bias.dtype} and shape {bias.shape}"
    return check_mask(bias, scores, may_be_short=True)


def _pairs(node: Node, q: Heads, rows: Sequence[Heads], past: Shape) -> tuple[tuple[Dim, Dim], ...]:
    """Return the sizes that differ, or may for some inputs, in pairs that kernels take for one size each."""
    pasts = [shape_of(given(node.inputs[index])) for index in (_PAST_KEY, _PAST_VALUE) if node.input(index) is not None]
    keys, values = (shape_of(value) for value in node.outputs[1:3])
    found: list[tuple[Dim, Dim]] = [(keys[2], values[2])]
    for item in rows:
        found += [(item.batch, q.batch), (item.rows, q.rows)]
    for shape in (*pasts, *((*cache[:2], past[2], cache[3]) for cache in (keys, values))):
        found += zip(shape, past, strict=True)
    found += [(product(shape_of(given(node.inputs[_LENGTHS]))), q.batch), (product(shape_of(given(node.inputs[_LONGEST]))), 1)]
    return tuple(dict.fromkeys(pair for pair in found if pair[0] != pair[1]))


def _half_of(node: Node, size: int) -> int:
    """Return how many pairs of a head there are angles for, 0 where that is not known."""
    cos, sin = node.input(_COS), node.input(_SIN)
    if cos is None or sin is None or cos.shape is None or len(cos.shape) != 2 or cos.shape != sin.shape:
        return 0
    half = cos.shape[1]
    return half if isinstance(half, int) and 0 < 2 * half <= size else 0


@dataclasses.dataclass(frozen=True, slots=True)
class LengthsKernel:
    """The lengths of sequences, checked."""

    kinds: tuple[Type, ...]
    """The types of lengths and of the longest."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"sequence_lengths_{'_'.join(kind.name for kind in self.kinds)}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_lengths(module, symbol, (self.kinds[0], self.kinds[-1]))


@dataclasses.dataclass(frozen=True, slots=True)
class RowsOfHeadsKernel:
    """Rows of heads that go into a cache, or stay beside one another."""

    rotation: Rotation
    """How they are rotated."""
    cache: Type | None = None
    """The type of the cache that they go into; None for none."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        way = "rotate" if self.cache is None else f"append_{self.cache.name}"
        return f"{way}_{self.rotation.value}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        if self.cache is None:
            write_rotate(module, symbol, self.rotation)
        else:
            write_append(module, symbol, self.rotation, self.cache)


@lowers("GroupQueryAttention", domain="com.microsoft", claim=claim)
def lower(low: Lowering, group: Group, spec: GroupQuerySpec) -> None:
    """Append rotated keys and values to those of former runs, hide what a query does not see, and attend."""
    q = spec.q
    lengths = _lengths(low, group, spec)
    keys = _appended(low, group, spec, _KEY, lengths)
    values = _appended(low, group, dataclasses.replace(spec, rotation=Rotation.NONE), _VALUE, lengths)
    cached = dataclasses.replace(spec.k, rows=spec.C, is_packed=False)
    call = AttentionSpec(q, cached, cached, (0, 0), spec.equal, spec.scale, spec.softcap, is_causal=False)
    result = low.result(group.result)
    kind = type_of(result)
    wide = result if kind == F32 else low.temporary(DataType.FLOAT, result.shape)
    operands = [_queries(low, group, spec, lengths), keys, values]
    rows = wide, q.strides(dense_strides(wide.shape))
    if spec.is_quantized:
        operands[0], rows = (
            _with_scales(low, group, spec, _KEY_SCALE, operands[0]),
            (low.temporary(DataType.FLOAT, wide.shape), rows[1]),
        )
    pasts = [group.node.input(place) for place in (_PAST_KEY, _PAST_VALUE)]
    former = None if pasts[0] is None or pasts[1] is None else (low.of(pasts[0]), low.of(pasts[1]))
    scores = q.batch, q.count, q.rows, spec.C
    bias = lower_mask(low, group.node.input(_BIAS), scores, is_packed=True, may_be_short=True)
    few = Few(spec.is_causal, 0, former, spec.P, q.rows, lengths, spec.window, _sinks(low, group.node, spec), kind=type_of(keys[0]))
    seen = seen_mask(low, group, scores, spec.window, lengths, bias, is_causal=spec.is_causal)
    attend(low, group, call, operands, rows, seen, few)
    if spec.is_quantized:
        _multiply(low, group, spec, _VALUE_SCALE, rows, wide)
    if wide is not result:
        narrow(low, wide, result)


def _with_scales(low: Lowering, group: Group, spec: GroupQuerySpec, place: int, rows: Rows) -> Rows:
    """Return queries times the scales of keys, by which their products with integers are those with numbers."""
    q = spec.q
    result = low.temporary(DataType.FLOAT, (q.batch, q.rows, q.count * q.size))
    _multiply(low, group, spec, place, rows, result)
    return result, q.strides(dense_strides(result.shape))


def _multiply(low: Lowering, group: Group, spec: GroupQuerySpec, place: int, rows: Rows, result: Buffer) -> None:
    """Add the step that multiplies rows of queries, or of the result, by the scales of a cache."""
    q, M = spec.q, spec.k.count
    scales = scales_of(low, given(group.node.inputs[place]), M * q.size)
    scaled_rows(low, group, rows, scales, result, (q.count, M), (q.batch, q.rows, q.size))


def _sinks(low: Lowering, node: Node, spec: GroupQuerySpec) -> tuple[Buffer, ...]:
    """Return the buffer of the sinks, zeros where the softmax is smooth without any; none where it has none."""
    sinks = node.input(_SINK)
    if sinks is not None:
        return (widened(low, low.of(sinks)),)
    return (low.constant(np.zeros(spec.q.count, np.float32)),) if spec.is_smooth else ()


def _lengths(low: Lowering, group: Group, spec: GroupQuerySpec) -> Buffer:
    """Return (past, total) of each batch, once for all nodes that read the same lengths and have the same sizes."""
    sources = [low.of(given(group.node.inputs[index])) for index in (_LENGTHS, _LONGEST)]
    symbol = low.kernel(LengthsKernel(spec.kinds))
    positions = shape_of(given(group.node.inputs[_COS]))[0] if spec.half else spec.C
    bias = group.node.input(_BIAS)
    biased = _ANY if bias is None else shape_of(bias)[-1]
    dims = (spec.q.batch, spec.q.rows, spec.P, spec.C, positions, biased)
    key = (symbol, *sources, *dims)
    if key not in low.shared:
        made = low.shared[key] = low.temporary(DataType.INT64, (spec.q.batch, 2))

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            return [sizes(dim) for dim in dims], 1

        low.step(group, symbol, [*sources, made, STATUS], writes=[2], plan=plan, failure=_FAILURE)
    return low.shared[key]


def _appended(low: Lowering, group: Group, spec: GroupQuerySpec, place: int, lengths: Buffer) -> Rows:
    """Return the cache of keys or values, with the new rows in it; few queries copy the past as they read it."""
    node, heads = group.node, spec.k
    past, cache = node.input(_PAST_KEY - _KEY + place), low.result(node.outputs[place])
    if spec.is_quantized:
        return _quantized(low, group, spec, place, lengths, cache)
    rows, strides = _rows(low, node, spec, place)
    buffers = [rows if past is None else low.of(past), rows, *_angles(low, node, spec, lengths), lengths, cache]
    symbol = low.kernel(RowsOfHeadsKernel(spec.rotation, type_of(cache)))
    numbers = (heads.count, heads.rows, spec.P, spec.C, heads.size, spec.half, *strides)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        copies = past is None or sizes(heads.rows) > FEW
        return [*(sizes(number) for number in numbers), int(copies)], sizes(heads.batch) * heads.count

    low.step(group, symbol, buffers, writes=[5], plan=plan, shares=[] if past is None else [(0, 5)])
    batch, head, row, _ = dense_strides(cache.shape)
    return cache, (batch, head, row)


def _quantized(low: Lowering, group: Group, spec: GroupQuerySpec, place: int, lengths: Buffer, cache: Buffer) -> Rows:
    """Return the cache of keys or values, with the new rows in it as integers."""
    node, heads = group.node, spec.k
    rows, strides = _rotated(low, group, spec, place, lengths)
    scale = given(node.inputs[_KEY_SCALE - _KEY + place])
    past = low.of(given(node.inputs[_PAST_KEY - _KEY + place]))
    buffers = [past, rows, scales_of(low, scale, heads.count * heads.size), lengths, cache]
    numbers = (heads.count, heads.rows, spec.P, spec.C, heads.size, *strides)
    append_codes(low, group, buffers, numbers, heads.batch, lambda sizes: sizes(heads.rows) > FEW)
    batch, head, row, _ = dense_strides(cache.shape)
    return cache, (batch, head, row)


def _rows(low: Lowering, node: Node, spec: GroupQuerySpec, place: int) -> Rows:
    """Return where the rows of queries, new keys or new values are."""
    heads = spec.q if place == _QUERY else spec.k
    if not spec.is_packed:
        value = given(node.inputs[place])
        if value.dtype is DataType.FLOAT:
            return rows_of(low, value, heads)
        rows = widened(low, low.of(value))
        return rows, heads.strides(dense_strides(rows.shape))
    before = {_QUERY: 0, _KEY: spec.q.count, _VALUE: spec.q.count + spec.k.count}[place] * heads.size
    width = (spec.q.count + 2 * spec.k.count) * heads.size
    shape = (heads.batch, heads.rows, heads.count * heads.size)
    part = Buffer(DataType.FLOAT, shape, base=widened(low, low.of(given(node.inputs[_QUERY]))), offset=before)
    return part, (heads.rows * width, heads.size, width)


def _queries(low: Lowering, group: Group, spec: GroupQuerySpec, lengths: Buffer) -> Rows:
    """Return the queries, rotated where they are to be."""
    return _rotated(low, group, spec, _QUERY, lengths)


def _rotated(low: Lowering, group: Group, spec: GroupQuerySpec, place: int, lengths: Buffer) -> Rows:
    """Return queries, new keys or new values, rotated where they are to be."""
    heads = spec.q if place == _QUERY else spec.k
    rows, strides = _rows(low, group.node, spec, place)
    if spec.rotation is Rotation.NONE:
        return rows, strides
    rotated = low.temporary(DataType.FLOAT, (heads.batch, heads.rows, heads.count * heads.size))
    symbol = low.kernel(RowsOfHeadsKernel(spec.rotation))
    numbers = (heads.count, heads.rows, 0, 0, heads.size, spec.half, *strides)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes(number) for number in numbers], sizes(heads.batch) * sizes(heads.rows)

    low.step(group, symbol, [rows, rows, *_angles(low, group.node, spec, lengths), lengths, rotated], writes=[5], plan=plan)
    return rotated, heads.strides(dense_strides(rotated.shape))


def _angles(low: Lowering, node: Node, spec: GroupQuerySpec, unused: Buffer) -> tuple[Buffer, Buffer]:
    """Return cosines and sines, or any buffer in their places."""
    if spec.rotation is Rotation.NONE:
        return unused, unused
    return _table(low, given(node.inputs[_COS])), _table(low, given(node.inputs[_SIN]))


def _table(low: Lowering, value: Value) -> Buffer:
    """Return a table of angles in float32; a constant one is widened once."""
    if value.constant is None or value.dtype is DataType.FLOAT:
        return widened(low, low.of(value))
    if (value,) not in low.shared:
        low.shared[value,] = low.constant(value.constant.numpy().astype(np.float32))
    return low.shared[value,]
