"""The executors on plans with branches: sequential, dataflow and parallel.

    python benchmarks/executors.py                       branches on the CPU provider and on pretended slow devices; tiny steps
    python benchmarks/executors.py --model MODEL.onnx    a model across all providers that are installed

A slow device takes its time without the processor, as an accelerator does, and computes next to nothing. `ideal` is the time of
the longest branch.

Bars: with branches on slow devices parallel takes at most 0.7 of sequential's time from four branches on; in a chain of tiny
steps no executor takes more than 150 us per step; results are the sequential ones, bit for bit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import sardonyx
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Graph
from sardonyx.ir.text import parse_model
from sardonyx.provider import HOST, Body, Bound, Capability, Claims, GraphView, Layout, Partition, Program
from sardonyx.providers.reference.program import ReferenceProgram
from sardonyx.runtime.executor import EXECUTORS

DEVICE_MS = 20.0
ROUNDS = 9


class SlowDevice:
    """Claims nodes whose names begin with its own name, and takes a fixed time for each partition."""

    preferred_layout = Layout.NCHW
    memory = HOST

    def __init__(self, name: str, seconds: float) -> None:
        self.name, self._seconds = name, seconds

    def capabilities(self, view: GraphView) -> Claims:
        return Claims([Capability((node,)) for node in view.nodes if node.name.startswith(self.name)])

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        inner = ReferenceProgram(partition.nodes, partition.inputs, partition.constants, partition.outputs, bodies)
        return _SlowProgram(inner, self._seconds)


class _SlowProgram:
    makes_outputs = True

    def __init__(self, inner: ReferenceProgram, seconds: float) -> None:
        self._inner, self._seconds = inner, seconds

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return self._inner.bind(shapes)

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        time.sleep(self._seconds)
        return self._inner.run(bound, inputs, outputs, scratch)


def branches(size: int, count: int) -> str:
    """A model of `count` branches from one value to one sum: every other one on a device of its own, the rest on the host."""
    lines = [f"w: float[{size}, {size}] = ... 1"]
    for index in range(count):
        if index % 2:
            lines.append(f"c{index} = Neg(x) @Device{index}")
        else:
            lines += [f"m{index} = MatMul(x, w) @host_m{index}", f"c{index} = MatMul(m{index}, w) @host_c{index}"]
    lines.append(f"y = Sum({', '.join(f'c{index}' for index in range(count))}) @host_sum")
    text = "\n".join(lines)
    return f"ir_version 10\nopset 21\ngraph main(x: float[{size}, {size}]) -> (y: float[{size}, {size}]) {{\n{text}\n}}"


def chain(count: int) -> str:
    """A model of `count` tiny steps, one after another, on two providers in turn."""
    lines = [f"v{index + 1} = Neg(v{index}) @{'Device' if index % 2 else 'host'}{index}" for index in range(count)]
    text = "\n".join(lines)
    return f"ir_version 10\nopset 21\ngraph main(v0: float[4]) -> (v{count}: float[4]) {{\n{text}\n}}"


def session(source: Any, executor: str, providers: Sequence[Any], threads: int) -> sardonyx.InferenceSession:
    """A session on an executor; optimization is off, so that branches stay what they are."""
    options = sardonyx.SessionOptions()
    options.graph_optimization_level = sardonyx.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.executor", executor)
    options.intra_op_num_threads, options.inter_op_num_threads = 1, threads
    return sardonyx.InferenceSession(source, options, providers=providers)


def measure(sessions: Mapping[str, sardonyx.InferenceSession], feed: Mapping[str, Any]) -> tuple[dict[str, float], bool]:
    """The median time of each in ms, taken in turns, and whether all results are the same bits."""
    results = {name: item.run(None, feed) for name, item in sessions.items()}
    first = results["sequential"]
    same = all(np.array_equal(one, other) for found in results.values() for one, other in zip(first, found, strict=True))
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(ROUNDS):
        for name, item in sessions.items():
            start = time.perf_counter()
            item.run(None, feed)
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(found) for name, found in times.items()}, same


def show(title: str, times: Mapping[str, float], same: bool, ideal: float | None = None) -> None:
    """Print a line."""
    texts = [f"{name} {ms:8.2f} ms" for name, ms in times.items()]
    best = "" if ideal is None else f"ideal {ideal:.2f} ms  "
    print(f"{title:34} {'  '.join(texts)}  {best}{'same bits' if same else 'DIFFERENT'}")


def measure_branches(count: int, threads: int) -> bool:
    """Branches on the host and on slow devices."""
    size = 384
    data = onnx_format.to_bytes(parse_model(branches(size, count)))
    devices = [SlowDevice(f"Device{index}", DEVICE_MS / 1e3) for index in range(1, count, 2)]
    feed = {"x": np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)}
    providers = [*devices, "CPUExecutionProvider"]
    times, same = measure({name: session(data, name, providers, threads) for name in EXECUTORS}, feed)
    host, _ = measure({"sequential": session(data, "sequential", ["CPUExecutionProvider"], 1)}, feed)
    show(f"{count} branches, half on devices", times, same, max(DEVICE_MS, host["sequential"]))
    return same and (count < 4 or times["parallel"] < 0.7 * times["sequential"])


def measure_chain(count: int, threads: int) -> bool:
    """What an executor itself costs."""
    data = onnx_format.to_bytes(parse_model(chain(count)))
    providers = [SlowDevice("Device", 0.0), "ReferenceExecutionProvider"]
    times, same = measure({name: session(data, name, providers, threads) for name in EXECUTORS}, {"v0": np.ones(4, np.float32)})
    show(f"chain of {count} tiny steps", times, same)
    return same and max(times.values()) / count < 0.15


def measure_model(path: str, threads: int) -> bool:
    """A model across all providers that there are."""
    providers = [name for name in sardonyx.get_available_providers() if "Execution" in name]
    sessions = {name: session(path, name, providers, threads) for name in EXECUTORS}
    feed = {item.name: _random(item) for item in sessions["sequential"].get_inputs()}
    times, same = measure(sessions, feed)
    steps = len({item.partition for item in sessions["sequential"].explain()})
    show(f"{path.rsplit('/', 1)[-1]}, {steps} partitions", times, same)
    return same


def _random(item: Any) -> Any:
    sizes = [dim if isinstance(dim, int) else 1 for dim in item.shape]
    draw = np.random.default_rng(0)
    return draw.integers(0, 2, sizes) if "int" in item.type else draw.standard_normal(sizes, dtype=np.float32)


def main() -> None:
    """Measure, and exit with 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description="the executors on plans with branches")
    parser.add_argument("--model", help="a model instead of the made ones")
    parser.add_argument("--threads", type=int, default=4, help="inter_op_num_threads")
    chosen = parser.parse_args()
    if chosen.model:
        sys.exit(not measure_model(chosen.model, chosen.threads))
    right = [measure_branches(2, chosen.threads), measure_branches(4, chosen.threads), measure_branches(8, chosen.threads)]
    right.append(measure_chain(100, chosen.threads))
    sys.exit(not all(right))


if __name__ == "__main__":
    main()
