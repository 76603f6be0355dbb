"""How long the optimization of a model takes, and what takes it.

    python benchmarks/optimize.py MODEL.onnx ... [--level 1] [--rounds 5] [--passes]

Each model is loaded anew for each round, as optimization changes it. Reported are the nodes before and after and the median time
in milliseconds, shape inference and constant folding included; `--passes` adds the report of the last round. The bar, at the
basic level: 0.4 s for 1,645 nodes (gpt2), 1 s for 4,584 (llama_0p5b).
"""

from __future__ import annotations

import argparse
import gc
import statistics
from pathlib import Path

from sardonyx.formats.onnx import load
from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.report import Report
from sardonyx.providers.reference.provider import evaluate


def measure(path: Path, level: int, rounds: int) -> list[Report]:
    """Optimize the model of a file again and again."""
    reports = []
    for _ in range(rounds):
        model = load(path)
        gc.collect()
        reports.append(optimize(model, level, evaluate=evaluate))
    return reports


def main() -> None:
    """Measure the models that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passes", action="store_true")
    arguments = parser.parse_args()
    print(f"{'model':28} {'nodes':>6} {'after':>6} {'ms':>8}")
    for path in arguments.models:
        reports = measure(path, arguments.level, arguments.rounds)
        median_ms = statistics.median(report.seconds for report in reports) * 1e3
        print(f"{path.name:28} {reports[-1].nodes_before:6} {reports[-1].nodes_after:6} {median_ms:8.1f}")
        if arguments.passes:
            print(reports[-1])


if __name__ == "__main__":
    main()
