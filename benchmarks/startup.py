"""How long models take until they are there, beside onnxruntime where it is installed.

    python benchmarks/startup.py                                       models that it makes (zoo.py)
    python benchmarks/startup.py MODEL.onnx [MODEL.onnx ...] [--rounds 7]
    python benchmarks/startup.py --zoo FOLDER mlp_tabular resnet50

For each model, in turns with onnxruntime and by the least of the rounds, in seconds of the wall clock:

    start      a process from its start to the first result, `python -c` and all
    session    `InferenceSession` in a new process, with a warm cache
    second     `InferenceSession` in a process that has a session of the model
    again      the same where the session before is gone

The first process of ours fills the cache, and is not counted. Feeds are of ones, where sizes are open of size 1. The bars: 1.3 for
the start of a small model, 0.5 for sessions of large ones, 1.0 for the geometric mean of second sessions.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import subprocess
import sys
import time
from pathlib import Path

from zoo import add_options, files

PHASES = ("start", "session", "second", "again")
_FEED = """
KINDS = {"float": "f4", "double": "f8", "float16": "f2", "int64": "i8", "int32": "i4", "bool": "?"}
def feed_of(session):
    feed = {}
    for item in session.get_inputs():
        sizes = [size if isinstance(size, int) else 1 for size in item.shape]
        feed[item.name] = np.ones(sizes, KINDS[item.type[len("tensor("):-1]])
    return feed
"""
_START = """
import numpy as np, {package} as api
{feed}
session = api.InferenceSession({path!r}, providers=["CPUExecutionProvider"])
session.run(None, feed_of(session))
"""
_SESSIONS = """
import time
import numpy as np, {package} as api
def made():
    begin = time.perf_counter()
    session = api.InferenceSession({path!r}, providers=["CPUExecutionProvider"])
    return session, time.perf_counter() - begin
held, first = made()
second = min(made()[1] for _ in range(5))
del held
again = []
for _ in range(5):
    held, took = made()
    again.append(took)
    del held
print(first, second, min(again))
"""


def run(code: str) -> str:
    """What a new process of Python prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def measure(package: str, path: str) -> tuple[float, ...]:
    """Seconds of each of the phases."""
    begin = time.perf_counter()
    run(_START.format(package=package, path=path, feed=_FEED))
    start = time.perf_counter() - begin
    return start, *map(float, run(_SESSIONS.format(package=package, path=path)).split())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="files or names of models")
    parser.add_argument("--rounds", type=int, default=7)
    add_options(parser)
    options = parser.parse_args()
    packages = ["sardonyx", *(["onnxruntime"] if importlib.util.find_spec("onnxruntime") is not None else [])]
    print(f"{'model':24}{'package':>14}" + "".join(f"{phase:>10}" for phase in PHASES))
    ratios: list[list[float]] = []
    for path in map(os.path.abspath, files(options)):
        run(_START.format(package="sardonyx", path=path, feed=_FEED))
        found = {package: [math.inf] * len(PHASES) for package in packages}
        for _ in range(options.rounds):
            for package in packages:
                found[package] = list(map(min, found[package], measure(package, path)))
        for package in packages:
            print(f"{Path(path).stem:24}{package:>14}" + "".join(f"{seconds:10.4f}" for seconds in found[package]), flush=True)
        if len(packages) > 1:
            ratios.append([own / peer for own, peer in zip(*found.values(), strict=True)])
            print(f"{'':24}{'ratio':>14}" + "".join(f"{ratio:10.2f}" for ratio in ratios[-1]), flush=True)
    if len(ratios) > 1:
        means = [math.exp(sum(map(math.log, column)) / len(column)) for column in zip(*ratios, strict=True)]
        print(f"{'geometric mean':24}{'ratio':>14}" + "".join(f"{mean:10.2f}" for mean in means))


if __name__ == "__main__":
    main()
