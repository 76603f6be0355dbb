"""What a run costs before any arithmetic, what a new shape costs, what a session costs, what the import costs.

    taskset -c 0 python benchmarks/overhead.py [--zoo FOLDER]        (see zoo.py)

A session's time is that of making it, in a fresh process that has imported sardonyx; "to the first result" counts from the start of
that process to the end of its first run.

Bars, those of models for a zoo's: one node 1 us a run, a chain of 100 element-wise nodes 2.5 us, one node with bound inputs and
outputs 0.7 us; a new sequence length of bert_base 3 ms, a new batch size of resnet50 2 ms; a session of resnet50 1.5 s with an
empty object cache and 0.5 s with a warm one; `import sardonyx` 150 ms, and 50 ms above `import numpy`.
"""

from __future__ import annotations

import argparse
import functools
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from zoo import Zoo, add_options

from sardonyx.session.draw.feeds import random_feeds

SESSION = """
import pickle, sys, time
import sardonyx
options = sardonyx.SessionOptions()
options.intra_op_num_threads = 1
start = time.perf_counter()
session = sardonyx.InferenceSession(sys.argv[1], options)
print(time.perf_counter() - start)
session.run(None, pickle.load(open(sys.argv[2], "rb")))
"""


def fastest_us(run: Callable[[], Any], rounds: int = 30, runs: int = 500) -> float:
    """The least mean time of a round, in microseconds: what the machine's other work does not disturb."""
    best = 1e9
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(runs):
            run()
        best = min(best, (time.perf_counter() - start) / runs)
    return 1e6 * best


def small_models() -> None:
    """One node, and a chain of 100."""
    from sardonyx import GraphOptimizationLevel, InferenceSession, OrtValue, SessionOptions
    from sardonyx.formats.onnx import to_bytes
    from sardonyx.ir.text import parse_model

    head = "ir_version 10\nopset 21\ngraph main(v0: float[3, 2]) -> (y: float[3, 2]) {\n"
    chain = "".join(f"v{i + 1} = {'Relu' if i % 2 else 'Neg'}(v{i})\n" for i in range(99))
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    feed = {"v0": np.zeros((3, 2), np.float32)}
    for label, body, bar in (("one node", "y = Relu(v0)\n", 1), ("a chain of 100 nodes", f"{chain}y = Neg(v99)\n", 2.5)):
        session = InferenceSession(to_bytes(parse_model(f"{head}{body}}}")), options)
        binding = session.io_binding()
        binding.bind_cpu_input("v0", feed["v0"])
        binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(np.zeros((3, 2), np.float32)))
        ways: dict[str, tuple[Callable[[], Any], float]] = {
            "run(None, feed)": (functools.partial(session.run, None, feed), bar),
            "run(['y'], feed)": (functools.partial(session.run, ["y"], feed), bar),
            "run_with_iobinding": (functools.partial(session.run_with_iobinding, binding), 0.7),
        }
        for way, (run, limit) in ways.items():
            for _ in range(3):
                run()
            print(f"{label}, {way}: {fastest_us(run):.2f} us (bar {limit})")


def new_shapes(path: Path, label: str, feeds: list[dict[str, Any]], bar_ms: float) -> None:
    """What binding a new shape costs, as the runtime's own trace says."""
    from sardonyx import InferenceSession, SessionOptions
    from sardonyx.trace import Event, observe

    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(path, options)
    session.run(None, feeds[0])
    seen: list[Event] = []
    with observe(seen.append):
        for feed in feeds[1:]:
            session.run(None, feed)
    costs = [event.duration_ns / 1e6 for event in seen if event.name == "runtime.bind"]
    print(f"{label}: binding a new shape takes {statistics.median(costs):.2f} ms (bar {bar_ms:g})")


def sessions(path: Path, feed: dict[str, Any]) -> None:
    """In fresh processes: with an empty cache, then with what that left."""
    with tempfile.TemporaryDirectory() as folder:
        fed = Path(folder) / "feed"
        fed.write_bytes(pickle.dumps(feed))
        environment = os.environ | {"SARDONYX_CACHE_DIR": str(Path(folder) / "cache")}
        for label, bar in (("empty object cache", 1.5), ("warm object cache", 0.5)):
            command = [sys.executable, "-c", SESSION, str(path), str(fed)]
            times, whole = [], []
            for _ in range(1 if bar == 1.5 else 5):
                start = time.perf_counter()
                times.append(float(subprocess.run(command, env=environment, capture_output=True, check=True).stdout))
                whole.append(time.perf_counter() - start)
            session_s, first_s = statistics.median(times), statistics.median(whole)
            print(f"a session of {path.stem}, {label}: {session_s:.2f} s (bar {bar:g}); to the first result {first_s:.2f} s")


def imports() -> None:
    """In fresh processes, taking turns."""
    code = (
        "import time as t; a = t.perf_counter(); import numpy; b = t.perf_counter(); import sardonyx; "
        "print(b - a, t.perf_counter() - b)"
    )
    pairs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split() for _ in range(9)]
    numpy_ms, ours_ms = (1e3 * statistics.median(float(pair[side]) for pair in pairs) for side in (0, 1))
    print(f"import sardonyx: {numpy_ms + ours_ms:.0f} ms, {ours_ms:.0f} above numpy (bars 150 and 50)")


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    arguments = parser.parse_args()
    small_models()
    imports()
    zoo = Zoo(arguments.zoo, arguments.cache)
    words, images = ("bert_base", "resnet50") if arguments.zoo else ("encoder", "resnet")
    lengths = (16, 17, 24, 31, 33, 40, 47, 64, 65, 80)
    tokens = [random_feeds(zoo.path(words), dims={"sequence": length}) for length in lengths]
    new_shapes(zoo.path(words), f"{words}, sequence length", tokens, 3)
    batches = [random_feeds(zoo.path(images), dims={"batch": size}) for size in (1, 2, 3, 4)]
    new_shapes(zoo.path(images), f"{images}, batch size", batches, 2)
    sessions(zoo.path(images), batches[0])


if __name__ == "__main__":
    main()
