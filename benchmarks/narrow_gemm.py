"""How near are products in bfloat16, and with weights of 4 bits, to what their unit does on registers, and one row to the memory?

    taskset -c 0 python benchmarks/narrow_gemm.py [--isa LEVEL] [--weights-mib 256] [--rounds 5]

    bfloat16           both sides in pairs of bfloat16 (`medium`), beside dot products of pairs
    4 bits             weights decoded to float32, beside multiply-adds of float32; one row as digits of 8 bits, exactly
    4 bits by bytes    rows rounded to 8 bits (accuracy_level 4), beside dot products of bytes

Billions of multiply-adds a second, as the CPU provider's kernels compute them, and their share of the peak; weights of 4 bits in
blocks of 32 and of 128. Then one row by matrices of 4096 x 4096, as many as the caches do not hold: bytes of weights a second,
beside a kernel that does nothing but read them. All take turns; the fastest run of each counts, since others may use the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gemm import Run, aligned
from gemm import peak_run as multiply_adds
from integer_conv import peak_run as byte_dots

from sardonyx.codegen.emit.bfloat_dots import dot2
from sardonyx.codegen.emit.dots import has_dot4
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I32, U32
from sardonyx.codegen.kernels.gemm import tiling, write_gemm
from sardonyx.codegen.kernels.gemm_params import GemmParams
from sardonyx.codegen.kernels.narrow.pairs import pack_pairs
from sardonyx.codegen.kernels.panels import BlockPanels, PairPanels
from sardonyx.codegen.kernels.quantized.digit_blocks import DigitParams, digit_bytes, write_digit_blocks, write_digits
from sardonyx.codegen.kernels.quantized.dot_blocks import DotParams, QuantizeParams, q_bytes, write_dot_blocks
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, host_target
from sardonyx.dtypes import Array, DataType

_SHAPES = [(128, 768, 768), (128, 3072, 768), (128, 768, 3072), (1024, 1024, 1024), (512, 4096, 4096), (16, 768, 768)]
_SIDE = 4096
_BLOCKS = (32, 128)


@dataclass(frozen=True)
class Kind:
    """A kernel of products."""

    name: str
    peak: Run
    """Its unit on registers."""
    operations: int
    """How many of what `peak` counts a multiply-add is."""
    product: Callable[[int, int, int, int], tuple[Run, int]]
    """A product (M, N, K) by so many matrices side by side, and the bytes of these."""


def pair_dots(target: Target) -> Run:
    """Dot products of pairs on registers."""
    module, engine, lanes, chains = Module(target), Engine(target), target.lanes(32), target.registers - 8
    with module.kernel("peak") as b:
        x = b.buffer(0, U32).load(0, lanes)
        sums = [b.variable(b.const(F32.vector(lanes), float(place))) for place in range(chains)]
        with b.loop(b.begin, b.end):
            for total in sums:
                total.set(dot2(b, total.value, x, x))
        for place, total in enumerate(sums):
            b.buffer(1, F32).store(total.value, place * lanes, lanes)
    engine.add(module)
    numbers, sums_room = aligned(np.zeros(lanes, np.float32)), aligned(np.zeros(chains * lanes, np.float32))
    return Run(engine, "peak", [numbers, sums_room], [0], 10_000, 2 * lanes * chains * 10_000)


def pairs_kind(target: Target) -> Kind:
    """Products of pairs of bfloat16."""
    engine = _engine(target, lambda module: write_gemm(module, "gemm", None, PairPanels()))

    def product(M: int, N: int, K: int, matrices: int) -> tuple[Run, int]:
        rng = np.random.default_rng(0)
        a = rng.standard_normal((M, K)).astype(DataType.BFLOAT16.numpy).view(np.uint16)
        panels = _beside(pack_pairs(rng.standard_normal((K, N)).astype(np.float32), tiling(target).panel), matrices)
        params = GemmParams.blocked(target, M, N * matrices, K // 2)
        return _run(engine, a, panels, (M, N * matrices), params.words(), params.tasks(), M * N * K * matrices)

    return Kind("bfloat16", pair_dots(target), 1, product)


def decoded_kind(target: Target, block: int) -> Kind:
    """Weights of 4 bits, decoded to float32."""
    layout = BlockPanels(4, block, None)
    engine = _engine(target, lambda module: write_gemm(module, "gemm", None, layout))
    digits = _engine(target, lambda module: _write_digits(module, layout)) if has_dot4(target) else None

    def product(M: int, N: int, K: int, matrices: int) -> tuple[Run, int]:
        a = np.random.default_rng(0).standard_normal((M, K)).astype(np.float32)
        width = tiling(target).panel
        panels = _beside(_packed(layout, N, K, width), matrices)
        if M == 1 and digits is not None:
            blocks = K // block
            cut, one = np.zeros((blocks, digit_bytes(block)), np.uint8), DigitParams(1, N * matrices, blocks, K)
            Run(digits, "digits", [a, cut], QuantizeParams(K, blocks).words(), blocks, 0).gigaflops()
            return _run(digits, cut, panels, (1, N * matrices), one.words(), one.tasks(width), N * K * matrices)
        params = GemmParams.blocked(target, M, N * matrices, K, is_decoded=True)
        return _run(engine, a, panels, (M, N * matrices), params.words(), params.tasks(), M * N * K * matrices)

    return Kind(f"4 bits, {block} a block", multiply_adds(target), 2, product)


def _write_digits(module: Module, layout: BlockPanels) -> None:
    write_digits(module, "digits", layout.block_size)
    write_digit_blocks(module, "gemm", layout)


def bytes_kind(target: Target, block: int) -> Kind:
    """Weights of 4 bits by rows of 8 bits."""
    layout = BlockPanels(4, block, None)
    engine = _engine(target, lambda module: write_dot_blocks(module, "gemm", layout))

    def product(M: int, N: int, K: int, matrices: int) -> tuple[Run, int]:
        rng, blocks, width = np.random.default_rng(0), K // block, tiling(target).panel
        a = rng.integers(0, 256, (M, blocks, q_bytes(block))).astype(np.uint8)
        a[..., :4], a[..., 4:8] = np.ones(1, np.float32).view(np.uint8), np.ones(1, np.int32).view(np.uint8)
        panels, params = _beside(_packed(layout, N, K, width), matrices), DotParams(M, N * matrices, blocks)
        return _run(engine, a, panels, (M, N * matrices), params.words(), params.tasks(width), M * N * K * matrices)

    return Kind(f"4 bits by bytes, {block} a block", byte_dots(target)[0], 1, product)


def _engine(target: Target, write: Callable[[Module], None]) -> Engine:
    module, engine = Module(target), Engine(target)
    write(module)
    engine.add(module)
    return engine


def _packed(layout: BlockPanels, N: int, K: int, width: int) -> Array:
    """Weights of 4 bits."""
    rng, blocks = np.random.default_rng(0), K // layout.block_size
    scales = np.full((N, blocks), 1e-3, np.float32)

    def numbers(part: slice) -> Array:
        return rng.integers(0, 16, (part.stop - part.start, blocks, layout.block_size), np.uint8)

    return layout.pack(numbers, scales, None, width)


def _beside(panels: Array, matrices: int) -> Array:
    return panels if matrices == 1 else np.tile(panels, (matrices, *(1,) * (panels.ndim - 1)))


def _run(
    engine: Engine, a: Array, panels: Array, size: tuple[int, int], params: list[int], tasks: int, count: int
) -> tuple[Run, int]:
    result = np.zeros(size, np.float32)
    return Run(engine, "gemm", [aligned(a), aligned(panels), aligned(result)], params, tasks, count), panels.nbytes


def reading_run(target: Target, size_bytes: int) -> Run:
    """Reading memory, in bytes."""
    module, engine, lanes, task_bytes = Module(target), Engine(target), target.lanes(32), 1 << 20
    with module.kernel("read") as b:
        sums = [b.variable(b.const(I32.vector(lanes), place)) for place in range(8)]
        words = task_bytes // 4
        with b.loop(b.begin * words, b.end * words, 8 * lanes) as at:
            for place, total in enumerate(sums):
                total.set(total.value ^ b.buffer(0, I32).load(at + place * lanes, lanes))
        for place, total in enumerate(sums):
            b.buffer(1, I32).store(total.value, place * lanes, lanes)
    engine.add(module)
    memory, room = aligned(np.ones(size_bytes // 4, np.int32)), aligned(np.zeros(8 * 16, np.int32))
    return Run(engine, "read", [memory, room], [0], size_bytes // task_bytes, size_bytes)


def report(kind: Kind, reading: Run, weights_mib: int, rounds: int) -> None:
    """Print a table."""
    one_bytes = kind.product(1, _SIDE, _SIDE, 1)[1]
    row, row_bytes = kind.product(1, _SIDE, _SIDE, max(1, weights_mib * (1 << 20) // one_bytes))
    runs = {"peak": kind.peak, "reading": reading, "row": row}
    runs.update({str(shape): kind.product(*shape, 1)[0] for shape in _SHAPES})
    best = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        best = {name: max(best[name], run.gigaflops()) for name, run in runs.items()}
    peak = best["peak"] / kind.operations
    print(f"{kind.name}: {peak:.0f} G multiply-adds/s on registers")
    for shape in _SHAPES:
        print(f"{shape!s:>22}  {best[str(shape)]:7.0f} G/s  {best[str(shape)] / peak:6.1%} of the peak")
    matrices = row_bytes // one_bytes
    speed = best["row"] * row_bytes / (_SIDE * _SIDE * matrices)
    print(
        f"{'one row, 4096 x 4096':>22}  {speed:7.1f} GB/s  {speed / best['reading']:6.1%} of reading, {best['reading']:.1f} GB/s",
        flush=True,
    )


def main() -> None:
    """Measure each kind in rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa")
    parser.add_argument("--weights-mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    target = host_target(options.isa)
    reading = reading_run(target, options.weights_mib << 20)
    print(target.isa)
    kinds = [pairs_kind(target), *(make(target, block) for make in (decoded_kind, bytes_kind) for block in _BLOCKS)]
    for kind in kinds:
        report(kind, reading, options.weights_mib, options.rounds)


if __name__ == "__main__":
    main()
