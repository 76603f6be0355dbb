"""How long sessions take to make, and how much memory, at the peak and afterwards.

    python benchmarks/session_memory.py MODEL.onnx ... [--rounds 3]

Each session is made in a process of its own, whose kernels are in the object cache already. Reported are the median time of
creation, and in MiB, beyond what the process had before: the peak while the session is made, what stays resident (all of it, and
what is the process's own, not pages of files), and the weights of the model. The bar: a peak of at most 64 MiB for the graph and
the optimizer, and 115 % of the weights, or of what stays where that is more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

MIB = 2**20


def memory() -> dict[str, int]:
    """The process's memory in bytes by the names that Linux has for it."""
    lines = (line.split() for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return {words[0][:-1]: int(words[1]) * 1024 for words in lines if words[0] in ("VmHWM:", "VmRSS:", "RssAnon:", "RssFile:")}


def measure(path: str) -> dict[str, float]:
    """Make one session in this process: seconds, and bytes by name."""
    import sardonyx

    small = "graph(x: float[n]) -> (y: float[n]) {\ny = Relu(x)\n}"
    from sardonyx.formats.onnx import to_bytes
    from sardonyx.ir import Model
    from sardonyx.ir.text import parse_graph

    sardonyx.InferenceSession(to_bytes(Model(parse_graph(small), {"": 20})))  # imports, threads
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before, start = memory(), time.perf_counter()
    session = sardonyx.InferenceSession(path)
    seconds, after = time.perf_counter() - start, memory()
    del session
    return {"seconds": seconds, "peak": after["VmHWM"] - before["VmRSS"]} | {key: after[key] - before[key] for key in after}


def weights_bytes(path: Path) -> int:
    """The size of the model with its data files."""
    return sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}.data")) if file.exists())


def report(path: Path, rounds: int) -> bool:
    """Measure one model in fresh processes, print a line, and return whether it meets the bar."""
    found = []
    for _ in range(rounds + 1):
        command = [sys.executable, __file__, str(path), "--once"]
        found.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    seconds = statistics.median(one["seconds"] for one in found[1:])
    peak, resident, own = (statistics.median(one[key] for one in found[1:]) / MIB for key in ("peak", "VmRSS", "RssAnon"))
    weights = weights_bytes(path) / MIB
    met = peak <= max(weights, resident) * 1.15 + 64
    numbers = f"{seconds:9.3f} {weights:9.1f} {peak:9.1f} {resident:9.1f} {own:9.1f}"
    print(f"{path.name:28} {numbers}  {'ok' if met else 'ABOVE THE BAR'}", flush=True)
    return met


def main() -> int:
    """Measure the models named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", action="store_true", help="make one session here and print the numbers as JSON")
    arguments = parser.parse_args()
    if arguments.once:
        print(json.dumps(measure(str(arguments.models[0]))))
        return 0
    print(f"{'model':28} {'seconds':>9} {'weights':>9} {'peak':>9} {'stays':>9} {'own':>9}")
    met = [report(path, arguments.rounds) for path in arguments.models]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
