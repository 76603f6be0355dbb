"""How long loading takes beyond protobuf's own parse.

    python benchmarks/load.py [MODEL.onnx ...] [--rounds 15]

Without models it takes those that zoo.py makes.

For each model, in turn and in this process: protobuf parses the bytes that `load` gives it (the file without its large weights),
and `load` reads the file and its nodes are walked. Reported are medians in milliseconds, by the wall clock and by the processor's
time, which other programs disturb less. The bar: at most 40 ms beyond the parse for graphs of a few thousand nodes.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from onnx import ModelProto
from zoo import add_options, files

from sardonyx.formats.files import open_content
from sardonyx.formats.onnx import load
from sardonyx.formats.wire import strip
from sardonyx.ir.walk import all_nodes

BAR_MS = 40.0


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds that `work` takes, by the wall clock and by the processor's time."""
    gc.collect()
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    took = (time.perf_counter() - wall) * 1e3, (time.process_time() - processor) * 1e3
    del result
    return took


def medians(samples: list[tuple[float, float]]) -> tuple[float, float]:
    """The median of each of the two clocks."""
    walls, processors = zip(*samples, strict=True)
    return statistics.median(walls), statistics.median(processors)


def report(path: Path, rounds: int) -> bool:
    """Measure one model, print a line, and say whether it meets the bar."""
    data, _ = open_content(path, "model")
    stripped = strip(data)
    content = bytes(data.read(0, len(data))) if stripped is None else stripped.data

    def parse() -> object:
        proto = ModelProto()
        proto.ParseFromString(content)
        return proto

    def load_and_walk() -> object:
        model = load(path)
        return model, sum(1 for _ in all_nodes(model))

    nodes = sum(1 for _ in all_nodes(load(path)))
    parses, loads = [], []
    for _ in range(rounds):
        parses.append(measure(parse))
        loads.append(measure(load_and_walk))
    (parse_wall, parse_processor), (load_wall, load_processor) = medians(parses), medians(loads)
    beyond, beyond_processor = load_wall - parse_wall, load_processor - parse_processor
    verdict = "ok" if beyond <= BAR_MS else "ABOVE THE BAR"
    times = f"{parse_wall:8.1f} {load_wall:8.1f} {beyond:8.1f} {beyond_processor:10.1f}"
    print(f"{path.name:28} {nodes:6} {len(data) / 2**20:10.1f} {times}  {verdict}")
    return beyond <= BAR_MS


def main() -> int:
    """Measure the models named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="files, or names of models of zoo.py; all that are made there by default")
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print(f"bar: {BAR_MS:.0f} ms beyond protobuf's parse; median of {arguments.rounds} rounds, ms")
    print(f"{'model':28} {'nodes':>6} {'file MiB':>10} {'parse':>8} {'load':>8} {'beyond':>8} {'beyond cpu':>10}")
    met = [report(path, arguments.rounds) for path in files(arguments)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
