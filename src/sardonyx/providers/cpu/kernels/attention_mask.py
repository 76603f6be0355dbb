"""Masks of attention as its kernel reads them: numbers for each key, or for each pair, packed with queries along the lanes.

    (B, H, 1, T)            is read as it is
    (B, H, S, T)            panels (B, H, S / width, T, width), made once for all the nodes that read the mask; few queries
                            read it as it is
    of truth values         0 where True, -inf where not, first
    that may end early      rows of T numbers, the last ones -inf, first

Where positions decide what a query sees, since keys end at another place in each batch or a window hides earlier ones, panels are
made of (past, total) of each batch, and of the panels of a mask, where there is one besides.

Each dimension may be 1. Which are is known when sizes are, but for the queries of a mask that is read as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import argument, constant, select
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, F32, Type
from sardonyx.codegen.kernels.attention.group_query import write_ends, write_seen
from sardonyx.codegen.kernels.attention.masks import write_whole_rows
from sardonyx.codegen.kernels.attention.rows import FEW
from sardonyx.codegen.kernels.attention.scores import Masking
from sardonyx.codegen.kernels.elementwise import Access, MapParams
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.pack import PackParams
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import MapKernel
from sardonyx.providers.cpu.kernels.matmul import PackKernel
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer, Plan

__all__ = ["NO_WINDOW", "Mask", "check_mask", "ends_of_keys", "lower_mask", "seen_mask"]

NO_WINDOW = 1 << 40
"""A window that hides nothing."""
_FAILURE = "element {} of nonpad_kv_seqlen is no number of keys; expected from 0 to as many as there are"


@dataclasses.dataclass(frozen=True, slots=True)
class Mask:
    """A mask as the kernel reads it."""

    masking: Masking
    """What it has numbers for."""
    replaces: bool = False
    """Whether it is made of truth values."""
    buffers: tuple[Buffer, ...] = ()
    """The one that holds it, if there is a mask."""
    rows: tuple[Buffer, ...] = ()
    """The one that holds it row by row, for few queries."""
    shape: Shape = ()
    """Its own dimensions, as four."""
    scores: Shape = ()
    """Those of the scores, (B, H, S, T)."""
    width: int = 1
    """Of its panels."""
    panels: Shape | None = None
    """For how many batches and heads there are panels, where these are not its own dimensions."""

    def strides(self, sizes: Sizes) -> tuple[int, int]:
        """Return the strides from one batch, one head of it to the next; raises InvalidArgument where it does not fit."""
        if self.masking is Masking.NONE:
            return 0, 0
        own, scores = self._sizes(sizes)
        length = scores[3] if self.masking is Masking.KEYS else -(-scores[2] // self.width) * self.width * scores[3]
        B, H = own[:2] if self.panels is None else sizes.shape(self.panels)
        return 0 if B == 1 else H * length, 0 if H == 1 else length

    def row_strides(self, sizes: Sizes) -> tuple[int, int, int]:
        """Return the strides from one batch, one head, one query to the next, where it lies row by row; errors as of `strides`."""
        if self.masking is Masking.NONE:
            return 0, 0, 0
        (B, H, S, T), _ = self._sizes(sizes)
        return 0 if B == 1 else H * S * T, 0 if H == 1 else S * T, 0 if S == 1 else T

    def is_by_rows(self, sizes: Sizes) -> bool:
        """Return whether queries are attended to row by row: they are few, and the mask has a number for each key."""
        return _is_by_rows(sizes(self.scores[2]), self.shape, self.scores, sizes)

    @property
    def is_always_by_rows(self) -> bool:
        """Whether they are whatever the sizes."""
        return _is_always_by_rows(self.shape, self.scores)

    @property
    def is_never_by_rows(self) -> bool:
        """Whether they are with no sizes."""
        return isinstance(self.scores[2], int) and self.scores[2] > FEW

    def _sizes(self, sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        own, scores = sizes.shape(self.shape), sizes.shape(self.scores)
        if any(have not in (1, want) for have, want in zip(own, scores, strict=True)):
            raise InvalidArgument(f"attn_mask has shape {own}; expected one that broadcasts to {scores}")
        return own, scores


def check_mask(mask: Value, scores: Shape, *, may_be_short: bool) -> str | None:
    """Return why a mask beside scores (B, H, S, T) cannot be lowered, None where it can; a short one hides the last keys."""
    shape = mask.shape
    if mask.dtype not in (DataType.FLOAT, DataType.BOOL):
        return f"a mask of {mask.dtype}"
    if not shape:
        return "the mask is a scalar"
    if len(shape) > 4:
        return f"a mask of {len(shape)} dimensions"
    for place, (dim, wide) in enumerate(zip(reversed(shape), reversed(scores), strict=False)):
        is_short = may_be_short and place == 0
        if isinstance(dim, int) and isinstance(wide, int) and dim not in (1, wide) and not (is_short and dim < wide):
            return f"a mask {shape} that does not broadcast to the scores {scores}"
    return None


def lower_mask(low: Lowering, value: Value | None, scores: Shape, *, is_packed: bool = False, may_be_short: bool = False) -> Mask:
    """Turn a mask into what the kernel reads.

    Args:
        low: the lowering.
        value: the mask, None for none.
        scores: (B, H, S, T).
        is_packed: whether panels are asked for even where it has a number for each key only.
        may_be_short: whether keys behind its end are hidden.
    """
    if value is None:
        return Mask(Masking.NONE, scores=scores)
    buffer = low.of(value)
    shape = (1,) * (4 - len(buffer.shape)) + tuple(buffer.shape)
    width = tiling(low.target).panel
    is_full = is_packed or shape[2] != 1 or shape[3] != scores[3]
    replaces = buffer.dtype is DataType.BOOL
    if replaces:
        buffer = _numbers(low, buffer)
    if may_be_short and shape[3] not in (1, scores[3]):
        buffer, shape = _whole(low, buffer, shape, scores), (*shape[:3], scores[3])
    rows = (buffer,)
    if is_full and not _is_always_by_rows(shape, scores):
        buffer = _packed(low, buffer, shape, scores, width)
    return Mask(Masking.FULL if is_full else Masking.KEYS, replaces, (buffer,), rows, shape, scores, width)


def _is_always_by_rows(shape: Shape, scores: Shape) -> bool:
    return isinstance(scores[2], int) and scores[2] <= FEW and (not shape or shape[3] == scores[3])


def _is_by_rows(queries: int, shape: Shape, scores: Shape, sizes: Sizes) -> bool:
    return queries <= FEW and (not shape or shape[3] == scores[3] or sizes(shape[3]) == sizes(scores[3]))


def _numbers(low: Lowering, mask: Buffer) -> Buffer:
    """Return a mask of truth values as 0 where it is True, -inf where not."""
    expr = select(argument(0, BOOL), constant(0.0, F32), constant(-math.inf, F32))
    accesses = (Access.ORDERED, Access.ORDERED)
    symbol = low.kernel(MapKernel("map", (BOOL,), (expr,), accesses))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = MapParams.over((sizes.product(mask.shape),), [(1,), (1,)], accesses, threads=low.threads)
        return params.words(), params.tasks()

    return _once(low, "Mask", symbol, mask, mask.shape, plan)


def _whole(low: Lowering, mask: Buffer, shape: Shape, scores: Shape) -> Buffer:
    """Return a mask (…, T), whose last numbers hide keys where it has fewer of them."""
    own, T, rows = shape[3], scores[3], product(shape[:3])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        if sizes(own) > max(sizes(T), 1):
            found, wanted = sizes.shape(shape), sizes.shape(scores)
            raise InvalidArgument(f"attn_mask has shape {found}; expected one that broadcasts to {wanted}")
        return [sizes(own), sizes(T)], sizes(rows)

    return _once(low, "Whole", low.kernel(WholeRowsKernel()), mask, (*shape[:3], T), plan)


def _packed(low: Lowering, mask: Buffer, shape: Shape, scores: Shape, width: int) -> Buffer:
    """Return a mask of pairs as panels; dimensions of 1 are repeated along queries and keys."""
    S, T = scores[2:]
    symbol = low.kernel(PackKernel(width))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        own_S, own_T = sizes(shape[2]), sizes(shape[3])
        stride_k, stride_n = 0 if own_T == 1 else 1, 0 if own_S == 1 else own_T
        params = PackParams(K=sizes(T), N=sizes(S), stride_k=stride_k, stride_n=stride_n, stride_batch=own_S * own_T)
        return params.words(), params.parts(width, sizes.product(shape[:2]))

    panels = (product(shape[:2]), -(-S // width), T, width)
    return _once(low, "Pack", symbol, mask, panels, plan, lambda sizes: _is_by_rows(sizes(S), shape, scores, sizes))


def _once(
    low: Lowering,
    name: str,
    symbol: str,
    source: Buffer,
    shape: Shape,
    plan: Plan,
    unless: Callable[[Sizes], bool] | None = None,
) -> Buffer:
    """Return the buffer that a kernel makes of `source`: by a new step, unless one before made the same."""
    for step in low.steps:
        if step.symbol == symbol and step.name == name and step.buffers[0] is source and step.buffers[1].shape == shape:
            return step.buffers[1]
    result = low.temporary(DataType.FLOAT, shape)
    low.move(name, symbol, [source, result], plan, unless=unless)
    return result


@dataclasses.dataclass(frozen=True, slots=True)
class WholeRowsKernel:
    """Rows of a mask that have as many numbers as there are keys."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"mask_rows_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_whole_rows(module, symbol)


@dataclasses.dataclass(frozen=True, slots=True)
class EndsKernel:
    """How many keys each batch has, and how many of them lie before its first query."""

    kinds: tuple[Type, ...]
    """The type of the numbers of keys; none where all batches have all of them."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"ends_of_keys_{'_'.join(kind.name for kind in self.kinds) or 'all'}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_ends(module, symbol, *self.kinds)


@dataclasses.dataclass(frozen=True, slots=True)
class SeenKernel:
    """Which keys queries see."""

    width: int
    """Queries of a panel."""
    has_mask: bool = False
    """Whether what is seen has the numbers of a mask."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"seen_keys_{self.width}{'_masked' * self.has_mask}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_seen(module, symbol, self.width, has_mask=self.has_mask)


def ends_of_keys(low: Lowering, group: Group, scores: Shape, ends: tuple[Buffer, Type] | None, past: Dim) -> Buffer:
    """Return (past, total) of each batch, int64 (B, 2), once for all nodes that ask alike.

    Args:
        low: the lowering.
        group: what is lowered.
        scores: (B, H, S, T).
        ends: the number of keys of each batch (B), with its type; None for T.
        past: how many keys lie before the first query; -1 where the last query stands at the last key of its batch.
    """
    B, _, S, T = scores
    symbol = low.kernel(EndsKernel(() if ends is None else (ends[1],)))
    dims = B, S, T, past
    key = (symbol, None if ends is None else ends[0], *dims)
    if key not in low.shared:
        made = low.shared[key] = low.temporary(DataType.INT64, (B, 2))

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            return [sizes(dim) for dim in dims], 1

        buffers = [STATUS if ends is None else ends[0], made, STATUS]
        low.step(group, symbol, buffers, writes=[1], plan=plan, failure=_FAILURE)
    return low.shared[key]


def seen_mask(
    low: Lowering,
    group: Group,
    scores: Shape,
    window: int,
    lengths: Buffer,
    mask: Mask | None = None,
    *,
    is_causal: bool = True,
) -> Mask:
    """Return which keys each query sees, once for all nodes that ask alike; few queries know it by themselves.

    Args:
        low: the lowering.
        group: what is lowered.
        scores: (B, H, S, T).
        window: how many keys a query sees, its own among them.
        lengths: (past, total) of each batch; a query s sees no key behind past + s.
        mask: what is added to the scores of keys that are seen, packed; None for nothing.
        is_causal: whether that holds; else a query sees all keys of its sequence, and the window is NO_WINDOW.
    """
    B, H, S, T = scores
    width = tiling(low.target).panel
    given = mask if mask is not None and mask.masking is not Masking.NONE else None
    packed = () if given is None else given.buffers
    if given is None:
        seen = Mask(Masking.FULL, True, (), (), (B, 1, S, T), (B, H, S, T), width)
    else:
        seen = dataclasses.replace(given, buffers=(), panels=(B, given.shape[1]))
    if seen.is_always_by_rows:
        return seen
    heads = seen.shape[1]
    symbol = low.kernel(SeenKernel(width, bool(packed)))
    key = (symbol, lengths, S, T, window, is_causal, *packed)
    if key not in low.shared:
        panels = low.shared[key] = low.temporary(DataType.FLOAT, (product((B, heads)), -(-S // width), T, width))

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            batch, head = (0, 0) if given is None else given.strides(sizes)
            words = [sizes(S), sizes(T), window, sizes(heads), batch, head, 0 if is_causal else sizes(T)]
            return words, sizes(B) * sizes(heads) * -(-sizes(S) // width)

        low.step(group, symbol, [lengths, *packed, panels], writes=[1 + len(packed)], plan=plan, unless=seen.is_by_rows)
    return dataclasses.replace(seen, buffers=(low.shared[key],))
