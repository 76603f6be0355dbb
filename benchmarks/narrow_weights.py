"""How fast are products with weights of 16, 8 and 4 bits, against ONNX Runtime running the same nodes?

    taskset -c 0 python benchmarks/narrow_weights.py [--threads N] [--rounds R] [--size K N]

Each model is a chain of products with constant weights, made here: MatMul of float16, and MatMulNBits (com.microsoft) of 4 and 8
bits in blocks of 32, in float32 and with the accuracy level that allows rows of 8 bits. Engines take turns; printed are least
times, their ratio, and the bytes of weights that are gone through in a second. Without onnxruntime only our times are printed.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx.numpy_helper

import sardonyx
from sardonyx.dtypes import Array

ROWS = (1, 4, 16, 128, 512)
LAYERS, BLOCK = 4, 32
KINDS = ("float16", "4 bits", "4 bits, rows of 8", "8 bits", "8 bits, rows of 8")

Run = Callable[[Array], object]


def weights(kind: str, layer: int, K: int, N: int) -> tuple[onnx.NodeProto, list[Array]]:
    """One product, and its weights."""
    generator, source, result = np.random.default_rng(layer), f"x{layer}", f"x{layer + 1}"
    if kind == "float16":
        drawn = (generator.standard_normal((K, N)) / np.sqrt(K)).astype(np.float16)
        return onnx.helper.make_node("MatMul", [source, f"w{layer}_0"], [result]), [drawn]
    bits, blocks = int(kind[0]), -(-K // BLOCK)
    numbers = generator.integers(0, 256, (N, blocks, BLOCK * bits // 8), dtype=np.uint8)
    scales = (generator.uniform(0.5, 1.5, (N, blocks)) / (np.sqrt(K) * (1 << (bits - 1)))).astype(np.float32)
    about = {"K": K, "N": N, "bits": bits, "block_size": BLOCK, "accuracy_level": 4 if "rows" in kind else 0}
    inputs = [source, f"w{layer}_0", f"w{layer}_1"]
    return onnx.helper.make_node("MatMulNBits", inputs, [result], domain="com.microsoft", **about), [numbers, scales]


def model(kind: str, K: int, N: int) -> tuple[bytes, int]:
    """The chain, and the bytes of its weights."""
    nodes, initializers, size_bytes = [], [], 0
    for layer in range(LAYERS):
        node, arrays = weights(kind, layer, *((K, N) if layer % 2 == 0 else (N, K)))
        nodes.append(node)
        initializers += [onnx.numpy_helper.from_array(array, f"w{layer}_{place}") for place, array in enumerate(arrays)]
        size_bytes += sum(array.nbytes for array in arrays)
    element = onnx.TensorProto.FLOAT16 if kind == "float16" else onnx.TensorProto.FLOAT
    ends = [onnx.helper.make_tensor_value_info(name, element, ["m", K]) for name in ("x0", f"x{LAYERS}")]
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    graph = onnx.helper.make_graph(nodes, "products", ends[:1], ends[1:], initializers)
    return bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()), size_bytes


def engines(proto: bytes, threads: int) -> Iterator[Run]:
    """This package, and ONNX Runtime where it is installed."""
    modules = [sardonyx]
    try:
        import onnxruntime

        modules.append(onnxruntime)
    except ImportError:
        pass
    for module in modules:
        options = module.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        session = module.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
        yield lambda x, session=session: session.run(None, {"x0": x})


def seconds(run: Run, x: Array) -> float:
    """Time per call, over enough calls to last 5 ms."""
    calls, elapsed = 1, 0.0
    while elapsed < 5e-3:
        start = time.perf_counter()
        for _ in range(calls):
            run(x)
        elapsed = time.perf_counter() - start
        calls *= 2
    return elapsed / (calls // 2)


def report(threads: int, rounds: int, K: int, N: int) -> None:
    """Print the table."""
    print(f"{'weights':>18} {'rows':>5} {'sardonyx':>12} {'onnxruntime':>12} {'ratio':>6} {'GB/s':>6}")
    ratios = []
    for kind in KINDS:
        proto, size_bytes = model(kind, K, N)
        runs = list(engines(proto, threads))
        for rows in ROWS:
            x = np.random.default_rng(rows).standard_normal((rows, K)).astype(np.float16 if kind == "float16" else np.float32)
            times: list[list[float]] = [[] for _ in runs]
            for _ in range(rounds):
                for run, found in zip(runs, times, strict=True):
                    found.append(seconds(run, x))
            best = [min(found) for found in times]
            line = f"{kind:>18} {rows:5} {best[0] * 1e3:9.3f} ms"
            if len(best) == 2:
                ratios.append(best[0] / best[1])
                line += f" {best[1] * 1e3:9.3f} ms {ratios[-1]:6.2f}"
            print(f"{line} {size_bytes / best[0] / 1e9:6.1f}", flush=True)
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--size", type=int, nargs=2, default=(2048, 4096), metavar=("K", "N"))
    given = parser.parse_args()
    report(given.threads, given.rounds, *given.size)
