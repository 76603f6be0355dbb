"""How long the optimization of a model takes, and what takes it.

    python benchmarks/optimize.py [MODEL.onnx ...] [--level 99] [--rounds 5] [--passes] [--peer]

Without models it takes those that zoo.py makes.

Each model is loaded anew for each round, as optimization changes it. Reported are the nodes before and after and the median time
in milliseconds of the process, shape inference and constant folding included; `--passes` adds the report of the last round. The
bar, with `--peer`: the whole pipeline takes no longer than ONNX Runtime's session creation on one thread (gpt2, llama_0p5b,
sd_unet_small).
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from pathlib import Path

from zoo import add_options, files

from sardonyx.formats.onnx import load
from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.report import Report
from sardonyx.providers.reference.provider import evaluate


def measure(path: Path, level: int, rounds: int) -> tuple[list[float], Report]:
    """Optimize the model of a file again and again; the processor times in milliseconds, and the last report."""
    times = []
    for _ in range(rounds):
        model = load(path)
        gc.collect()
        start = time.process_time()
        report = optimize(model, level, evaluate=evaluate)
        times.append((time.process_time() - start) * 1e3)
    return times, report


def creation_ms(path: Path, rounds: int) -> float:
    """The median processor time of ONNX Runtime's session creation, on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    times = []
    for _ in range(rounds):
        start = time.process_time()
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    """Measure the models that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="files, or names of models of zoo.py; all that are made there by default")
    add_options(parser)
    parser.add_argument("--level", type=int, default=99)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passes", action="store_true")
    parser.add_argument("--peer", action="store_true")
    arguments = parser.parse_args()
    print(f"{'model':28} {'nodes':>6} {'after':>6} {'ms':>8}{' peer ms':>9}")
    for path in files(arguments):
        times, report = measure(path, arguments.level, arguments.rounds)
        peer = f" {creation_ms(path, arguments.rounds):8.1f}" if arguments.peer else ""
        print(f"{path.name:28} {report.nodes_before:6} {report.nodes_after:6} {statistics.median(times):8.1f}{peer}")
        if arguments.passes:
            print(report)


if __name__ == "__main__":
    main()
