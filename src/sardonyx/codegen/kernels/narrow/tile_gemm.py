"""C[M, N] = A[M, K] @ B[K, N] of bfloat16 with float32 sums, in matrix tiles (`tile_products`), and an epilogue in the store.

A is rows of pairs as `write_pair_rows` makes them: whole tiles of words, zeros behind the last K, and memory for some rows behind
the last one, which are multiplied and not stored. B is panels of pairs with whole tiles of words. So any number of rows is
multiplied in the same way, and equal rows give equal bits in a batch or alone.
"""

from __future__ import annotations

from sardonyx.codegen.emit.matrix_tiles import configured_tiles, tile_dot
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import BF16, F32, I64, U8, U32
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.cuts import cut_for, piece
from sardonyx.codegen.kernels.gemm import A, B, C, Epilogue, tiling
from sardonyx.codegen.kernels.gemm_params import GemmParams, read_gemm_params
from sardonyx.codegen.kernels.tile_products import TILE_HEIGHT, TILE_ROWS, TileOperands, sums_elements, write_tile_sums
from sardonyx.codegen.kernels.tiles import Tiling, tile_spans
from sardonyx.codegen.target import Target

__all__ = ["tile_gemm_params", "write_tile_gemm"]

_WORD_BYTES = 4
_TASK_WORDS = 1 << 31
"""Multiplications of one task at most, in words, some milliseconds: a run can only be ended between tasks."""


def tile_gemm_params(target: Target, M: int, N: int, words: int, *, threads: int = 1, **strides: int) -> GemmParams:
    """Return the parameters of a product, with blocks that suit tiles and `threads`.

    Args:
        target: the machine.
        M: rows of A and C.
        N: columns of B and C.
        words: of a row of A: whole tiles.
        threads: how many threads share the tasks.
        strides: fields of GemmParams that are not those of dense matrices.
    """
    panels = -(-N // tiling(target).panel)
    least = max(-(-M // TILE_ROWS), 1)
    units = -(-M // TILE_HEIGHT)
    pieces_m, pieces_n = cut_for(target, (least, units), panels, _WORD_BYTES * words * N, threads, may_add_rows=False)
    pieces_m = min(pieces_m, units)
    pieces_n = min(max(pieces_n, -(-M // least) * words * N // _TASK_WORDS), panels)
    dense = {"lda": words, "ldc": N}
    return GemmParams(M, N, words, pieces_m=pieces_m, pieces_n=pieces_n, block_k=max(words, 1), chain=1, **(dense | strides))


def write_tile_gemm(module: Module, symbol: str, epilogue: Epilogue | None = None) -> None:
    """Write the kernel `symbol`: buffers rows of pairs, panels of pairs, C and those of the epilogue.

    Parameters as in GemmParams, made by `tile_gemm_params`, with strides of A and B in words; chains have no meaning here.
    """
    shape = tiling(module.target)
    sums = write_tile_sums(module, symbol, shape, tile_dot(BF16, BF16))
    stores = {vectors: _write_store(module, f"{symbol}_store{vectors}", shape, vectors, epilogue) for vectors, _ in shape.tiles}
    with module.kernel(symbol) as b, configured_tiles(module, b):
        p, room = read_gemm_params(b), b.stack(F32, sums_elements(shape.panel), align=64)
        pieces = p["pieces_m"] * p["pieces_n"]
        with b.loop(b.begin, b.end) as task:
            batch, part = task // pieces, task % pieces
            left = b.buffer(A, U32).at(batch * p["stride_a"]).of(U8)
            panels = b.buffer(B, U32).at(batch * p["stride_b"])
            result = b.buffer(C, F32).at(batch * p["stride_c"])

            def panel(n: Register, panels: Pointer = panels) -> Pointer:
                return panels.at(n // shape.panel * (p["K"] * shape.panel) + n % shape.panel)

            def finish(found: Pointer, m: Register, n: Register, count: Register, vectors: int, result: Pointer = result) -> None:
                b.call_part(stores[vectors], found, result.at(m * p["ldc"] + n), m, n, count)

            given = TileOperands(left, p["lda"] * _WORD_BYTES, p["M"], panel, p["K"], room, finish)
            rows = piece(b, part // p["pieces_n"], p["pieces_m"], p["M"], TILE_HEIGHT)
            columns = piece(b, part % p["pieces_n"], p["pieces_n"], p["N"], shape.panel)
            sums.write_block(b, given, rows, columns)


def _write_store(module: Module, symbol: str, shape: Tiling, vectors: int, epilogue: Epilogue | None) -> Kernel:
    """Write what takes rows of sums and stores C."""
    with module.part(symbol, Address(F32, unique=False), Address(F32), I64, I64, I64) as b:
        sums, result = b.addresses
        m, n, count = b.arguments
        p = read_gemm_params(b)
        spans = tile_spans(b, shape, vectors, p["N"] - n)
        with b.loop(0, count) as i:
            row, found = result.at(i * p["ldc"]), sums.at(i * shape.panel)
            for j, span in enumerate(spans):
                total = found.load(j * shape.lanes, shape.lanes)
                place = j * shape.lanes
                row.store(total if epilogue is None else epilogue(b, total, m + i, n + place, span), place, span)
    return b
