"""Eight threads over the whole API at once, and what the process keeps of it.

    python benchmarks/soak_api.py [--runs 10000] [--warmup 10000] [--threads 8] [--parts fresh,shared,…]

Each run is one of these, drawn at random, while the other threads do theirs with the same sessions:

    fresh        a session is made, run and dropped
    shared       one that all threads share runs with sizes of its own
    bound        inputs and outputs are bound in advance; some outputs to memory that does not fit
    cancelled    a run is ended by `terminate` or by `timeout_ms`
    failing      a wrong feed, an index out of range in the middle of a plan, a file that is no model
    asynchronous the results go to a callback, some of which raise
    values       OrtValues, DLPack, sequences
    pickled      a session goes through pickle

Printed are, fifty times, memory (what no other process has), open descriptors, threads and mappings, and in the end the slope of
memory by the run, after the first fifth. As many runs as `--warmup` says come before, uncounted, until caches are full; libc
has one heap for all threads, so that the fragments of eight do not count. The bar: 100 bytes a run, and nothing else that grows.
"""

from __future__ import annotations

import argparse
import contextlib
import pickle
import random
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from soak import DETECTOR, FAILING, LONG, MOST, TRANSFORMER, Kept, kept, slope, use_one_heap

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

BAR_BYTES = 100
SAMPLES = 50
LIST = """graph main(s: seq(float[n]), x: float[n]) -> (t) {
    t = SequenceInsert(s, x)
}"""


def _bytes(text: str) -> bytes:
    return to_bytes(parse_model(f"ir_version 10\nopset 21\n{text}"))


class Calls:
    """The kinds of runs, over sessions that all threads share."""

    def __init__(self, folder: Path) -> None:
        """Make the sessions; `folder` is for the file of one of them."""
        self._models = [_bytes(text) for text in (TRANSFORMER, DETECTOR, FAILING, LONG)]
        self._failing, self._long, self._list = (ort.InferenceSession(_bytes(text)) for text in (FAILING, LONG, LIST))
        self._path = folder / "model.onnx"
        self._path.write_bytes(_bytes(LONG))
        self._saved = ort.InferenceSession(str(self._path))

    @property
    def parts(self) -> Mapping[str, Callable[[random.Random], None]]:
        """The kinds by name."""
        return {
            "fresh": self.fresh,
            "shared": self.shared,
            "bound": self.bound,
            "cancelled": self.cancelled,
            "failing": self.failing,
            "asynchronous": self.asynchronous,
            "values": self.values,
            "pickled": self.pickled,
        }

    def fresh(self, draw: random.Random) -> None:
        """Make a session on either provider, run it and drop it."""
        provider = draw.choice(["CPUExecutionProvider", "ReferenceExecutionProvider"])
        session = ort.InferenceSession(draw.choice(self._models[2:]), providers=[provider])
        session.run(None, {"x": _square(4)} | ({"i": np.zeros(1, np.int64)} if len(session.get_inputs()) > 1 else {}))

    def shared(self, draw: random.Random) -> None:
        """Run with a size that others may run with at the same time."""
        self._long.run(None, {"x": _square(draw.randint(1, 80))})

    def bound(self, draw: random.Random) -> None:
        """Bind an input and an output, now and then to memory that is too wide."""
        n = draw.randint(1, 40)
        x, y = _square(n), np.empty((n, n + (draw.random() < 0.2)), np.float32)
        binding = self._long.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
        binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(y))
        try:
            for _ in range(3):
                self._long.run_with_iobinding(binding)
        except ort.SardonyxError:
            binding.clear_binding_outputs()

    def cancelled(self, draw: random.Random) -> None:
        """End a run before it begins, or soon after."""
        options = ort.RunOptions()
        if draw.random() < 0.5:
            options.terminate = True
        else:
            options.timeout_ms = 1
        with contextlib.suppress(ort.SardonyxError):
            self._long.run(None, {"x": _square(120)}, options)

    def failing(self, draw: random.Random) -> None:
        """Call with something wrong."""
        wrong: list[Callable[[], Any]] = [
            lambda: self._long.run(None, {"x": np.zeros((2, 3, 4), np.float32)}),
            lambda: self._long.run(["nothing"], {"x": _square(2)}),
            lambda: self._failing.run(None, {"x": _square(4), "i": np.array([99])}),
            lambda: ort.InferenceSession(b"no model"),
            lambda: ort.InferenceSession("missing.onnx"),
        ]
        with contextlib.suppress(ort.SardonyxError, ValueError):
            draw.choice(wrong)()

    def asynchronous(self, draw: random.Random) -> None:
        """Let a callback have the results."""
        done, n = threading.Event(), draw.randint(1, 20)

        def callback(results: object, data: object, error: str) -> None:
            done.set()
            if n == 1:
                raise ValueError("of the callback")

        self._long.run_async(None, {"x": _square(n)}, callback, None)
        done.wait(60)

    def values(self, draw: random.Random) -> None:
        """Hand values in and out without arrays."""
        value = ort.OrtValue.ortvalue_from_numpy(_square(draw.randint(1, 20)))
        (result,) = self._long.run_with_ort_values(None, {"x": value})
        ort.OrtValue.from_dlpack(result.numpy()).numpy().sum()
        self._list.run(None, {"s": [np.ones(3, np.float32)] * draw.randint(0, 3), "x": np.ones(3, np.float32)})

    def pickled(self, draw: random.Random) -> None:
        """Make a session of a session's pickle."""
        pickle.loads(pickle.dumps(self._saved)).run(None, {"x": _square(3)})


def _square(n: int) -> Any:
    return np.ones((n, n), np.float32)


def soak(runs: int, threads: int, names: list[str], seed: int = 0) -> list[tuple[int, Kept]]:
    """Make the runs; returns fifty times how many there were and what the process keeps, with all threads idle.

    Args:
        runs: how many.
        threads: how many of them at a time.
        names: which kinds are drawn.
        seed: of the draws; which runs meet is up to the system.
    """
    found: list[tuple[int, Kept]] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(threads) as pool:
        parts = Calls(Path(folder)).parts
        sizes = [runs * (place + 1) // SAMPLES - runs * place // SAMPLES for place in range(SAMPLES)]
        draws = random.Random(seed)
        for size in sizes:
            seeds = [draws.randrange(1 << 30) for _ in range(size)]
            list(pool.map(lambda number: parts[names[number % len(names)]](random.Random(number)), seeds))
            found.append((size + (found[-1][0] if found else 0), kept()))
    return found


def main() -> int:
    """Run the command line; 1 where something grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--warmup", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--parts", default="fresh,shared,bound,cancelled,failing,asynchronous,values,pickled")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    threading.excepthook = lambda args: None
    use_one_heap()
    names = arguments.parts.split(",")
    soak(arguments.warmup, arguments.threads, names, seed=1)
    start = time.monotonic()
    found = soak(arguments.runs, arguments.threads, names)
    print(f"{'runs':>7} {'MiB':>8} {'files':>6} {'threads':>8} {'mappings':>9}")
    for count, held in found:
        print(f"{count:7} {held.memory / 2**20:8.1f} {held.descriptors:6} {held.threads:8} {held.mappings:9}")
    warm = found[len(found) // 5 :]
    growth = slope([count for count, _ in warm], [held.memory for _, held in warm])
    first, last = warm[0][1], warm[-1][1]
    others = max(b - a for a, b in zip(first[1:], last[1:], strict=True))
    print(f"{arguments.runs} runs on {arguments.threads} threads in {time.monotonic() - start:.0f} s: {growth:.0f} bytes a run")
    print(f"descriptors, threads and mappings grew by at most {others}")
    return int(growth > BAR_BYTES or others > MOST)


if __name__ == "__main__":
    sys.exit(main())
