"""Attention of few queries, as a decoder has them: the steps beside those for many, of which the sizes decide.

Which queries are few is `Mask.is_by_rows`'s matter. A piece of former keys is copied into the cache by the task that reads it;
where each batch names whose they are, the step copies them for many queries, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.kernels.attention.codes import stored_name
from sardonyx.codegen.kernels.attention.row_parts import PIECE, RowAttentionParams, part_elements
from sardonyx.codegen.kernels.attention.rows import FEW, write_join, write_row_attention
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ir.shape import ceil_div, maximum, minimum
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.attention_mask import Mask
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.precision import FLOAT32
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer

__all__ = ["Few", "FewHeads", "RowStrides", "Rows", "attend_few"]

RowStrides: TypeAlias = tuple[Dim, Dim, Dim]
"""From one batch, one head, one row (query or key) to the next, in elements."""

Rows: TypeAlias = tuple[Buffer, RowStrides]
"""Where rows of heads are."""


STREAMED_BYTES = 1 << 20
"""From so many bytes on, former keys and values are written past the caches of the processor, which they would fill."""


@dataclasses.dataclass(frozen=True, slots=True)
class Few:
    """What the steps for few queries do otherwise than those for many."""

    is_causal: bool
    """Whether no query sees later keys."""
    past: Dim = 0
    """Keys before the first query's own, where there are no lengths."""
    former: tuple[Buffer, Buffer] | None = None
    """Keys and values of former runs (B, M, P, D), where they are to be copied into the cache."""
    P: Dim = 0
    """How many rows of them there are."""
    N: Dim = 0
    """How many new rows the cache has behind them."""
    lengths: Buffer | None = None
    """(past, total) of each batch."""
    window: int = 1 << 40
    """Keys that a causal query sees at most."""
    sinks: tuple[Buffer, ...] = ()
    """One more score for each head (H), whose value is zero; a buffer or none."""
    rows: Buffer | None = None
    """For each batch the one of former runs whose keys and values it goes on from, int64 (B)."""
    former_batches: Dim = 0
    """How many batches there were in former runs, where `rows` names them."""
    kind: Type = F32
    """The type of keys and values: float32, one of 16 bits, or that of codes."""


@dataclasses.dataclass(frozen=True, slots=True)
class FewHeads:
    """How many heads, queries and keys there are."""

    B: Dim
    """Batch."""
    M: int
    """Heads of keys and values."""
    group: int
    """Heads of queries that share one."""
    S: Dim
    """Queries."""
    T: Dim
    """Keys."""
    D: int
    """Size of a head of queries and keys."""
    Dv: int
    """Size of a head of values."""
    scale: float
    """What the products of queries and keys are multiplied by."""
    softcap: float
    """The limit of scores, 0 for none."""


@dataclasses.dataclass(frozen=True, slots=True)
class RowAttentionKernel:
    """Attention of few queries."""

    shape: AttentionShape
    """What is done to scores."""
    has_lengths: bool
    """Whether each batch has a length of its own."""
    has_past: bool
    """Whether former keys and values are copied into the cache."""
    names_rows: bool = False
    """Whether each batch says whose they are."""
    kind: Type = F32
    """The type of keys and values."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        parts = "_lengths" * self.has_lengths + "_past" * self.has_past + "_rows" * self.names_rows
        return f"attention_rows_{stored_name(self.kind)}_{self.shape.name}{parts}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        ways = {"has_lengths": self.has_lengths, "has_past": self.has_past, "names_rows": self.names_rows}
        write_row_attention(module, symbol, self.shape, kind=self.kind, **ways)


@dataclasses.dataclass(frozen=True, slots=True)
class JoinKernel:
    """What joins the pieces of keys."""

    has_sink: bool = False
    """Whether the softmax of each head has one more score, whose value is zero."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"attention_rows_join_f32{'_sink' * self.has_sink}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_join(module, symbol, has_sink=self.has_sink)


def attend_few(
    low: Lowering,
    group: Group,
    heads: FewHeads,
    operands: Sequence[Rows],
    result: Rows,
    mask: Mask,
    few: Few,
    check: Callable[[Sizes], None],
) -> None:
    """Add the steps that attend where queries are few, and do nothing where they are not.

    Args:
        low: the lowering.
        group: what is lowered.
        heads: how many heads, queries and keys there are.
        operands: queries, keys and values; keys and values are the cache where there are former ones.
        result: where rows of the result go.
        mask: what hides keys.
        few: what is otherwise than with many queries.
        check: raises InvalidArgument where inputs and outputs do not fit.
    """
    shape = AttentionShape(
        mask.masking if mask.rows else Masking.NONE, few.is_causal, mask.replaces, heads.softcap, bool(few.sinks)
    )
    ways = few.lengths is not None, few.former is not None, few.rows is not None
    symbol = low.kernel(RowAttentionKernel(shape, *ways, few.kind))
    pieces = maximum(ceil_div(heads.T, PIECE), 1)
    rows = minimum(heads.S, FEW) * heads.group
    parts = low.temporary(DataType.FLOAT, (heads.B, heads.M, pieces, rows, part_elements(heads.Dv)))
    strides = [strides for _, strides in (*operands, result)]

    def params_of(sizes: Sizes) -> RowAttentionParams:
        return RowAttentionParams(
            B=sizes(heads.B),
            M=heads.M,
            group=heads.group,
            S=sizes(heads.S),
            T=sizes(heads.T),
            D=heads.D,
            Dv=heads.Dv,
            scale=heads.scale,
            past=sizes(few.past),
            window=few.window,
            P=sizes(few.P),
            N=sizes(few.N),
            former=sizes(few.former_batches),
            streams=heads.M * sizes(heads.B) * sizes(few.P) * (heads.D + heads.Dv) * few.kind.size_bytes >= STREAMED_BYTES,
            mask=mask.row_strides(sizes) if mask.rows else (0, 0, 0),
            **{name: _at(sizes, of) for name, of in zip("qkvy", strides, strict=True)},
        )

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        check(sizes)
        params = params_of(sizes)
        if few.rows is not None and is_many(sizes):
            params = dataclasses.replace(params, S=0)
        return params.words(), params.tasks()

    def join(sizes: Sizes) -> tuple[list[int], int]:
        params = params_of(sizes)
        return params.words(), params.joins()

    def is_many(sizes: Sizes) -> bool:
        return not mask.is_by_rows(sizes)

    def is_one(sizes: Sizes) -> bool:
        return is_many(sizes) or sizes(heads.T) <= PIECE

    (q, _), (k, _), (v, _) = operands
    buffers = [q, k, v, result[0], parts, few.lengths or q, *(few.former or (k, v)), *mask.rows, *few.sinks]
    writes = [3, 4] if few.former is None else [3, 4, 1, 2]
    if few.rows is None:
        shares = [] if few.former is None else [(6, 1), (7, 2)]
        low.step(group, symbol, buffers, writes=writes, plan=plan, unless=is_many, shares=shares, precision=FLOAT32)
    else:  # for many queries it only copies
        named = [*buffers, few.rows, STATUS]
        low.step(group, symbol, named, writes=writes, plan=plan, failure=_FAILURE, precision=FLOAT32)
    joined = [*buffers[:_JOINED], *few.sinks]
    low.step(group, low.kernel(JoinKernel(bool(few.sinks))), joined, writes=[3, 4], plan=join, unless=is_one)


_FAILURE = "the rows to go on from name one that former runs did not have"
_JOINED = 5
"""How many of the buffers are needed to join the pieces."""


def _at(sizes: Sizes, strides: RowStrides) -> tuple[int, int, int]:
    batch, head, row = strides
    return sizes(batch), sizes(head), sizes(row)
