"""How near are convolutions of 8-bit integers to what the processor's dot products do on registers alone?

    taskset -c 0 python benchmarks/integer_conv.py [--isa LEVEL] [--signed] [--weights-zero 3] [--of resnet50 mobilenet]

Every different convolution of ResNet-50 and MobileNetV2 as a QLinearConv, compiled alone over NHWC data: its time, multiply-adds in
a second, and their share of the peak; the fastest run counts, since others may use the machine. The last line of a network is the
sum over its layers.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable

import numpy as np
from gemm import Run, aligned

from sardonyx.codegen.emit.dots import dot4, dot_pairs, has_dot4, has_pairs
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, host_target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Graph, Node, Tensor, TensorType, Value
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.provider import HOST, Partition
from sardonyx.providers.cpu.claims import Claimed, NodeClaim, claim_node
from sardonyx.providers.cpu.provider import CpuProvider


@dataclasses.dataclass(frozen=True)
class Layer:
    """One convolution of a square image, `count` times in its network."""

    count: int
    size: int
    channels: int
    filters: int
    kernel: int = 1
    stride: int = 1
    depthwise: bool = False

    @property
    def places(self) -> int:
        """Places along each axis of the output."""
        return (self.size - 1) // self.stride + 1

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.places**2 * self.filters * self.kernel**2 * (1 if self.depthwise else self.channels)


RESNET50 = [
    Layer(1, 224, 3, 64, 7, 2),
    Layer(1, 56, 64, 64),
    Layer(3, 56, 64, 64, 3),
    Layer(4, 56, 64, 256),
    Layer(2, 56, 256, 64),
    Layer(1, 56, 256, 128),
    Layer(1, 56, 128, 128, 3, 2),
    Layer(4, 28, 128, 512),
    Layer(1, 56, 256, 512, 1, 2),
    Layer(3, 28, 512, 128),
    Layer(3, 28, 128, 128, 3),
    Layer(1, 28, 512, 256),
    Layer(1, 28, 256, 256, 3, 2),
    Layer(6, 14, 256, 1024),
    Layer(1, 28, 512, 1024, 1, 2),
    Layer(5, 14, 1024, 256),
    Layer(5, 14, 256, 256, 3),
    Layer(1, 14, 1024, 512),
    Layer(1, 14, 512, 512, 3, 2),
    Layer(3, 7, 512, 2048),
    Layer(1, 14, 1024, 2048, 1, 2),
    Layer(2, 7, 2048, 512),
    Layer(2, 7, 512, 512, 3),
]

_BLOCKS = [  # size, channels, expanded, stride, result, count
    (112, 16, 96, 2, 24, 1),
    (56, 24, 144, 1, 24, 1),
    (56, 24, 144, 2, 32, 1),
    (28, 32, 192, 1, 32, 2),
    (28, 32, 192, 2, 64, 1),
    (14, 64, 384, 1, 64, 3),
    (14, 64, 384, 1, 96, 1),
    (14, 96, 576, 1, 96, 2),
    (14, 96, 576, 2, 160, 1),
    (7, 160, 960, 1, 160, 2),
    (7, 160, 960, 1, 320, 1),
]
MOBILENET_V2 = [
    Layer(1, 224, 3, 32, 3, 2),
    Layer(1, 112, 32, 32, 3, 1, True),
    Layer(1, 112, 32, 16),
    *(
        layer
        for size, channels, wide, stride, result, count in _BLOCKS
        for layer in (
            Layer(count, size, channels, wide),
            Layer(count, size, wide, wide, 3, stride, True),
            Layer(count, size // stride, wide, result),
        )
    ),
    Layer(1, 7, 320, 1280),
]
NETWORKS = {"resnet50": RESNET50, "mobilenet": MOBILENET_V2}


def peak_run(target: Target) -> tuple[Run, int]:
    """Dot products on registers, and how many multiply-adds each vector of them is."""
    module, engine, lanes = Module(target), Engine(target), target.lanes(32)
    chains = (24 if target.registers >= 32 else 12) if has_dot4(target) or has_pairs(target) else 8
    dot, bytes_ = (dot_pairs, 2) if has_pairs(target) else (dot4, 4)
    with module.kernel("peak") as b:
        x = b.buffer(0, I32).load(0, lanes)
        sums = [b.variable(x + place) for place in range(chains)]
        with b.loop(b.begin, b.end):
            for total in sums:
                total.set(dot(b, total.value, x, total.value if has_pairs(target) else x))
        result = sums[0].value
        for total in sums[1:]:
            result = result + total.value
        b.buffer(1, I32).store(result, 0, lanes)
    engine.add(module)
    data = aligned(np.zeros(16 * 64, np.float32))
    return Run(engine, "peak", [data, data], [0], 10_000, bytes_ * lanes * chains * 10_000), bytes_ * lanes


def runner_of(layer: Layer, provider: CpuProvider, *, signed: bool, weights_zero: int) -> Callable[[], object]:
    """A function that computes the layer once, on data of its own."""
    rng, kind = np.random.default_rng(0), np.int8 if signed else np.uint8
    values = [Value("x", TensorType(DataType.from_numpy(np.dtype(kind)), (1, layer.size, layer.size, layer.channels)))]
    part = 1 if layer.depthwise else layer.channels
    constants = [
        np.float32(0.02),
        kind(3),
        rng.integers(-127, 127, (layer.filters, part, layer.kernel, layer.kernel), np.int8),
        rng.random(layer.filters, np.float32) / np.float32(100),
        np.int8(weights_zero),
        np.float32(0.7),
        kind(7),
        rng.integers(-999, 999, layer.filters, np.int32),
    ]
    for number, array in enumerate(constants):
        value = Value(f"c{number}")
        value.constant = Tensor.from_array(np.asarray(array), value.name)
        value.type = TensorType(value.constant.dtype, value.constant.shape)
        values.append(value)
    attributes = {
        "pads": ((layer.kernel - 1) // 2,) * 4,
        "strides": (layer.stride,) * 2,
        "group": layer.channels if layer.depthwise else 1,
    }
    node = Node("QLinearConv", values, 1, attributes, version=10, domain=NHWC_DOMAIN)
    node.output.type = TensorType(values[0].dtype or DataType.UINT8, (1, layer.places, layer.places, layer.filters))
    graph = Graph("layer", inputs=values[:1], outputs=[node.output], nodes=[node])
    claimed = NodeClaim((node,), claimed=claim_of(node))
    partition = Partition("layer", graph, (node,), (claimed,), tuple(values[:1]), tuple(values[1:]), (node.output,))
    program = provider.compile(partition, lambda graph: (_ for _ in ()).throw(KeyError(graph)))
    x = aligned_bytes(rng.integers(0, 100, values[0].shape, kind))
    y = aligned_bytes(np.zeros(node.output.shape, kind))
    bound = program.bind((x.shape,))
    scratch = HOST.allocate(bound.scratch_bytes) if bound.scratch_bytes else None
    return lambda: program.run(bound, [x], [y], scratch)


def claim_of(node: Node) -> Claimed:
    """What the provider makes of a node."""
    found = claim_node(node)
    if isinstance(found, str):
        raise SystemExit(f"{node!r} is not compiled: {found}")
    return found


def aligned_bytes(array: Array) -> Array:
    """A copy that begins at a cache line."""
    raw = np.zeros(array.nbytes + 64, np.uint8)
    first = -raw.ctypes.data % 64
    copy = raw[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


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


def main() -> int:
    """Print each layer, and the sum of each network."""
    parser = argparse.ArgumentParser(description="Convolutions of 8-bit integers beside the peak of dot products.")
    parser.add_argument("--isa", default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--signed", action="store_true", help="the data are int8; uint8 else")
    parser.add_argument("--weights-zero", type=int, default=0, help="the zero point of the weights, which are int8")
    parser.add_argument("--of", nargs="+", choices=sorted(NETWORKS), default=sorted(NETWORKS))
    arguments = parser.parse_args()
    target = host_target(arguments.isa)
    provider, (peak, _) = CpuProvider(target, 1), peak_run(target)
    top = max(peak.gigaflops() for _ in range(30))
    print(f"dot products on registers: {top:.0f} billion multiply-adds/s ({target.isa})")
    for name in arguments.of:
        runs = {
            layer: runner_of(layer, provider, signed=arguments.signed, weights_zero=arguments.weights_zero)
            for layer in NETWORKS[name]
        }
        took = dict.fromkeys(runs, float("inf"))
        for _ in range(arguments.rounds):
            for layer, run in runs.items():
                took[layer] = min(took[layer], once(run))
        for layer, seconds in took.items():
            speed = layer.products / seconds / 1e9
            form = "depthwise" if layer.depthwise else f"{layer.kernel}x{layer.kernel}"
            sizes = f"{layer.size:3}² {layer.channels:4} -> {layer.filters:4} {form:9} /{layer.stride}"
            print(f"  {layer.count} x {seconds * 1e6:7.1f} µs {speed:5.0f} G/s {speed / top:6.1%}  {sizes}")
        total = sum(seconds * layer.count for layer, seconds in took.items())
        speed = sum(layer.products * layer.count for layer in took) / total / 1e9
        print(f"{name}: {total * 1e3:.2f} ms, {speed:.0f} billion multiply-adds/s, {speed / top:.1%}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
