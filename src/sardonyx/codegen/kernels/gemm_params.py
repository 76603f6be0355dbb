"""The integer parameters of a product of matrices, and how it is cut into blocks and tasks."""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.kernels.cuts import cut_for
from sardonyx.codegen.kernels.panels import LONGEST_CHAIN
from sardonyx.codegen.kernels.tiles import has_many_registers, tiling
from sardonyx.codegen.target import Target
from sardonyx.lazy_dataclasses import dataclass, replace

__all__ = [
    "BLOCK_K",
    "CHAIN",
    "PARAMS_COUNT",
    "PART_TASKS",
    "TASK_PRODUCTS",
    "GemmParams",
    "chain_for",
    "chains_over_channels",
    "computed_chain_for",
    "read_gemm_params",
]

CHAIN = 128
"""Most multiply-adds of one chain of a sum that is not very long."""

BLOCK_K = 6 * CHAIN
"""Rows of a panel that stay in the second-level cache, with room for the rows of A that pass: whole chains, of both lengths."""

_LONG_SUM, _LONG_DECODED_SUM = 24 * CHAIN, 32 * CHAIN
"""From which length on sums have longer chains; those of decoded panels later, as longer ones leave the first-level cache."""
_COMPUTED_CHAINS, _SHORTEST_CHAIN = 4, 12
"""How many chains a sum over a computed matrix has at least, and how long these are at least."""
_FEW_CHANNELS = 16
"""Fewer are one vector of channels or less: other engines sum the taps of each of them apart."""
BLOCK_ROWS, BLOCK_SIDES = 96, 1 << 15
"""Fewest rows of a task, and elements of A and C in it, where all panels stay in the second-level cache."""

BLOCK_C = 1 << 17
"""Elements of C in one task where panels are decoded: they are gone through once for each chain."""

_DECODED_ROWS = 256
"""Rows that share what is decoded: enough for that to cost little."""

_BLOCKED_ROWS = 3
"""Rows from which on K is gone through in blocks: fewer read all of a panel, since memory is read faster by long ranges. It is
computed without a comparison, which would tie a recorded plan to one or two rows."""

TASK_PRODUCTS = 1 << 28
"""Multiplications of one task at most, some milliseconds: a run can only be ended between tasks."""

TASK_ELEMENTS = 1 << 22
"""Elements of C that one task writes at most, for the same reason."""

_LONGEST_PART = 1 << 19
"""Rows of B that one task goes through at most, for the same reason: longer sums are made part by part."""

PART_TASKS = 1 << 12
"""From the tasks of one part of a sum to those of the next, which wait for all of them; fewer blocks have numbers without work."""


@dataclass(frozen=True, slots=True)
class GemmParams:
    """The integer parameters of the kernel, in their order. Strides count elements."""

    M: int
    """Rows of A and C."""
    N: int
    """Columns of B and C."""
    K: int
    """Columns of A, rows of B."""
    lda: int
    """From one row of A to the next."""
    ldc: int
    """From one row of C to the next."""
    pieces_m: int
    """Pieces of the rows of C, each of whole tiles: a task has one of them."""
    pieces_n: int
    """Pieces of its columns, each of whole panels."""
    block_k: int
    """Rows of B that are gone through before the next panel."""
    chain: int
    """Multiply-adds of one chain; divides `block_k`, but for the last block."""
    stride_a: int = 0
    """From one matrix A of a batch to the next; 0 takes the same one."""
    stride_b: int = 0
    """From one packed matrix B of a batch to the next."""
    stride_c: int = 0
    """From one matrix C of a batch to the next."""
    part_k: int = 0
    """Rows of B in one task, a multiple of `block_k`; 0 for all of them."""
    part_blocks: int = 0
    """Blocks of C of all matrices, at most PART_TASKS, where a task does not go through all rows of B."""

    @staticmethod
    def blocked(
        target: Target, M: int, N: int, K: int, *, threads: int = 1, is_decoded: bool = False, chain: int = 0, **strides: int
    ) -> GemmParams:
        """Return the parameters of a product, with blocks that suit the caches and `threads`.

        Args:
            target: the machine.
            M: rows of A and C.
            N: columns of B and C.
            K: columns of A, rows of B.
            threads: how many threads share the tasks.
            is_decoded: whether panels are decoded, a chain at a time: threads then share columns, not rows.
            chain: multiply-adds of one chain where they are not `chain_for` K; K is not long then.
            strides: fields of GemmParams that are not those of dense matrices.
        """
        shape = tiling(target)
        height = shape.tiles[0][1][0]
        is_read_once = not has_many_registers(target) and height > M
        block_k = min(K, chain_for(K, is_decoded=True) if is_decoded else K if is_read_once else BLOCK_K) or 1
        if not is_decoded:
            block_k += (max(K, 1) - block_k) * (1 // (M // _BLOCKED_ROWS + 1))
        units, panels = -(-M // height), -(-N // shape.panel)
        least = max(1, -(-M // _DECODED_ROWS) if is_decoded else max(_pieces(target, M, N, K), -(-M * N // TASK_ELEMENTS)))
        pieces_m, pieces_n = cut_for(target, (least, units), panels, 4 * N * K, threads, may_add_rows=not is_decoded)
        pieces_m = min(pieces_m, units)
        block_m = -(-units // (pieces_m or 1)) * height
        pieces_n = max(pieces_n, block_m * K * N // TASK_PRODUCTS, -(-block_m * N // BLOCK_C) if is_decoded else 1)
        dense = {"lda": K, "ldc": N}
        return GemmParams(
            M=M,
            N=N,
            K=K,
            pieces_m=pieces_m,
            pieces_n=min(pieces_n, panels),
            block_k=block_k,
            chain=chain or chain_for(K, is_decoded=is_decoded),
            **(dense | strides),
        )

    def in_parts(self, batch: int) -> GemmParams:
        """Return the same for `batch` products whose sums, where these are very long, are made part by part.

        The tasks of one part are PART_TASKS from those of the next, and must have ended before these begin.
        """
        blocks = batch * self.pieces_m * self.pieces_n
        if self.K <= _LONGEST_PART or not 0 < blocks <= PART_TASKS:
            return self
        block = -(-self.M // self.pieces_m) * -(-self.N // self.pieces_n)
        part = max(min(_LONGEST_PART, TASK_PRODUCTS // block) // BLOCK_K, 1) * BLOCK_K
        return replace(self, block_k=min(self.block_k, part), part_k=part, part_blocks=blocks)

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them; those of an epilogue follow."""
        return [getattr(self, name) for name in _PARAMS]

    def tasks(self, batch: int = 1) -> int:
        """Return how many tasks a batch of `batch` products is."""
        blocks = batch * self.pieces_m * self.pieces_n
        return blocks if not self.part_k or not blocks else (-(-self.K // self.part_k) - 1) * PART_TASKS + blocks


_PARAMS = tuple(GemmParams.__dataclass_fields__)
PARAMS_COUNT = len(_PARAMS)
"""Where the parameters of an epilogue begin."""


def _pieces(target: Target, M: int, N: int, K: int) -> int:
    """Return how many blocks of rows suit the second-level cache, which keeps a block of A: it is gone through once for each panel.

    Where all panels stay in half of it, blocks are small: C is written, and read by an epilogue, by rows that follow one another.
    """
    is_small = tiling(target).panel < N and target.keeps(4 * N * K)
    rows = max(BLOCK_SIDES // (K + N), BLOCK_ROWS) if is_small else M
    return max(-(-4 * M * min(K, BLOCK_K) // (target.cache_bytes // 2)), -(-M // max(rows, 1)))


def chain_for(K: int, *, is_decoded: bool = False) -> int:
    """Return how many multiply-adds of a sum of K make a chain: where there are very many chains, adding them up has errors too."""
    return CHAIN if (_LONG_DECODED_SUM if is_decoded else _LONG_SUM) >= K else LONGEST_CHAIN


def computed_chain_for(K: int) -> int:
    """Return the same for a product of two computed matrices, whose short sums have several chains.

    Other engines multiply a single row by a matrix that is not packed by adding up four rows of it at a time.
    """
    return max(min(chain_for(K), -(-K // _COMPUTED_CHAINS)), _SHORTEST_CHAIN)


def chains_over_channels(channels: int, taps: int) -> int:
    """Return how many chains a convolution's sum over so many channels, of so many taps each, has at least.

    The error of n chains of a sum of K grows with K / n + n. That of a sum whose channels are added up one by one grows with their
    number and that of the taps: where there are few channels, chains are so many that it is hardly greater.
    """
    count, K = 1, channels * taps
    if channels < _FEW_CHANNELS:
        while count * count < K and 4 * (K + count * count) > 5 * count * (channels + taps):
            count += 1
    return count


def read_gemm_params(b: Kernel) -> dict[str, Register]:
    """Return the parameters of a GemmParams by name."""
    return {name: b.param(place) for place, name in enumerate(_PARAMS)}
