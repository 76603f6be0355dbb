"""The reference provider against ONNX Runtime, one thread each: is the fallback slow?

    python benchmarks/reference.py [--zoo FOLDER] [MODEL ...]

Both engines run in processes of their own and take turns; a ratio is the median over rounds of ours / theirs. The zoo is a
folder with `materialize.py`, which makes models and inputs. Bars: bert_base 3x, resnet50 8x.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

BARS = {"bert_base": 3.0, "resnet50": 8.0}
ROUNDS, RUNS = 7, 3


def serve(pipe: Connection, engine: str, path: str, zoo: str, name: str) -> None:
    """Answer each message with the median time of `RUNS` runs in seconds."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", ORT_DISABLE_TELEMETRY="1")
    sys.path.insert(0, zoo)
    import materialize

    feed = next(iter(materialize.inputs(name, 0).values()))
    if engine == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    else:
        import sardonyx

        session = sardonyx.InferenceSession(path, providers=["ReferenceExecutionProvider"])
    session.run(None, feed)
    while pipe.recv():
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            session.run(None, feed)
            times.append(time.perf_counter() - start)
        pipe.send(statistics.median(times))


def compare(path: str, zoo: str, name: str) -> tuple[float, float, float]:
    """(median seconds of ours, of theirs, median ratio)."""
    context = multiprocessing.get_context("spawn")
    pipes = []
    for engine in ("sardonyx", "onnxruntime"):
        ours, theirs = context.Pipe()
        context.Process(target=serve, args=(theirs, engine, path, zoo, name), daemon=True).start()
        pipes.append(ours)
    rounds: list[list[float]] = []
    for _ in range(ROUNDS):
        answers = []
        for pipe in pipes:
            pipe.send(True)
            answers.append(pipe.recv())
        rounds.append(answers)
    for pipe in pipes:
        pipe.send(False)
    ours_s, theirs_s = (statistics.median(column) for column in zip(*rounds, strict=True))
    return ours_s, theirs_s, statistics.median(ours / theirs for ours, theirs in rounds)


def main() -> None:
    """Print one line per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(BARS))
    parser.add_argument("--zoo", default=str(Path(__file__).resolve().parents[2] / "shared" / "zoo"))
    parser.add_argument("--cache", default=os.environ.get("SARDONYX_ZOO", str(Path(tempfile.gettempdir()) / "sardonyx-zoo")))
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.zoo)
    import materialize

    for name in arguments.models:
        path = materialize.materialize(name, arguments.cache)
        ours, theirs, ratio = compare(path, arguments.zoo, name)
        bar = f" (bar {BARS[name]:g})" if name in BARS else ""
        print(f"{name}: {1e3 * ours:.1f} ms, onnxruntime {1e3 * theirs:.1f} ms, x{ratio:.2f}{bar}", flush=True)


if __name__ == "__main__":
    main()
