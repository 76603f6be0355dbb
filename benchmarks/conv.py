"""Are the convolutions of networks faster than ONNX Runtime's?

    taskset -c 0 python benchmarks/conv.py MODEL.onnx[:SIZE,SIZE,...] ... [--rounds 5] [--isa LEVEL] [--precision medium] [--all]

For each model: every different convolution of the optimised graph, compiled alone with its bias and a Relu, over NHWC data; its
time, GFLOP/s, and share of what the core does on registers alone; then the sum over the model beside what ONNX Runtime's own
profile says of its convolutions (and of the reorders that it adds around them) within the whole model. Both take turns; of each
node the fastest run counts, since others may use the machine. SIZE,SIZE,... are the dimensions of the first input where the model
leaves them open.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gemm import aligned, peak_run

from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array, DataType
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Graph, Node, Tensor, TensorType, Value
from sardonyx.ir.shape import substitute
from sardonyx.optimize.pipeline import optimize
from sardonyx.partition.layout import NHWC_DOMAIN, to_last
from sardonyx.provider import HOST, Partition
from sardonyx.providers.cpu.claims import Claimed, NodeClaim, claim_node
from sardonyx.providers.cpu.precision import PRECISIONS
from sardonyx.providers.cpu.provider import CpuProvider
from sardonyx.providers.reference.provider import evaluate

_CONVS = ("Conv", "ConvTranspose")


@dataclasses.dataclass(frozen=True)
class Layer:
    """One convolution: sizes as in ONNX, channels first."""

    op_type: str
    data: tuple[int, ...]
    filters: tuple[int, ...]
    result: tuple[int, ...]
    attributes: tuple[tuple[str, object], ...]

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        if self.op_type == "Conv":
            return 2 * prod(self.result) * prod(self.filters[1:])
        return 2 * prod(self.data) * prod(self.filters[1:])

    def __str__(self) -> str:
        """Sizes in a few words."""
        shown = [
            f"{name[:1]}{'x'.join(map(str, value)) if isinstance(value, tuple) else value}"
            for name, value in self.attributes
            if name in ("strides", "group", "dilations") and value not in (1, (1,) * (len(self.data) - 2))
        ]
        sizes = ["x".join(map(str, shape)) for shape in (self.data[1:], self.filters)]
        return f"{sizes[0]} * {sizes[1]} {' '.join(shown)}"


def layers_of(path: Path, sizes: Sequence[int]) -> collections.Counter[Layer]:
    """The convolutions of the optimised model, for an input of these sizes."""
    model = onnx_format.load(path)
    shape = model.graph.inputs[0].shape or ()
    given = {dim.name: size for dim, size in zip(shape, sizes, strict=False) if not isinstance(dim, int) and dim.name}
    for value in (*model.graph.inputs, *(value for node in model.graph for value in node.outputs), *model.graph.outputs):
        if isinstance(value.type, TensorType) and value.shape is not None:
            value.type = TensorType(value.type.dtype, tuple(substitute(dim, given) for dim in value.shape))
    optimize(model, 99, evaluate=evaluate)
    found: collections.Counter[Layer] = collections.Counter()
    for node in model.graph:
        if node.op_type in _CONVS:
            data, filters, result = (_ints(value) for value in (node.inputs[0], node.inputs[1], node.outputs[0]))
            attributes = tuple(sorted((name, node.get(name)) for name in node.attributes))
            found[Layer(node.op_type, data, filters, result, attributes)] += 1
    return found


def _ints(value: Value | None) -> tuple[int, ...]:
    shape = () if value is None else value.shape or ()
    if any(not isinstance(dim, int) for dim in shape):
        raise SystemExit(f"the shape {shape} is not known: state the sizes of the first input behind the model's name")
    return tuple(dim for dim in shape if isinstance(dim, int))


def runner_of(layer: Layer, provider: CpuProvider) -> Callable[[], object]:
    """A function that computes the layer once, on data of its own."""
    rng = np.random.default_rng(0)
    last = to_last(len(layer.data))
    data = Value("x", TensorType(DataType.FLOAT, tuple(layer.data[axis] for axis in last)))
    filters, bias = Value("w"), Value("b")
    filters.constant = Tensor.from_array(rng.standard_normal(layer.filters, np.float32), "w")
    bias.constant = Tensor.from_array(rng.standard_normal(layer.result[1], np.float32), "b")
    for value in (filters, bias):
        value.type = TensorType(DataType.FLOAT, value.constant.shape)
    node = Node(layer.op_type, [data, filters, bias], 1, dict(layer.attributes), version=11, domain=NHWC_DOMAIN)
    relu = Node("Relu", [node.output], 1, {}, version=14)
    for made in (node, relu):
        made.output.type = TensorType(DataType.FLOAT, tuple(layer.result[axis] for axis in last))
    graph = Graph("layer", inputs=[data], outputs=[relu.output], nodes=[node, relu])
    units = tuple(NodeClaim((made,), claimed=_claim_of(made)) for made in (node, relu))
    part = Partition("layer", graph, (node, relu), units, (data,), (filters, bias), (relu.output,))
    program = provider.compile(part, lambda graph: (_ for _ in ()).throw(KeyError(graph)))
    x, y = aligned(rng.standard_normal(data.shape, np.float32)), aligned(np.zeros(relu.output.shape, np.float32))
    bound = program.bind((x.shape,))
    scratch = HOST.allocate(bound.scratch_bytes) if bound.scratch_bytes else None
    return lambda: program.run(bound, [x], [y], scratch)


def _claim_of(node: Node) -> Claimed:
    found = claim_node(node)
    if isinstance(found, str):
        raise SystemExit(f"{node!r} is not compiled: {found}")
    return found


class Peer:
    """ONNX Runtime on the whole model, with its profile of each operator."""

    def __init__(self, path: Path, sizes: Sequence[int]) -> None:
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime

        self._runtime, self._path, self._sizes = onnxruntime, path, sizes

    def seconds(self, runs: int) -> dict[tuple[str, str], float]:
        """For each node, by operator and name, the fastest of some runs."""
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level, options.enable_profiling = 1, 3, True
        with tempfile.TemporaryDirectory() as folder:
            options.profile_file_prefix = str(Path(folder) / "profile")
            session = self._runtime.InferenceSession(str(self._path), options, providers=["CPUExecutionProvider"])
            feeds = {put.name: self._array(put) for put in session.get_inputs()}
            for _ in range(runs):
                session.run(None, feeds)
            events = json.loads(Path(session.end_profiling()).read_text())
        return _fastest(events)

    def _array(self, put: Any) -> Array:
        sizes = iter(self._sizes)
        given = [(dim, next(sizes, 1)) for dim in put.shape]
        shape = [dim if isinstance(dim, int) else size for dim, size in given]
        return np.random.default_rng(0).random(shape, np.float32)


def _fastest(events: Sequence[dict[str, Any]]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for event in events:
        name = str(event["name"])
        if event.get("cat") == "Node" and name.endswith("_kernel_time"):
            key = str(event["args"]["op_name"]), name
            found[key] = min(found.get(key, float("inf")), float(event["dur"]) * 1e-6)
    return found


def once(run: Callable[[], object], least_s: float = 4e-3) -> float:
    """Seconds of processor time of one run, the fastest of as many as fit."""
    best, end = float("inf"), time.thread_time() + least_s
    while True:
        start = time.thread_time()
        run()
        now = time.thread_time()
        best = min(best, now - start)
        if now > end:
            return best


def report(
    path: Path, sizes: Sequence[int], provider: CpuProvider, rounds: int, *, every: bool, peak: float
) -> tuple[float, float]:
    """Measure one model; returns our seconds and the peer's."""
    layers = layers_of(path, sizes)
    runs = {layer: runner_of(layer, provider) for layer in layers}
    peer = Peer(path, sizes)
    took = dict.fromkeys(layers, float("inf"))
    other: dict[tuple[str, str], float] = {}
    for _ in range(rounds):
        for layer, run in runs.items():
            took[layer] = min(took[layer], once(run))
        for node, duration in peer.seconds(8).items():
            other[node] = min(other.get(node, duration), duration)
    total = sum(took[layer] * count for layer, count in layers.items())
    operations = sum(layer.operations * count for layer, count in layers.items())
    peers = sum(seconds for (name, _), seconds in other.items() if "Conv" in name or "Reorder" in name)
    print(f"{path.stem}: {len(layers)} kinds of {layers.total()} convolutions, {operations / 1e9:.2f} GFLOP")
    for layer in sorted(layers, key=lambda layer: -took[layer] * layers[layer]) if every else ():
        speed = layer.operations / took[layer] / 1e9
        print(f"  {layers[layer]:3} x {took[layer] * 1e6:8.1f} µs {speed:6.0f} GFLOP/s {speed / peak:6.1%}  {layer}")
    speeds = [operations / seconds / 1e9 for seconds in (total, peers)]
    print(
        f"  sardonyx {total * 1e3:8.2f} ms {speeds[0]:5.0f} GFLOP/s {speeds[0] / peak:6.1%}   onnxruntime {peers * 1e3:8.2f} ms "
        f"{speeds[1]:5.0f} GFLOP/s   ratio {total / peers:.2f}",
        flush=True,
    )
    return total, peers


def main() -> int:
    """Report all models named on the command line."""
    parser = argparse.ArgumentParser(description="Convolutions beside ONNX Runtime's.")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--isa", default=None)
    parser.add_argument("--precision", default="highest", choices=PRECISIONS)
    parser.add_argument("--all", action="store_true", help="print every layer")
    arguments = parser.parse_args()
    target = host_target(arguments.isa)
    provider = CpuProvider(target, 1, precision=PRECISIONS[arguments.precision])
    peak = peak_run(target)
    top = max(peak.gigaflops() for _ in range(30))
    print(f"multiply-adds on registers: {top:.0f} GFLOP/s ({target.isa})")
    ratios = []
    for text in arguments.models:
        name, _, sizes = text.partition(":")
        ours, theirs = report(
            Path(name), [int(size) for size in sizes.split(",") if size], provider, arguments.rounds, every=arguments.all, peak=top
        )
        ratios.append(ours / theirs)
    print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
