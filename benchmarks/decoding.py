"""Measure decoders step by step, and shapes that never stop changing.

    taskset -c 0 python benchmarks/decoding.py DECODER.onnx [--threads 1] [--cache 2048] [--batch 1] [--steps 2000] [--rounds 20]
    taskset -c 0 python benchmarks/decoding.py --shapes ENCODER.onnx [--lengths 100] [--longest 256]

DECODER has caches (batch, heads, length, size) that begin with "past", whose outputs begin with "present". Where it has fewer
positions than --cache or --steps, it is measured with as many as it has, to a power of 2. Printed are

    weights     the bytes of matrices that one step reads, a second, beside the bandwidth at which this machine reads memory
    bound       a step whose caches are bound, of --cache rows, beside onnxruntime's where it is installed: past and present are one
                buffer where the model writes into it, as GroupQueryAttention does, else two
    growing     the time of a step whose caches grow from 0 to --steps rows, and what the process grows besides these

ENCODER takes (batch, sequence) of integers: random lengths in turn, each once, beside the same sorted; both after one round.
Times are the least of rounds in which all take turns.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import resource
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import onnx

import sardonyx
from sardonyx.dtypes import Array

_MATRICES = {"MatMul": (1,), "Gemm": (1,), "MatMulNBits": (1, 2, 3)}
_BANDWIDTH_BYTES = 512 << 20


def session_of(module: ModuleType, model: str, threads: int) -> Any:
    """A session of either package; Any since they are two."""
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    return module.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def least(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of each of several calls, which take turns."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name] = min(found[name], time.perf_counter() - start)
    return found


def bandwidth(threads: int) -> float:
    """Bytes a second that so many threads read."""
    parts = np.array_split(np.ones(_BANDWIDTH_BYTES // 4, np.float32), threads)
    with ThreadPoolExecutor(threads) as pool:
        seconds = least({"read": lambda: list(pool.map(np.dot, parts, parts))}, 10)["read"]
    return _BANDWIDTH_BYTES / seconds


def matrix_bytes(path: str) -> int:
    """The bytes of constant matrices that products read."""
    graph = onnx.load(path, load_external_data=False).graph
    sizes = {item.name: _bytes_of(item) for item in graph.initializer}
    read = {node.input[place] for node in graph.node for place in _MATRICES.get(node.op_type, ()) if place < len(node.input)}
    return sum(sizes.get(name, 0) for name in read)


def _bytes_of(item: onnx.TensorProto) -> int:
    size: int = math.prod(item.dims) * onnx.helper.tensor_dtype_to_np_dtype(item.data_type).itemsize
    return size


def step_feed(session: Any, batch: int, past: int, cache: int | None = None) -> dict[str, Array]:
    """What one step reads behind `past` tokens, with caches of `cache` rows where they are longer."""
    feed = {}
    for item in session.get_inputs():
        if item.name.startswith("past"):
            feed[item.name] = np.zeros((batch, item.shape[1], past if cache is None else cache, item.shape[3]), np.float32)
        else:
            width = past + 1 if "mask" in item.name else 1
            feed[item.name] = np.full((batch, width), 1 if "mask" in item.name else past if "pos" in item.name else 7, np.int64)
    return feed


def present_of(session: Any) -> dict[str, str]:
    """Past -> present, in their order."""
    pasts = [item.name for item in session.get_inputs() if item.name.startswith("past")]
    return dict(zip(pasts, [item.name for item in session.get_outputs() if item.name.startswith("present")], strict=True))


def most_rows(session: Any, wanted: int) -> int:
    """How many rows a cache may have, `wanted` or a part of it: a model has only so many positions."""
    rows = wanted
    while rows > 1:
        try:
            session.run(None, step_feed(session, 1, rows - 1))
            break
        except sardonyx.errors.InvalidArgument:
            rows //= 2
    return rows


def shares_buffers(session: Any) -> bool:
    """Whether a present is as long as a past that is longer than what was read."""
    try:
        results = session.run(list(present_of(session).values()), step_feed(session, 1, 3, 8))
    except sardonyx.errors.InvalidArgument:
        return False
    return all(result.shape[2] == 8 for result in results)


def bound_step(module: ModuleType, session: Any, batch: int, cache: int, *, shared: bool) -> Callable[[], object]:
    """A step whose caches are bound, each present to its past where they are `shared`, else to a buffer of its own."""
    binding, pairs = session.io_binding(), present_of(session)
    for name, array in step_feed(session, batch, cache - 1, cache if shared else None).items():
        value = module.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_input(name, value)
        if name in pairs:
            grown = value if shared else module.OrtValue.ortvalue_from_numpy(np.zeros_like(array, shape=_one_more(array.shape)))
            binding.bind_ortvalue_output(pairs[name], grown)
    for item in session.get_outputs():
        if item.name not in pairs.values():
            binding.bind_output(item.name)
    return lambda: session.run_with_iobinding(binding)


def _one_more(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:2], shape[2] + 1, *shape[3:])


def measure_growth(session: Any, steps: int) -> None:
    """Decode with caches that grow, and print time and memory."""
    pairs, feed = present_of(session), step_feed(session, 1, 0)
    names = [item.name for item in session.get_outputs()]
    times, marks = [], []
    for past in range(steps):
        start = time.perf_counter()
        results = dict(zip(names, session.run(None, feed), strict=True))
        times.append(time.perf_counter() - start)
        feed = step_feed(session, 1, past + 1) | {name: results[present] for name, present in pairs.items()}
        marks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
    caches = 2 * sum(array.nbytes for name, array in feed.items() if name in pairs)
    first = min(len(marks) // 10, 100)
    grown = marks[-1] - marks[first]
    print(f"growing   {1e3 * float(np.median(times)):.2f} ms a step (median of {steps})")
    print(f"          the process has grown by {grown >> 20} MiB, two generations of caches take {caches >> 20} MiB")


def measure_decoder(arguments: argparse.Namespace) -> None:
    """Print what the module's docstring says of decoders."""
    session = session_of(sardonyx, arguments.model, arguments.threads)
    feed = step_feed(session, 1, 16)
    seconds = least({"step": lambda: session.run(None, feed)}, arguments.rounds)["step"]
    speed, peak = matrix_bytes(arguments.model) / seconds, bandwidth(arguments.threads)
    print(f"weights   {speed / 1e9:.1f} GB/s of {peak / 1e9:.1f} GB/s: {100 * speed / peak:.0f}%")
    cache, shared = most_rows(session, arguments.cache), shares_buffers(session)
    calls = {"sardonyx": bound_step(sardonyx, session, arguments.batch, cache, shared=shared)}
    try:
        import onnxruntime

        peer = session_of(onnxruntime, arguments.model, arguments.threads)
        calls["onnxruntime"] = bound_step(onnxruntime, peer, arguments.batch, cache, shared=shared)
    except ImportError:
        pass
    times = least(calls, arguments.rounds)
    ratio = f", ratio {times['sardonyx'] / times['onnxruntime']:.2f}" if len(times) > 1 else ""
    print(f"bound     {cache} rows: " + ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in times.items()) + ratio)
    del calls, times
    measure_growth(session, most_rows(session, arguments.steps))


def measure_shapes(arguments: argparse.Namespace) -> None:
    """Print how long changing lengths take in turn, and sorted."""
    session = session_of(sardonyx, arguments.model, arguments.threads)
    lengths = np.random.default_rng(0).integers(1, arguments.longest, arguments.lengths)
    feeds = [{item.name: np.ones((1, length), np.int64) for item in session.get_inputs()} for length in lengths.tolist()]
    order = {"in turn": list(range(len(feeds))), "sorted": np.argsort(lengths, kind="stable").tolist()}

    def run(places: list[int]) -> None:
        for place in places:
            session.run(None, feeds[place])

    run(order["in turn"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = least({name: functools.partial(run, places) for name, places in order.items()}, 3)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"shapes    {times['in turn']:.2f} s in turn, {times['sorted']:.2f} s sorted: {times['in turn'] / times['sorted']:.2f}")
    print(f"          the process has grown by {grown >> 10} MiB since the first round")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--shapes", action="store_true")
    for name, value in (("threads", 1), ("cache", 2048), ("batch", 1), ("steps", 2000), ("rounds", 20), ("lengths", 100)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--longest", type=int, default=256)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(arguments.threads))
    (measure_shapes if arguments.shapes else measure_decoder)(arguments)


if __name__ == "__main__":
    main()
