"""Linear attention in fp32: a recurrence over time whose state is one matrix S (K, V) per head.

    S = d S            where states decay, by one factor or one for each row
    w = v              or b (v - Sᵀ k) where what the state already returns for the key is corrected
    S = S + k wᵀ
    o = scale x Sᵀ q   for each query head that shares the state

Columns of S depend on each other in nothing: a task walks some steps for a block of columns of one state, so that the state
stays in the nearest cache and a run can end between the steps. Blocks of as many as may run at a time are walked side by side:

    task    0 1 | 2 3 | 4 5 …        of 2 together, 2 tasks for each block
    block   0 1 | 0 1 | 2 3 …
    steps   first | last | first

Dimension letters: B batch, T steps, N query heads, M states of a batch, O the greater of both, K rows, V columns of a state.
Source: Yang, Wang, Shen, Panda and Kim 2024, "Gated linear attention"; Yang, Kautz and Hatamizadeh 2024, "Gated delta networks".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.emit.values import Operand, Pointer, Register, Span
from sardonyx.codegen.float_words import float_word

__all__ = ["LinearAttentionCode", "LinearAttentionParams", "write_linear_attention"]

_WIDE = 4
"""How many vectors of columns are walked side by side: their sums do not wait for one another."""

_BLOCK = 64
"""Columns of a block."""

_TASK_ELEMENTS = 1 << 21
"""How many elements of a state a task changes about, while a run that is to end has to wait."""

_NAMES = ("K", "V", "T", "N", "M", "decay_row", "beta_row", "together", "parts", "steps", "blocks")
_Column = tuple[Register, Span]
_Q, _KEY, _VALUE, _OUT, _STATE, _WORK, _REST = range(7)


@dataclasses.dataclass(frozen=True, slots=True)
class LinearAttentionCode:
    """Which of the optional inputs there are."""

    has_past: bool
    """A state to begin with, zeros otherwise."""
    decays: bool
    """Factors of the state."""
    corrects: bool
    """Factors of what is written, less what the state returns."""

    @property
    def name(self) -> str:
        """Return a name for it."""
        letters = zip("pdc", (self.has_past, self.decays, self.corrects), strict=True)
        return "".join(letter for letter, is_there in letters if is_there) or "n"


@dataclasses.dataclass(frozen=True, slots=True)
class LinearAttentionParams:
    """The sizes of a linear attention."""

    B: int
    """Batch."""
    T: int
    """Steps."""
    N: int
    """Query heads."""
    M: int
    """States of a batch; N divides it, or it divides N."""
    K: int
    """Rows of a state, at least 1."""
    V: int
    """Columns of a state, at least 1."""
    decay_row: int
    """Factors of a state at a step: 1 or K."""
    beta_row: int
    """Factors of what is written, of a batch at a step: 1 or M."""
    scale: float
    """Factor of the outputs."""
    together: int
    """How many tasks run at a time."""

    @property
    def _steps(self) -> int:
        """How many steps a task walks."""
        return max(1, _TASK_ELEMENTS // (self.K * min(self.V, _BLOCK)))

    @property
    def _parts(self) -> int:
        """How many tasks walk a block; one also where there are no steps: it writes the state."""
        return max(1, -(-self.T // self._steps))

    @property
    def _blocks(self) -> int:
        return self.B * self.M * -(-self.V // _BLOCK)

    def words(self) -> list[int]:
        """Return the parameters of the kernel."""
        rows = (self.decay_row, self.beta_row)
        sizes = (self.K, self.V, self.T, self.N, self.M, *rows, self.together, self._parts, self._steps, self._blocks)
        return [*sizes, float_word(self.scale)]

    @staticmethod
    def work(K: int, together: int) -> int:
        """Return how many elements the kernel needs besides."""
        return together * K * _BLOCK

    def tasks(self) -> int:
        """Return how many tasks there are."""
        return -(-self._blocks // self.together) * self._parts * self.together


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """One step of one state."""

    query: Callable[[Register], Pointer]
    """Output head of the state -> its queries (K)."""
    out: Callable[[Register], Pointer]
    """Output head of the state -> its outputs (V)."""
    key: Pointer
    """(K)"""
    value: Pointer
    """(V)"""
    decay: Pointer | None
    """(K), or one."""
    beta: Register | None
    """Factor of what is written."""
    heads: Register
    """Output heads of the state."""


def write_linear_attention(module: Module, symbol: str, code: LinearAttentionCode) -> None:
    """Write the kernel `symbol`.

    Its buffers are q (B, T, N, K), k (B, T, M, K), v (B, T, M, V), outputs (B, T, O, V), states (B, M, K, V) and as many elements
    as `LinearAttentionParams.work` says, then as far as they are there past states, factors of decay (B, T, M, 1 or K) and betas
    (B, T, 1 or M).
    Parameters: `LinearAttentionParams.words`.
    """
    with module.kernel(symbol) as b:
        together, parts, blocks = (_param(b, name) for name in ("together", "parts", "blocks"))
        with b.loop(b.begin, b.end) as task:
            slot, group = task % together, task // together
            block = group // parts * together + slot
            with b.when(block < blocks):
                _write_block(b, code, block, group % parts)


def _write_block(b: Kernel, code: LinearAttentionCode, block: Register, part: Register) -> None:
    """Walk the steps of a part for one block of columns, in a copy whose rows lie one behind the other."""
    K, V, T, M, steps = (_param(b, name) for name in ("K", "V", "T", "M", "steps"))
    across = (V + (_BLOCK - 1)) // _BLOCK
    unit, first = block // across, block % across * _BLOCK
    width = b.min(V - first, b.const(I64, _BLOCK))
    state = b.buffer(_STATE, F32).at(unit * K * V + first)
    work = b.buffer(_WORK, F32).at(block % _param(b, "together") * K * _BLOCK)

    def begin() -> None:
        past = b.buffer(_REST, F32).at(unit * K * V + first) if code.has_past else None
        _copy(b, past, V, work, _BLOCK, width)

    b.branch(part.eq(0), begin, lambda: _copy(b, state, V, work, _BLOCK, width))
    with b.loop(part * steps, b.min((part + 1) * steps, T)) as t:
        step = _step(b, code, unit // M * T + t, unit % M, first)
        wide = _WIDE * b.lanes(F32)
        whole = width // wide * wide
        with b.loop(0, whole, wide) as i:
            _write_columns(b, step, work, [(i + j * b.lanes(F32), Span(b.lanes(F32))) for j in range(_WIDE)])
        for i, span in b.vectors(whole, width, F32):
            _write_columns(b, step, work, [(i, span)])
    _copy(b, work, b.const(I64, _BLOCK), state, V, width)


def _copy(b: Kernel, source: Pointer | None, stride: Register, target: Pointer, pitch: Operand, width: Register) -> None:
    """Copy the rows of a block, or make them zero."""
    with b.loop(0, _param(b, "K")) as row:
        for i, span in b.vectors(0, width, F32):
            found = b.const(F32, 0.0).splat(span.lanes) if source is None else source.load(row * stride + i, span)
            target.store(found, row * pitch + i, span)


def _step(b: Kernel, code: LinearAttentionCode, row: Register, m: Register, first: Register) -> _Step:
    """Return where step `row` of all batches finds what it needs for the columns from `first` on of state m of its batch."""
    K, V, N, M = (_param(b, name) for name in ("K", "V", "N", "M"))
    heads = b.max(N, M)
    of_state, per_query = heads // M, heads // N
    unit, rest = row * M + m, _REST + code.has_past
    decay = beta = None
    if code.decays:
        decay = b.buffer(rest, F32).at(unit * _param(b, "decay_row"))
    if code.corrects:
        beta_row = _param(b, "beta_row")
        beta = b.buffer(rest + code.decays, F32).load(row * beta_row + m % beta_row)
    return _Step(
        lambda head: b.buffer(_Q, F32).at((row * N + (m * of_state + head) // per_query) * K),
        lambda head: b.buffer(_OUT, F32).at((row * heads + m * of_state + head) * V + first),
        b.buffer(_KEY, F32).at(unit * K),
        b.buffer(_VALUE, F32).at(unit * V + first),
        decay,
        beta,
        of_state,
    )


def _write_columns(b: Kernel, step: _Step, work: Pointer, columns: Sequence[_Column]) -> None:
    """Take one step for some vectors of columns."""
    written = [step.value.load(i, span) for i, span in columns]
    if step.decay is not None or step.beta is not None:
        known = _decayed(b, step, work, columns)
        if step.beta is not None:
            written = [(value - old) * step.beta.splat(value.type.lanes) for value, old in zip(written, known, strict=True)]
    _write_head(b, step, work, b.const(I64, 0), columns, written)
    with b.loop(1, step.heads) as head:
        _write_head(b, step, work, head, columns, None)


def _write_head(
    b: Kernel, step: _Step, work: Pointer, head: Register, columns: Sequence[_Column], written: Sequence[Register] | None
) -> None:
    """Compute an output head from the state, to which `written` is added first where it is there."""
    K, scale, query = _param(b, "K"), b.param_float(len(_NAMES)), step.query(head)
    sums = [b.variable(b.const(F32, 0.0).splat(span.lanes)) for _, span in columns]
    with b.loop(0, K) as row:
        key, q = step.key.load(row), query.load(row)
        for place, ((i, span), total) in enumerate(zip(columns, sums, strict=True)):
            element = work.load(row * _BLOCK + i, span)
            if written is not None:
                element = b.fma(key.splat(span.lanes), written[place], element)
                work.store(element, row * _BLOCK + i, span)
            total.set(b.fma(q.splat(span.lanes), element, total.value))
    for (i, span), total in zip(columns, sums, strict=True):
        step.out(head).store(total.value * scale.splat(span.lanes), i, span)


def _decayed(b: Kernel, step: _Step, work: Pointer, columns: Sequence[_Column]) -> list[Register]:
    """Let the state decay; return what it then returns for the key."""
    sums = [b.variable(b.const(F32, 0.0).splat(span.lanes)) for _, span in columns]
    stride = b.select(_param(b, "decay_row") > 1, b.param(0).like(1), b.param(0).like(0))
    with b.loop(0, _param(b, "K")) as row:
        key = step.key.load(row)
        for (i, span), total in zip(columns, sums, strict=True):
            element = work.load(row * _BLOCK + i, span)
            if step.decay is not None:
                element = element * step.decay.load(row * stride).splat(span.lanes)
                work.store(element, row * _BLOCK + i, span)
            total.set(b.fma(key.splat(span.lanes), element, total.value))
    return [total.value for total in sums]


def _param(b: Kernel, name: str) -> Register:
    return b.param(_NAMES.index(name))
