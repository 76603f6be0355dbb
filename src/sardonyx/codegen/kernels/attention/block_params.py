"""The parameters of attention by blocks of queries, and how it is cut into tasks."""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.gemm_params import TASK_PRODUCTS
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "BLOCK_KEYS",
    "PARAMS",
    "STATISTICS",
    "AttentionParams",
    "Strides",
    "param_of",
    "scale_of",
    "scratch_elements",
    "together",
]

BLOCK_KEYS = 128
"""Keys whose scores lie in the first-level cache together, beside the turned queries."""

TASKS_PER_THREAD = 4
"""How finely the blocks of queries are shared out."""

STATISTICS = 4
"""Numbers that are kept of each query, beside the result so far."""

Strides = tuple[int, int, int]
"""Elements from one batch, one head, one row (query or key) to the next; elements of a row lie in order."""


@dataclass(frozen=True, slots=True)
class AttentionParams:
    """The sizes of one call: batch B, heads H of which `group` share keys and values, S queries, T keys, head sizes D and Dv."""

    B: int
    """Batch."""
    H: int
    """Heads of the queries."""
    group: int
    """How many of them share a head of keys and values."""
    S: int
    """Queries."""
    T: int
    """Keys."""
    D: int
    """Size of a head of queries and keys."""
    Dv: int
    """Size of a head of values."""
    scale: float
    """What the products are multiplied by."""
    q: Strides
    """Of the queries."""
    k: Strides
    """Of the keys."""
    v: Strides
    """Of the values."""
    y: Strides
    """Of the result."""
    past: int = 0
    """Keys before the first query's own: what a causal query sees besides."""
    mask: tuple[int, int] = (0, 0)
    """From one batch and one head of the (packed) mask to the next; 0 takes the same one."""

    def words(self, target: Target, threads: int) -> list[int]:
        """Return the parameters as the kernel reads them."""
        wide, narrow = _blocks(target, self.S)
        total = self.B * self.H * (wide + narrow)
        pieces = -(-self.T // BLOCK_KEYS) or 1
        unit = tiling(target).tiles[0][1][0]
        block_keys = -(-self.T // (pieces * unit)) * unit
        scratch = scratch_elements(target, self.D, self.Dv)
        tasks = max(self.tasks(target, threads), 1)
        return [
            self.H,
            self.group,
            self.S,
            self.T,
            self.D,
            self.Dv,
            max(block_keys, 1),
            wide,
            wide + narrow,
            total,
            tasks,
            together(threads),
            scratch,
            *self.q,
            *self.k,
            *self.v,
            *self.y,
            *self.mask,
            self.past,
            float_word(self.scale),
        ]

    def tasks(self, target: Target, threads: int) -> int:
        """Return how many tasks it is: so many as have scratch memory, or a multiple where each would take long."""
        products = self.B * self.H * self.S * self.T * (self.D + self.Dv)
        rounds = -(-products // (together(threads) * TASK_PRODUCTS)) or 1
        return min(self.B * self.H * sum(_blocks(target, self.S)), rounds * together(threads))


PARAMS = (
    "H group S T D Dv block_keys wide blocks total tasks together scratch "
    "q_batch q_head q_row k_batch k_head k_row v_batch v_head v_row y_batch y_head y_row mask_batch mask_head past"
).split()
"""The integer parameters of the kernel, in their order; the scale follows."""


def together(threads: int) -> int:
    """Return the most tasks that run at a time; their numbers follow one another, and each has scratch memory of its own."""
    return 1 if threads == 1 else TASKS_PER_THREAD * threads


def scratch_elements(target: Target, D: int, Dv: int) -> int:
    """Return how many elements of the scratch memory of one task."""
    shape = tiling(target)
    rows = _round_up(D, shape.lanes) + _round_up(Dv, shape.lanes) + _round_up(BLOCK_KEYS, shape.tiles[0][1][0]) + STATISTICS
    return rows * shape.panel


def _blocks(target: Target, S: int) -> tuple[int, int]:
    """Return how many blocks of a panel's width, and then of one vector, cover S queries."""
    shape = tiling(target)
    wide = S // shape.panel + (S % shape.panel > shape.panel // 2)
    return wide, -(-max(S - wide * shape.panel, 0) // shape.lanes)


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def param_of(b: Kernel, name: str) -> Register:
    """Return the parameter of this name."""
    return b.param(PARAMS.index(name))


def scale_of(b: Kernel) -> Register:
    """Return what the products of queries and keys are multiplied by."""
    return b.param_float(len(PARAMS))
