"""Measure GreedySearch and BeamSearch of com.microsoft with small decoders, beside onnxruntime where it is installed.

    taskset -c 0 python benchmarks/generation_loops.py [--prompt 16] [--length 96] [--batch 1] [--beams 4] [--rounds 12]

Decoders like GPT-2 with random weights, of three sizes. Printed are the least milliseconds of a whole search that the calling
thread computed, both engines on one thread and by turns, and whether the tokens are equal.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import sardonyx

SIZES = {"tiny": (2, 32, 4, 1000), "small": (4, 128, 4, 8000), "middle": (6, 512, 8, 8000)}
"""Layers, hidden size, heads and vocabulary."""
_MICROSOFT = "com.microsoft"
_INT, _FLOAT = TensorProto.INT32, TensorProto.FLOAT


def node(op_type: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """A node whose inputs and outputs are listed in a text."""
    return helper.make_node(op_type, inputs.split(), outputs.split(), domain=domain, **attributes)


def decoder(layers: int, hidden: int, heads: int, vocabulary: int, positions: int) -> onnx.GraphProto:
    """A decoder with caches, as the graph attribute of a search."""
    generator = np.random.default_rng(0)
    shapes = {"words": (vocabulary, hidden), "places": (positions, hidden), "head": (hidden, vocabulary)}
    nodes = [
        node("Gather", "words input_ids", "word"),
        node("Gather", "places position_ids", "place"),
        node("Add", "word place", "x0"),
    ]
    for i in range(layers):
        shapes |= {f"qkv{i}": (hidden, 3 * hidden), f"out{i}": (hidden, hidden)}
        shapes |= {f"up{i}": (hidden, 4 * hidden), f"down{i}": (4 * hidden, hidden)}
        attends = {"num_heads": heads, "unidirectional": 1}
        nodes += [
            node("LayerNormalization", f"x{i} ones zeros", f"n{i}"),
            node("Attention", f"n{i} qkv{i} bias attention_mask past_{i}", f"a{i} present_{i}", _MICROSOFT, **attends),
            node("MatMul", f"a{i} out{i}", f"o{i}"),
            node("Add", f"x{i} o{i}", f"h{i}"),
            node("LayerNormalization", f"h{i} ones zeros", f"m{i}"),
            node("MatMul", f"m{i} up{i}", f"u{i}"),
            node("FastGelu", f"u{i}", f"g{i}", _MICROSOFT),
            node("MatMul", f"g{i} down{i}", f"d{i}"),
            node("Add", f"h{i} d{i}", f"x{i + 1}"),
        ]
    nodes.append(node("MatMul", f"x{layers} head", "logits"))
    arrays = {name: generator.standard_normal(shape) / math.sqrt(shape[0]) for name, shape in shapes.items()}
    arrays |= {"ones": np.ones(hidden), "zeros": np.zeros(hidden), "bias": np.zeros(3 * hidden)}
    weights = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    value = helper.make_tensor_value_info
    names = (("input_ids", "length"), ("position_ids", "length"), ("attention_mask", "total"))
    pasts = [value(f"past_{i}", _FLOAT, [2, "rows", heads, "past", hidden // heads]) for i in range(layers)]
    presents = [value(f"present_{i}", _FLOAT, [2, "rows", heads, "total", hidden // heads]) for i in range(layers)]
    logits = value("logits", _FLOAT, ["rows", "length", vocabulary])
    inputs = [*(value(name, _INT, ["rows", dim]) for name, dim in names), *pasts]
    return helper.make_graph(nodes, "decoder", inputs, [logits, *presents], weights)


def search(op_type: str, size: Sequence[int], length: int, beams: int) -> bytes:
    """A model of one search; no token ends it before `length`."""
    numbers = {"most": np.int32(length), "least": np.int32(length), "penalty": np.float32(1)}
    inputs = "input_ids most least penalty"
    dims = ["batch", "length"]
    if op_type == "BeamSearch":
        numbers |= {"beams": np.int32(beams), "returned": np.int32(1), "power": np.float32(1)}
        inputs, dims = "input_ids most least beams returned power penalty", ["batch", "returned", "length"]
    tokens = {"eos_token_id": size[3], "pad_token_id": 0, "model_type": 0}
    made = node(op_type, inputs, "sequences", _MICROSOFT, decoder=decoder(*size, positions=length), **tokens)
    graph = helper.make_graph(
        [made],
        "search",
        [helper.make_tensor_value_info("input_ids", _INT, ["batch", "prompt"])],
        [helper.make_tensor_value_info("sequences", _INT, dims)],
        [numpy_helper.from_array(np.array([number]), name) for name, number in numbers.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_MICROSOFT, 1)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return content


def least_ms(sessions: Mapping[str, Any], feed: Mapping[str, Any], rounds: int) -> dict[str, float]:
    """The least milliseconds of each session's runs, by turns."""
    found = dict.fromkeys(sessions, math.inf)
    for _ in range(rounds):
        for name, session in sessions.items():
            start = time.thread_time()
            session.run(None, feed)
            found[name] = min(found[name], 1e3 * (time.thread_time() - start))
    return found


def main() -> None:
    """Print a line for each search and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("prompt", 16), ("length", 96), ("batch", 1), ("beams", 4), ("rounds", 12)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    modules: dict[str, Any] = {"sardonyx": sardonyx}
    try:
        import onnxruntime  # which a machine may lack
    except ImportError:
        print("onnxruntime is not installed")
    else:
        modules["onnxruntime"] = onnxruntime
    for size, numbers in SIZES.items():
        feed = {"input_ids": np.random.default_rng(1).integers(1, 900, (arguments.batch, arguments.prompt)).astype(np.int32)}
        for op_type in ("GreedySearch", "BeamSearch"):
            content = search(op_type, numbers, arguments.length, arguments.beams)
            sessions = {}
            for name, module in modules.items():
                options = module.SessionOptions()
                options.intra_op_num_threads = 1
                sessions[name] = module.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            results = [session.run(None, feed)[0] for session in sessions.values()]
            equal = all(np.array_equal(results[0], result) for result in results)
            times = least_ms(sessions, feed, arguments.rounds)
            ratio = f", ratio {times['sardonyx'] / times['onnxruntime']:.2f}" if len(times) > 1 else ""
            print(f"{size} {op_type}: " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in times.items()) + ratio, f"equal: {equal}")


if __name__ == "__main__":
    main()
