"""What does a run cost besides its kernels?

    python benchmarks/driver.py

Tiny steps from Python (one, and a hundred in a table), parallel regions with awake and with sleeping workers, and how long the
native side takes to compile and to load from the object cache.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.step_table import Buffer, KernelCall, StepTable
from sardonyx.codegen.target import host_target
from sardonyx.disk_cache import DiskCache


def best_us(call: Callable[[], object], calls: int, rounds: int = 20) -> float:
    """Microseconds per call, in the best of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls)
    return min(times) * 1e6


def main() -> None:
    """Print all figures."""
    target = host_target()
    module, engine = Module(target), Engine(target)
    with module.kernel("increase") as b:
        array = b.buffer(0, F32)
        for i, span in b.vectors(0, b.param(0), F32):
            array.store(array.load(i, span) + 1, i, span)
    engine.add(module)
    with tempfile.TemporaryDirectory() as folder:
        for state in ("compiled", "loaded"):
            start = time.perf_counter()
            driver = Driver(target, cache=DiskCache(Path(folder) / "objects"))
            print(f"{'driver ' + state:>44} {(time.perf_counter() - start) * 1e3:8.1f} ms")
    data = np.zeros(64, np.float32)

    def table(steps: int, tasks: int, threads: int) -> StepTable:
        made = StepTable([KernelCall(engine.address("increase"), [Buffer(1)], [6], tasks)] * steps, 1, threads=threads)
        made.set_bases([data.ctypes.data])
        return made

    print(f"{'table of 100 steps made':>44} {best_us(lambda: table(100, 1, 1), 10):8.1f} us")
    one = table(1, 1, 1)
    print(f"{'bases set':>44} {best_us(lambda: one.set_bases([0]), 1000):8.2f} us")
    for steps in (1, 100):
        print(f"{f'run of {steps} steps':>44} {best_us(driver.prepare(table(steps, 1, 1)), 1000):8.2f} us")
    regions = driver.prepare(table(1000, 8, 2))
    print(f"{'parallel region, workers awake':>44} {best_us(regions, 10) / 1000:8.2f} us")
    single, waits = driver.prepare(table(1, 8, 2)), []
    for _ in range(10):
        time.sleep(0.05)
        start = time.perf_counter()
        single()
        waits.append(time.perf_counter() - start)
    print(f"{'parallel region, workers asleep (median)':>44} {sorted(waits)[5] * 1e6:8.1f} us")


if __name__ == "__main__":
    main()
