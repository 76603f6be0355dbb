"""How fast are operators that move elements, against ONNX Runtime running the same node?

    taskset -c 0 python benchmarks/data_movement.py [LEVEL]

One node each, with the layouts and sizes of image and language models. One thread each; medians over rounds in which the engines
take turns, of processor time, as others may use the machine. GB/s count the input and the output once.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime

import sardonyx
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.providers.cpu.provider import CpuProvider

NODES = {
    "image to channels-last": ((1, 3, 224, 224), "y = Transpose(x) {perm = [0, 2, 3, 1]}"),
    "image to channels-first": ((1, 224, 224, 3), "y = Transpose(x) {perm = [0, 3, 1, 2]}"),
    "features to channels-last": ((1, 256, 56, 56), "y = Transpose(x) {perm = [0, 2, 3, 1]}"),
    "features to channels-first": ((1, 56, 56, 256), "y = Transpose(x) {perm = [0, 3, 1, 2]}"),
    "heads": ((8, 128, 12, 64), "y = Transpose(x) {perm = [0, 2, 1, 3]}"),
    "heads, keys": ((8, 128, 12, 64), "y = Transpose(x) {perm = [0, 2, 3, 1]}"),
    "depth to space": ((1, 64, 128, 128), "y = DepthToSpace(x) {blocksize = 2}"),
    "depth to space, 3 x 3": ((1, 9, 224, 224), "y = DepthToSpace(x) {blocksize = 3}"),
    "concat of channels": ((1, 56, 56, 128), "y = Concat(x, x) {axis = 3}"),
    "concat of images": ((1, 128, 56, 56), "y = Concat(x, x) {axis = 1}"),
    "crop": ((1, 128, 64, 64), "b: int64[2] = [4, 4] e: int64[2] = [-4, -4] a: int64[2] = [2, 3] y = Slice(x, b, e, a)"),
    "every other row": ((1, 64, 64, 128), "b: int64[1] = [0] e: int64[1] = [64] t: int64[1] = [2] y = Slice(x, b, e, t, t)"),
    "frame": ((1, 64, 112, 112), "p: int64[8] = [0, 0, 1, 1, 0, 0, 1, 1] y = Pad(x, p)"),
    "frame of reflections": ((1, 64, 112, 112), 'p: int64[8] = [0, 0, 3, 3, 0, 0, 3, 3] y = Pad(x, p) {mode = "reflect"}'),
    "expand": ((1, 256, 1, 1), "s: int64[4] = [1, 256, 56, 56] y = Expand(x, s)"),
    "tile": ((64, 64), "r: int64[2] = [16, 16] y = Tile(x, r)"),
    "rows of a table": ((30522, 768), "i: int64[4, 32] = ... 1 y = Gather(x, i)"),
    "twice as large, nearest": ((1, 64, 80, 80), "s: float[4] = [1, 1, 2, 2] y = Resize(x, _, s)"),
    "twice as large, linear": ((1, 64, 80, 80), 's: float[4] = [1, 1, 2, 2] y = Resize(x, _, s) {mode = "linear"}'),
    "twice as large, cubic": ((1, 3, 80, 80), 's: float[4] = [1, 1, 2, 2] y = Resize(x, _, s) {mode = "cubic"}'),
    "channels-last, nearest": ((1, 80, 80, 64), "s: float[4] = [1, 2, 2, 1] y = Resize(x, _, s)"),
    "channels-last, linear": ((1, 80, 80, 64), 's: float[4] = [1, 2, 2, 1] y = Resize(x, _, s) {mode = "linear"}'),
}
"""Shape of the input, and the node."""
ROUNDS = 21


def engines(shape: tuple[int, ...], lines: str, level: str | None) -> list[Callable[[Array], Array]]:
    """This package and ONNX Runtime, on the same model."""
    text = f"ir_version 8 opset 17 graph main(x: float[{', '.join(map(str, shape))}]) -> (y) {{ {lines} }}"
    proto = to_bytes(parse_model(text))
    ours = sardonyx.InferenceSession(proto, providers=[CpuProvider(host_target(level), 1)])
    left = [placement.op_type for placement in ours.explain() if placement.provider != CpuProvider.name]
    if left:
        raise SystemExit(f"{left} fall back to the reference provider")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    theirs = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
    return [lambda x: ours.run(None, {"x": x})[0], lambda x: theirs.run(None, {"x": x})[0]]


def milliseconds(run: Callable[[Array], Array], x: Array) -> float:
    """Processor time of one call, over as many as take 2 ms."""
    count, spent = 0, 0.0
    while spent < 2e-3:
        start = time.process_time()
        run(x)
        spent += time.process_time() - start
        count += 1
    return spent / count * 1e3


def main() -> None:
    """Print one line for each node."""
    level = sys.argv[1] if len(sys.argv) > 1 else None
    print(f"{'':28}{'ours ms':>9}{'GB/s':>7}{'onnxruntime ms':>16}{'ratio':>7}")
    ratios = []
    for name, (shape, lines) in NODES.items():
        runs = engines(shape, lines, level)
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        first, second = (run(x) for run in runs)
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4)
        rounds = [[milliseconds(run, x) for run in runs] for _ in range(ROUNDS)]
        ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratios.append(statistics.median(one / other for one, other in rounds))
        size_bytes = first.nbytes + min(x.nbytes, first.nbytes)
        print(f"{name:28}{ours:9.3f}{size_bytes / ours / 1e6:7.1f}{theirs:16.3f}{ratios[-1]:7.2f}")
    print(f"geometric mean of ratios {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
