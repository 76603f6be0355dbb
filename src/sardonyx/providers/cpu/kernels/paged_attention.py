"""PagedAttention of com.microsoft: rows of tokens are rotated into blocks of a cache, which are then attended to where they lie.

Dimension letters: B sequences, N query heads, M key and value heads, D head size, L places of a block, W blocks of a sequence.
"""

from __future__ import annotations

import math

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.kernels.attention.group_query import Rotation
from sardonyx.codegen.kernels.attention.paged import NUMBERS, write_new_rows, write_paged, write_pages, write_tokens
from sardonyx.codegen.kernels.attention.row_parts import RowAttentionParams, part_elements
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node
from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.attention_mask import NO_WINDOW
from sardonyx.providers.cpu.kernels.attention_narrow import KINDS, narrow, type_of, widened
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, index_type, shape_of
from sardonyx.providers.cpu.precision import FLOAT32
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer

_QUERY, _KEY, _VALUE, _KEY_CACHE, _VALUE_CACHE, _FIRSTS, _PASTS, _TABLE, _COS, _SIN, _SLOTS, _SINK = range(12)
"""The inputs that are compiled with."""
_METADATA = 16
"""And one that only chooses among other kernels."""
_FAILURE = (
    "sequence {} does not fit: cumulative_sequence_length must rise from 0 to the number of tokens, past_seqlens be 0 or more, "
    "block_table hold its keys in blocks of the cache, slot_mapping name places of it, and there be angles for its positions"
)
"""The message where a sequence does not fit."""


@dataclasses.dataclass(frozen=True, slots=True)
class PagedSpec:
    """An attention with a cache in blocks."""

    heads: tuple[int, int]
    """Of queries, and of keys and values."""
    size: int
    """Elements of a head."""
    kinds: tuple[Type, ...]
    """The types of first tokens, past lengths, the table, and of slots where they are given."""
    half: int
    """Pairs of a head that are rotated."""
    before: int
    """Elements of a head in front of those."""
    rotation: Rotation
    """Which elements are a pair."""
    is_causal: bool
    """Whether no query sees later keys."""
    window: int
    """Keys up to its own that a query sees at most."""
    scale: float
    softcap: float
    """The limit of scores, 0 for none."""
    is_packed: bool
    """Whether queries, keys and values lie beside one another in rows of one tensor."""
    equal: tuple[tuple[Dim, Dim], ...]
    """What must be equal, and is known to be only when sizes are."""


def claim(node: Node) -> PagedSpec | str:
    """Return what a PagedAttention attends with, or why it cannot be compiled."""
    problem = _problem_of(node)
    if problem is not None:
        return problem
    view = MicrosoftAttention.of(node)
    heads, is_packed = (view.heads, view.key_heads), node.input(_KEY) is None
    size = _size_of(node, heads)
    if size is None:
        return "the number of heads or their size is not known, or they do not fit the cache"
    kinds = [index_type(given(node.inputs[place])) for place in (_FIRSTS, _PASTS, _TABLE, _SLOTS) if node.input(place) is not None]
    if any(isinstance(kind, str) for kind in kinds):
        return "lengths, blocks or slots of another type than int32 and int64"
    half, before = 0, 0
    if node.flag("do_rotary"):
        half, before = _half_of(node), node.integer("rotary_offset", 0)
        if not half or before < 0 or before + 2 * half > size:
            return "angles that are no table (positions, pairs of a head)"
    equal = _pairs(node)
    known = next((pair for pair in equal if isinstance(pair[0], int) and isinstance(pair[1], int)), None)
    if known is not None:
        return f"dimensions that do not fit, {known[0]} and {known[1]}: of tokens, caches, or lengths"
    window = node.integer("local_window_size", -1)
    return PagedSpec(
        heads,
        size,
        tuple(kind for kind in kinds if not isinstance(kind, str)),
        half,
        before,
        Rotation.NONE if not half else Rotation.NEIGHBOURS if node.flag("rotary_interleaved") else Rotation.HALVES,
        node.integer("is_causal", 1) != 0,
        window if window > 0 else NO_WINDOW,
        1 / math.sqrt(size) if view.scale is None else view.scale,
        node.number("softcap", 0.0),
        is_packed,
        equal,
    )


def _problem_of(node: Node) -> str | None:
    """Return which part of the operator is left to another provider, None where there is none."""
    if any(node.input(place) is None for place in (_QUERY, _KEY_CACHE, _VALUE_CACHE, _FIRSTS, _PASTS, _TABLE)):
        return "queries, a cache, lengths or blocks are left out"
    if (node.input(_KEY) is None) != (node.input(_VALUE) is None) or node.text("kv_cache_layout", "SEPARATE") != "SEPARATE":
        return "it has keys without values, or one cache for both"
    if any(node.input(place) is not None for place in range(_SINK + 1, len(node.inputs)) if place != _METADATA):
        return "scales of caches or norms of rows"
    if node.number("softcap", 0.0) < 0 or len(node.outputs) < 3:
        return "softcap is less than 0, or the caches are not asked for"
    kind = node.outputs[0].dtype
    read = [node.input(place) for place in (_QUERY, _KEY, _VALUE, _COS, _SIN, _SINK)]
    other = next((value.dtype for value in read if value is not None and value.dtype is not kind), None)
    if kind not in KINDS or other is not None:
        return f"attention of elements of type {kind if kind not in KINDS else other}"
    caches = [value.dtype for value in (*node.inputs[_KEY_CACHE : _VALUE_CACHE + 1], *node.outputs[1:3]) if value is not None]
    if caches[0] not in KINDS or len(set(caches)) > 1:
        return f"caches of type {', '.join(map(str, caches))}"
    sinks, heads = node.input(_SINK), MicrosoftAttention.of(node).heads
    return f"sinks of shape {sinks.shape}" if sinks is not None and sinks.shape != (heads,) else None


def _size_of(node: Node, heads: tuple[int, int]) -> int | None:
    """Return how many elements a head has; None where it is not known, or differs from cache to cache or from what is given."""
    N, M = heads
    shapes = [shape_of(given(node.inputs[place])) for place in (_KEY_CACHE, _VALUE_CACHE)]
    if min(N, M) < 1 or N % M or any(len(shape) != 4 or shape[2] != M for shape in shapes) or shapes[0][3] != shapes[1][3]:
        return None
    D = shapes[0][3]
    if not isinstance(D, int) or D < 1:
        return None
    wanted = {_QUERY: (N if node.input(_KEY) is not None else N + 2 * M) * D, _KEY: M * D, _VALUE: M * D}
    for place, width in wanted.items():
        value = node.input(place)
        if value is not None and (len(shape_of(value)) != 2 or shape_of(value)[1] != width):
            return None
    return D


def _half_of(node: Node) -> int:
    """Return how many pairs of a head there are angles for, 0 where that is not known."""
    cos, sin = node.input(_COS), node.input(_SIN)
    if cos is None or sin is None or cos.shape is None or len(cos.shape) != 2 or cos.shape != sin.shape:
        return 0
    half = cos.shape[1]
    return half if isinstance(half, int) and half > 0 else 0


def _pairs(node: Node) -> tuple[tuple[Dim, Dim], ...]:
    """Return the sizes that differ, or may for some inputs, in pairs that kernels take for one size each."""
    shapes = [None if value is None else shape_of(value) for value in node.inputs]
    tokens, (keys, values) = shape_of(given(node.inputs[_QUERY]))[0], (shapes[_KEY_CACHE], shapes[_VALUE_CACHE])
    firsts, pasts, table = shapes[_FIRSTS], shapes[_PASTS], shapes[_TABLE]
    ranks = [(len(shape or ()), rank) for shape, rank in ((firsts, 1), (pasts, 1), (table, 2))]
    if any(found != wanted for found, wanted in ranks) or firsts is None or pasts is None or table is None:
        return tuple((found, wanted) for found, wanted in ranks if found != wanted)
    found: list[tuple[Dim, Dim]] = [(firsts[0], pasts[0] + 1), (table[0], pasts[0])]
    found += [(shape[0], tokens) for place in (_KEY, _VALUE) if (shape := shapes[place]) is not None]
    found += list(zip((keys or ())[:2], (values or ())[:2], strict=True))
    if len(shapes) > _SLOTS and shapes[_SLOTS] is not None:
        found += [(len(shapes[_SLOTS] or ()), 1), ((shapes[_SLOTS] or (0,))[0], tokens)]
    for place, before in ((0, keys), (1, values)):
        found += list(zip(shape_of(node.outputs[1 + place]), before or (), strict=False))
    return tuple(dict.fromkeys(pair for pair in found if pair[0] != pair[1]))


@dataclasses.dataclass(frozen=True, slots=True)
class TokensKernel:
    """Where tokens stand in their sequences, checked."""

    kinds: tuple[Type, ...]
    """The types of first tokens, past lengths, the table, and of slots where they are given."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"paged_tokens_{'_'.join(kind.name for kind in self.kinds)}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_tokens(module, symbol, self.kinds)


@dataclasses.dataclass(frozen=True, slots=True)
class PagesKernel:
    """A cache that is copied, unless it stays where it is."""

    kind: Type
    """The type of its elements."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"paged_copy_{self.kind.name}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_pages(module, symbol, self.kind)


@dataclasses.dataclass(frozen=True, slots=True)
class NewRowsKernel:
    """Rows of tokens, rotated, in the slots of a cache or one behind the other."""

    rotation: Rotation
    """Which elements are a pair."""
    kind: Type
    """The type of the result."""
    has_slots: bool
    """Whether they go into a cache."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"paged_rows_{self.rotation.value}_{self.kind.name}{'_slots' * self.has_slots}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_new_rows(module, symbol, self.rotation, self.kind, has_slots=self.has_slots)


@dataclasses.dataclass(frozen=True, slots=True)
class PagedKernel:
    """Attention over blocks of a cache."""

    shape: AttentionShape
    """What is done to scores."""
    table: Type
    """The type of the table."""
    kind: Type
    """The type of keys and values."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"attention_paged_{self.kind.name}_{self.table.name}_{self.shape.name}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_paged(module, symbol, self.shape, self.table, self.kind)


@lowers("PagedAttention", domain="com.microsoft", claim=claim)
def lower(low: Lowering, group: Group, spec: PagedSpec) -> None:
    """Find where tokens stand, write their keys and values into the cache, and attend."""
    node, (N, M), D = group.node, spec.heads, spec.size
    numbers = _numbers(low, group, spec)
    keys, values = (_cache(low, group, spec, place, numbers) for place in (_KEY, _VALUE))
    queries = _queries(low, group, spec, numbers)
    tokens, result = shape_of(given(node.inputs[_QUERY]))[0], low.result(group.result)
    wide = result if type_of(result) == F32 else low.temporary(DataType.FLOAT, result.shape)
    parts = low.temporary(DataType.FLOAT, (tokens, N, part_elements(D)))
    sinks = [] if node.input(_SINK) is None else [widened(low, low.of(given(node.inputs[_SINK])))]
    table, cache = low.of(given(node.inputs[_TABLE])), shape_of(given(node.inputs[_KEY_CACHE]))
    shape = AttentionShape(Masking.NONE, spec.is_causal, False, spec.softcap, bool(sinks))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        count, L = sizes(tokens), sizes(cache[1])
        params = RowAttentionParams(
            B=count,
            M=M,
            group=N // M,
            S=1,
            T=0,
            D=D,
            Dv=D,
            scale=spec.scale,
            q=(N * D, D, D),
            k=(L * M * D, D, M * D),
            v=(L * M * D, D, M * D),
            y=(N * D, D, D),
            window=spec.window,
        )
        return [*params.words(), L, sizes(table.shape[1])], count * N

    symbol = low.kernel(PagedKernel(shape, spec.kinds[2], type_of(keys)))
    buffers = [queries, keys, values, wide, parts, numbers, table, *sinks]
    low.step(group, symbol, buffers, writes=[3, 4], plan=plan, precision=FLOAT32)
    if wide is not result:
        narrow(low, wide, result)


def _numbers(low: Lowering, group: Group, spec: PagedSpec) -> Buffer:
    """Return the numbers of each token, once for all nodes that read the same lengths and tables."""
    node = group.node
    tokens, cache = shape_of(given(node.inputs[_QUERY]))[0], shape_of(given(node.inputs[_KEY_CACHE]))
    sources = [low.of(given(node.inputs[place])) for place in (_FIRSTS, _PASTS, _TABLE)]
    slots = [] if node.input(_SLOTS) is None else [low.of(given(node.inputs[_SLOTS]))]
    positions: Dim = shape_of(given(node.inputs[_COS]))[0] if spec.half else -1
    dims = (shape_of(given(node.inputs[_PASTS]))[0], tokens, sources[2].shape[1], cache[1], cache[0], positions)
    symbol = low.kernel(TokensKernel(spec.kinds))
    key = (symbol, *sources, *slots, *dims, *spec.equal)
    if key not in low.shared:
        made = low.shared[key] = low.temporary(DataType.INT64, (tokens, NUMBERS))

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            for left, right in spec.equal:
                if sizes(left) != sizes(right):
                    raise InvalidArgument(
                        f"a dimension {left} = {sizes(left)} of an input or output of PagedAttention meets {right} = "
                        f"{sizes(right)}: tokens, sequences and caches must be equal"
                    )
            B, count, _, L, *_ = words = [sizes(dim) for dim in dims]
            if (B == 0 < count) or L == 0:
                raise InvalidArgument(f"there are {count} tokens of {B} sequences, and blocks of {L} places")
            return words, 1

        low.step(group, symbol, [*sources, made, STATUS, *slots], writes=[3], plan=plan, failure=_FAILURE)
    return low.shared[key]


def _cache(low: Lowering, group: Group, spec: PagedSpec, place: int, numbers: Buffer) -> Buffer:
    """Return the cache of keys or values, with the new rows in it."""
    node, M, size = group.node, spec.heads[1], spec.size
    old, cache = low.of(given(node.inputs[_KEY_CACHE - _KEY + place])), low.result(node.outputs[place])

    def copy(sizes: Sizes) -> tuple[list[int], int]:
        return [sizes.product(cache.shape[1:])], sizes(cache.shape[0])

    low.step(group, low.kernel(PagesKernel(type_of(cache))), [old, cache], writes=[1], plan=copy, shares=[(0, 1)])
    rows, from_token = _rows(low, node, spec, place)
    half = spec.half if place == _KEY else 0
    rotation = spec.rotation if half else Rotation.NONE
    symbol = low.kernel(NewRowsKernel(rotation, type_of(cache), has_slots=True))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [M, size, half, spec.before if half else 0, from_token], sizes(numbers.shape[0])

    low.step(group, symbol, [rows, *_angles(low, node, half, numbers), numbers, cache], writes=[4], plan=plan)
    return cache


def _queries(low: Lowering, group: Group, spec: PagedSpec, numbers: Buffer) -> Buffer:
    """Return the queries of tokens one behind the other, rotated where they are to be."""
    rows, from_token = _rows(low, group.node, spec, _QUERY)
    if not spec.half and not spec.is_packed:
        return rows
    N, D = spec.heads[0], spec.size
    result = low.temporary(DataType.FLOAT, (numbers.shape[0], N * D))
    symbol = low.kernel(NewRowsKernel(spec.rotation, F32, has_slots=False))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        return [N, D, spec.half, spec.before, from_token], sizes(numbers.shape[0])

    low.step(group, symbol, [rows, *_angles(low, group.node, spec.half, numbers), numbers, result], writes=[4], plan=plan)
    return result


def _rows(low: Lowering, node: Node, spec: PagedSpec, place: int) -> tuple[Buffer, int]:
    """Return the rows of queries, new keys or new values in float32, and how far it is from one token to the next."""
    (N, M), D = spec.heads, spec.size
    count = N if place == _QUERY else M
    if not spec.is_packed:
        return widened(low, low.of(given(node.inputs[place]))), count * D
    whole = widened(low, low.of(given(node.inputs[_QUERY])))
    before = {_QUERY: 0, _KEY: N * D, _VALUE: (N + M) * D}[place]
    return Buffer(DataType.FLOAT, (whole.shape[0], count * D), base=whole, offset=before), (N + 2 * M) * D


def _angles(low: Lowering, node: Node, half: int, unused: Buffer) -> tuple[Buffer, Buffer]:
    """Return cosines and sines, or any buffer in their places."""
    if not half:
        return unused, unused
    return widened(low, low.of(given(node.inputs[_COS]))), widened(low, low.of(given(node.inputs[_SIN])))
