"""Whole models against ONNX Runtime on the same machine: time, memory, time to load.

    python benchmarks/models.py                                     three models that it makes, CPU provider, one thread
    python benchmarks/models.py --zoo FOLDER [--threads 2]          the dense fp32 models of a zoo (see zoo.py)
    python benchmarks/models.py --zoo FOLDER --provider ReferenceExecutionProvider bert_base resnet50

Each engine runs in a process of its own; the processes take turns, round by round. A ratio is the median over rounds of
ours / theirs. The first input case of each model is run. "first result" is from the start of the process to the end of the first
run: Python, imports, loading and compilation, or the cache of kernels, included.

Bars: CPU provider, one thread: geometric mean 0.90, no model above 1.10; two threads: 0.90 and 1.15; peak memory 1.1x.
Reference provider, one thread: bert_base 3x, resnet50 8x.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from zoo import OWN, Zoo, add_options

DENSE = (
    "resnet18_bn resnet50 mobilenet_v2 mobilenet_v3_large efficientnet_b0 convnext_tiny vit_base unet espcn_x3 edsr_x2 kws_conv1d "
    "digits_cnn bert_base distilbert wav2vec2_6l mlp_tabular dlrm_small yolov8s_raw"
).split()
ROUNDS, ROUND_SECONDS = 7, 0.3
PAUSE_SECONDS = 0.1
"""Threads of the other engine spin for a while after its last run."""
WARM_RUNS = 3
"""The second run of a session imports what its native call needs."""


def peak_mib() -> float:
    """Peak resident memory of this process in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def serve(pipe: Connection, engine: str, path: str, feed: dict[str, Any], threads: int, provider: str) -> None:
    """Load a model, then answer each message with (median seconds of a run, peak MiB)."""
    os.environ.update(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), ORT_DISABLE_TELEMETRY="1")
    package = __import__(engine)
    options = package.SessionOptions()
    options.intra_op_num_threads = threads
    session = package.InferenceSession(path, options, providers=[provider if engine == "sardonyx" else "CPUExecutionProvider"])
    session.run(None, feed)
    pipe.send("ready")
    for _ in range(WARM_RUNS):
        start = time.perf_counter()
        session.run(None, feed)
    runs = max(1, min(200, int(ROUND_SECONDS / (time.perf_counter() - start))))
    while pipe.recv():
        times = []
        time.sleep(PAUSE_SECONDS)
        session.run(None, feed)
        for _ in range(runs):
            start = time.perf_counter()
            session.run(None, feed)
            times.append(time.perf_counter() - start)
        pipe.send((statistics.median(times), peak_mib()))


def compare(path: Path, feed: dict[str, Any], name: str, arguments: argparse.Namespace) -> tuple[float, str]:
    """(median ratio, a line that says all)."""
    context = multiprocessing.get_context("spawn")
    pipes, firsts = [], []
    for engine in ("sardonyx", "onnxruntime"):
        ours, theirs = context.Pipe()
        start = time.perf_counter()
        rest = (str(path), feed, arguments.threads, arguments.provider)
        context.Process(target=serve, args=(theirs, engine, *rest), daemon=True).start()
        pipes.append(ours)
        ours.recv()
        firsts.append(time.perf_counter() - start)
    rounds: list[list[tuple[float, float]]] = []
    for _ in range(ROUNDS):
        answers = []
        for pipe in pipes:
            pipe.send(True)
            answers.append(pipe.recv())
        rounds.append(answers)
    for pipe in pipes:
        pipe.send(False)
    ratio = statistics.median(ours[0] / theirs[0] for ours, theirs in rounds)
    ours_ms, theirs_ms = (1e3 * statistics.median(answers[side][0] for answers in rounds) for side in (0, 1))
    ours_mib, theirs_mib = (rounds[-1][side][1] for side in (0, 1))
    return ratio, (
        f"{name:20s} {ours_ms:9.3f} ms, onnxruntime {theirs_ms:9.3f} ms, x{ratio:.2f}; "
        f"peak {ours_mib:.0f} MiB, {theirs_mib:.0f} MiB, x{ours_mib / theirs_mib:.2f}; "
        f"first result after {firsts[0]:.2f} s, {firsts[1]:.2f} s"
    )


def main() -> None:
    """Print one line per model, and the geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--provider", default="CPUExecutionProvider")
    add_options(parser)
    arguments = parser.parse_args()
    zoo = Zoo(arguments.zoo, arguments.cache)
    ratios = []
    for name in arguments.models or (DENSE if arguments.zoo else OWN):
        ratio, line = compare(zoo.path(name), zoo.feed(name), name, arguments)
        ratios.append(ratio)
        print(line, flush=True)
    print(f"geometric mean x{math.exp(statistics.fmean(map(math.log, ratios))):.3f}, worst x{max(ratios):.2f}")


if __name__ == "__main__":
    main()
