"""What fraction of a core's peak do the fp32 products reach?

    taskset -c 0 python benchmarks/gemm.py [LEVEL ...]

For each instruction set level: the multiply-adds that the core does on registers alone, then the kernel on a list of shapes,
in GFLOP/s and as a share of that peak. Medians over rounds in which peak and shapes take turns; others may use the machine.
"""

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable

import numpy as np

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.gemm import gemm_symbol, tiling, write_gemm
from sardonyx.codegen.kernels.gemm_params import GemmParams
from sardonyx.codegen.kernels.pack import pack_columns
from sardonyx.codegen.kernels.peak import write_multiply_adds
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, host_target
from sardonyx.dtypes import Array

SHAPES = [
    (128, 768, 768),
    (128, 3072, 768),
    (128, 768, 3072),
    (197, 768, 768),
    (1024, 1024, 1024),
    (3136, 64, 64),
    (3136, 256, 64),
    (784, 512, 128),
    (196, 1024, 256),
    (49, 2048, 512),
    (3136, 64, 576),
    (1, 768, 768),
]
ROUNDS = 15
KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def aligned(array: Array) -> Array:
    """A copy that begins at a cache line."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    copy = raw[skip : skip + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def seconds(call: Callable[[], None]) -> float:
    """Processor time per call of one thread, over enough calls to last 5 ms."""
    call()
    calls, elapsed = 1, 0.0
    while elapsed < 5e-3:
        start = time.thread_time()
        for _ in range(calls):
            call()
        elapsed = time.thread_time() - start
        calls *= 2
    return elapsed / (calls // 2)


class Run:
    """A kernel with all that it works on, which lives as long as this."""

    def __init__(self, engine: Engine, symbol: str, arrays: list[Array], params: list[int], tasks: int, operations: int) -> None:
        self._kept = (engine, arrays)
        self._kernel = KERNEL(engine.address(symbol))
        self._buffers = np.array([array.ctypes.data for array in arrays], np.int64)
        self._params = np.array(params, np.int64)
        self._tasks = tasks
        self._operations = operations

    def gigaflops(self) -> float:
        """Measure the speed once."""
        buffers, params = self._buffers.ctypes.data, self._params.ctypes.data
        return self._operations / seconds(lambda: self._kernel(buffers, params, 0, self._tasks)) / 1e9


def peak_run(target: Target) -> Run:
    """Multiply-adds on registers."""
    module, engine = Module(target), Engine(target)
    operations = write_multiply_adds(module, "peak")
    engine.add(module)
    data = aligned(np.zeros(16 * 64, np.float32))
    return Run(engine, "peak", [data, data], [1], 10_000, operations * 10_000)


def gemm_run(engine: Engine, M: int, N: int, K: int) -> Run:
    """One product."""
    rng = np.random.default_rng(0)
    a, c = aligned(rng.standard_normal((M, K)).astype(np.float32)), aligned(np.zeros((M, N), np.float32))
    b = aligned(pack_columns(rng.standard_normal((K, N)).astype(np.float32), tiling(engine.target).panel))
    params = GemmParams.blocked(engine.target, M, N, K)
    return Run(engine, gemm_symbol(engine.target), [a, b, c], params.words(), params.tasks(), 2 * M * N * K)


def report(level: str) -> None:
    """Print the table of one level."""
    target = host_target(level)
    module, engine = Module(target), Engine(target)
    write_gemm(module, gemm_symbol(target))
    start = time.perf_counter()
    engine.add(module)
    print(f"{gemm_symbol(target)}: compiled in {(time.perf_counter() - start) * 1e3:.0f} ms")
    peak, runs = peak_run(target), [gemm_run(engine, *shape) for shape in SHAPES]
    peaks: list[float] = []
    speeds: list[list[float]] = [[] for _ in SHAPES]
    for _ in range(ROUNDS):
        peaks.append(peak.gigaflops())
        for speed, run in zip(speeds, runs, strict=True):
            speed.append(run.gigaflops())
    top = statistics.median(peaks)
    print(f"  {'multiply-adds on registers':>26} {top:7.0f} GFLOP/s (best {max(peaks):.0f})")
    for shape, speed in zip(SHAPES, speeds, strict=True):
        middle = statistics.median(speed)
        print(f"  {'x'.join(map(str, shape)):>26} {middle:7.0f} GFLOP/s {middle / top:7.1%} (best {max(speed):.0f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help=f"of {', '.join(available_levels())}; all of them by default")
    levels = parser.parse_args().levels
    if unknown := set(levels) - set(available_levels()):
        parser.error(f"this processor has {', '.join(available_levels())}, not {', '.join(sorted(unknown))}")
    for name in levels or available_levels():
        report(name)
