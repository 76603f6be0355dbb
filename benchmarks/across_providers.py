"""Models run across OpenVINO, the CPU provider and the reference provider in one session: are the answers right, and how fast?

    python benchmarks/across_providers.py --zoo ZOO resnet50 bert_base yolov8n_nms

Each model is run in three ways: by the reference provider alone, by OpenVINO with the CPU provider behind it, and with some
operators taken from OpenVINO, and some of these from the CPU provider too, so that all three take part. ZOO is a folder with
`materialize.py`, which makes the models' inputs; the models themselves are files of --models.

Bar: no element differs from the reference provider's by more than 1e-3 of the largest. Detections, which are sorted by score, may
change places with others of nearly the same score: they are compared in the order of their indices.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sardonyx
from sardonyx.ir import Graph
from sardonyx.provider import Body, Claims, GraphView, Partition, Program, Provider
from sardonyx.providers.cpu.provider import create as create_cpu
from sardonyx.providers.openvino.provider import create as create_openvino

TO_CPU = ("MaxPool", "Softmax", "LayerNormalization", "Resize", "Flatten")
TO_REFERENCE = ("GlobalAveragePool", "Tanh", "Sigmoid")
BAR, RUNS = 1e-3, 5


class Without:
    """A provider that leaves some operators to others."""

    def __init__(self, inner: Provider, *operators: str) -> None:
        self.name, self.preferred_layout, self.memory = inner.name, inner.preferred_layout, inner.memory
        self._inner, self._operators = inner, operators

    def capabilities(self, view: GraphView) -> Claims:
        nodes = tuple(node for node in view.nodes if node.op_type not in self._operators)
        return self._inner.capabilities(dataclasses.replace(view, nodes=nodes))

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return self._inner.compile(partition, bodies)


def ways(threads: int) -> dict[str, list[Any]]:
    """The sets of providers."""
    openvino = {"num_of_threads": str(threads)}
    cpu = {"intra_op_num_threads": str(threads)}
    return {
        "reference": ["ReferenceExecutionProvider"],
        "openvino, cpu": [("OpenVINOExecutionProvider", openvino), ("CPUExecutionProvider", cpu)],
        "all three": [Without(create_openvino(openvino), *TO_CPU, *TO_REFERENCE), Without(create_cpu(cpu), *TO_REFERENCE)],
    }


def ordered(outputs: list[Any]) -> list[Any]:
    """Rows of detections in the order of their indices; other outputs as they are."""
    keys = next((item for item in outputs if item.dtype == np.int64 and item.ndim == 2), None)
    if keys is None or any(len(item) != len(keys) for item in outputs):
        return outputs
    order = np.lexsort(keys.T)
    return [item[order] for item in outputs]


def difference(found: list[Any], expected: list[Any]) -> float:
    """The largest difference of any output, relative to its largest element; infinite where shapes or integers differ."""
    worst = 0.0
    for left, right in zip(ordered(found), ordered(expected), strict=True):
        if left.shape != right.shape or (right.dtype.kind != "f" and not np.array_equal(left, right)):
            return float("inf")
        if right.dtype.kind == "f" and right.size:
            worst = max(worst, float(np.abs(left - right).max() / max(float(np.abs(right).max()), 1e-6)))
    return worst


def measure(path: Path, feed: dict[str, Any], threads: int) -> bool:
    """Print a line for each way; returns whether all are right."""
    expected: list[Any] | None = None
    right = True
    for name, providers in ways(threads).items():
        session = sardonyx.InferenceSession(str(path), providers=providers)
        found = session.run(None, feed)
        expected = expected or found
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            session.run(None, feed)
            times.append(time.perf_counter() - start)
        nodes = Counter(item.provider.removesuffix("ExecutionProvider") for item in session.explain())
        off = difference(found, expected)
        right = right and off <= BAR
        parts = len({item.partition for item in session.explain()})
        took = f"{statistics.median(times) * 1e3:8.2f} ms"
        print(f"{path.stem:14} {name:14} {took}  off by {off:.1e}  {parts:3} parts  {dict(nodes)}")
    return right


def main() -> None:
    """Run the models and exit with 1 where one is wrong."""
    parser = argparse.ArgumentParser(description="models across three providers")
    parser.add_argument("names", nargs="*", default=["resnet50", "bert_base", "yolov8n_nms"])
    parser.add_argument("--zoo", required=True, help="the folder of materialize.py")
    folder = Path.home() / ".cache" / "sardonyx-zoo"
    parser.add_argument("--models", type=Path, default=folder, help="the folder of the .onnx files")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    sys.path.insert(0, chosen.zoo)
    import materialize

    feeds = {name: next(iter(materialize.inputs(name, 0).values())) for name in chosen.names}
    right = [measure(chosen.models / f"{name}.onnx", feed, chosen.threads) for name, feed in feeds.items()]
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
