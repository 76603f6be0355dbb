"""How near are products of 8-bit integers to what the processor's dot products do on registers, and one row to the memory's speed?

    taskset -c 0 python benchmarks/integer_gemm.py [--isa LEVEL] [--store {sums,requantized}] [--weights-mib 512] [--rounds 5]

Products of uint8 by int8, packed, as the CPU provider's kernel computes them: billions of multiply-adds a second, and their share
of the peak. Then one row by matrices of 4096 x 4096, as many as the caches do not hold: bytes of weights a second, beside a kernel
that does nothing but read them. All take turns; the fastest run of each counts, since others may use the machine.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from gemm import Run, aligned
from integer_conv import peak_run

from sardonyx.codegen.emit.dots import has_pairs
from sardonyx.codegen.emit.expr import ElementExpr, argument, constant, round_saturated
from sardonyx.codegen.emit.matrix_tiles import TILE, Tiles, configured_tiles, has_byte_tiles, tile_dot
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I8, I32, U8
from sardonyx.codegen.kernels.byte_panels import bytes_tiling, pack_bytes
from sardonyx.codegen.kernels.quantized.byte_gemm import COLUMN, ByteGemmParams, ByteStore, write_byte_gemm
from sardonyx.codegen.kernels.quantized.pairs import cut_lanes
from sardonyx.codegen.kernels.quantized.prepared_rows import prepared_bytes
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, host_target

_SHAPES = [
    (128, 768, 768),
    (128, 3072, 768),
    (128, 768, 3072),
    (1024, 1024, 1024),
    (512, 4096, 4096),
    (384, 1024, 8192),
    (16, 768, 768),
]
_SIDE = 4096


def store_of(name: str, target: Target) -> ByteStore:
    """What is stored: the sums, or numbers of 8 bits with a scale for each column."""
    if name == "sums":
        return ByteStore(U8, I8, has_pairs(target), None, None, argument(0, I32), (), "")
    scaled: ElementExpr = argument(0, I32).to(F32) * argument(1, F32)
    return ByteStore(U8, I8, has_pairs(target), None, None, round_saturated(scaled, constant(3, I32), U8), (F32,), COLUMN)


def engine_of(target: Target, store: ByteStore) -> Engine:
    """The product, and a kernel that reads vectors and adds them up: its parameter is how many groups of 8 a task reads."""
    module, engine, lanes = Module(target), Engine(target), target.lanes(32)
    write_byte_gemm(module, "gemm", store)
    with module.kernel("read") as b:
        sums = [b.variable(b.const(I32.vector(lanes), place)) for place in range(8)]
        source, groups = b.buffer(0, I32), b.param(0)
        with b.loop(b.begin, b.end) as task, b.loop(task * groups, (task + 1) * groups) as group:
            for place, total in enumerate(sums):
                total.set(total.value ^ source.load(group * (8 * lanes) + place * lanes, lanes))
        for place, total in enumerate(sums):
            b.buffer(1, I32).store(total.value, place * lanes, lanes)
    engine.add(module)
    return engine


def tile_peak_run(target: Target) -> Run:
    """Products of tiles in registers."""
    module, engine, dot = Module(target), Engine(target), tile_dot(U8, I8)
    with module.kernel("peak") as b, configured_tiles(module, b):
        tiles = Tiles(b)
        for tile in range(8):
            tiles.zero(tile)
        with b.loop(b.begin, b.end):
            for i, j in itertools.product(range(2), range(2)):
                tiles.multiply(dot, 2 * i + j, 4 + i, 6 + j)
    engine.add(module)
    return Run(engine, "peak", [], [0], 10_000, 4 * TILE * TILE * 4 * TILE * 10_000)


def product_run(engine: Engine, store: ByteStore, M: int, N: int, K: int) -> Run:
    """One product, in multiply-adds."""
    rng, width = np.random.default_rng(0), bytes_tiling(engine.target).panel
    row_bytes = prepared_bytes(engine.target, K) if store.is_prepared else K
    a = aligned(rng.integers(0, 256, (M, row_bytes)).astype(np.uint8))
    b = aligned(pack_bytes(rng.integers(-128, 128, (K, N)).astype(np.int8), width, cut=cut_lanes(engine.target)))
    c = aligned(np.zeros((M, N), np.int32 if store.expr.type == I32 else np.uint8))
    params = ByteGemmParams.blocked(engine.target, M, N, K, row_bytes=row_bytes)
    return Run(engine, "gemm", [a, b, c, *_scales(N)], params.words(), params.tasks(), M * N * K)


def _scales(N: int) -> list[np.ndarray]:
    return [aligned(np.full(N, 1e-4, np.float32))]


def row_run(engine: Engine, store: ByteStore, matrices: int) -> tuple[Run, Run]:
    """One row by a batch of matrices, and reading the same bytes; both in bytes."""
    rng, width = np.random.default_rng(0), bytes_tiling(engine.target).panel
    panels = pack_bytes(rng.integers(-128, 128, (_SIDE, _SIDE)).astype(np.int8), width)
    row_bytes = prepared_bytes(engine.target, _SIDE) if store.is_prepared else _SIDE
    b, a = aligned(np.repeat(panels[None], matrices, axis=0)), aligned(rng.integers(0, 256, row_bytes).astype(np.uint8))
    c = aligned(np.zeros((matrices, _SIDE), np.int32))
    params = ByteGemmParams.blocked(engine.target, 1, _SIDE, _SIDE, row_bytes=row_bytes)
    row = Run(engine, "gemm", [a, b, c, *_scales(_SIDE)], params.words(), params.tasks(matrices), b.nbytes)
    groups = b.nbytes // matrices // engine.target.vector_bytes // 8
    return row, Run(engine, "read", [b, aligned(np.zeros(8 * 16, np.int32))], [groups], matrices, b.nbytes)


def main() -> None:
    """Measure in rounds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa")
    parser.add_argument("--store", default="requantized", choices=["sums", "requantized"])
    parser.add_argument("--weights-mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    target, store = host_target(options.isa), store_of(options.store, host_target(options.isa))
    engine = engine_of(target, store)
    row, read = row_run(engine, store, max(1, options.weights_mib * (1 << 20) // _SIDE**2))
    has_tiles = has_byte_tiles(target)
    runs = {"peak": tile_peak_run(target) if has_tiles else peak_run(target)[0], "read": read, "row": row}
    runs.update({str(shape): product_run(engine, store, *shape) for shape in _SHAPES})
    best = dict.fromkeys(runs, 0.0)
    for _ in range(options.rounds):
        best = {name: max(best[name], run.gigaflops()) for name, run in runs.items()}
    unit = "tiles" if has_tiles else "dot products"
    print(f"{target.isa}, {options.store}: {unit} on registers {best['peak']:.0f} G multiply-adds/s")
    for shape in _SHAPES:
        speed = best[str(shape)]
        print(f"{shape!s:>22}  {speed:7.0f} G/s  {speed / best['peak']:6.1%} of the peak")
    share, reading = best["row"] / best["read"], best["read"]
    print(f"{'one row, 4096 x 4096':>22}  {best['row']:7.1f} GB/s  {share:6.1%} of reading, {reading:.1f} GB/s")


if __name__ == "__main__":
    main()
