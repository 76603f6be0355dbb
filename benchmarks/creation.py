"""How long sessions of large graphs take to make, beside onnxruntime where it is installed.

    python benchmarks/creation.py [--nodes 10000 30000 100000]

For each kind of graph and number of nodes: the seconds of the processor's time that `InferenceSession` takes, in a process of its
own that has imported the package and made a small session. The bar: at most five times onnxruntime's for 100,000 chained nodes,
and time that is linear in the nodes.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from onnx import ModelProto, NodeProto, TensorProto, helper

BAR = 5.0


def chain(count: int) -> ModelProto:
    """An Add after an Add, each with the input of the graph."""
    return _model(
        [helper.make_node("Add", [f"v{index}", "x"], [f"v{index + 1}"]) for index in range(count)], ["v0", "x"], f"v{count}"
    )


def many_inputs(count: int, op_type: str, **attributes: int) -> ModelProto:
    """A node that reads `count` results of other nodes."""
    nodes = [helper.make_node("Mul", ["x", f"v{index}"], [f"p{index}"]) for index in range(count)]
    nodes.append(helper.make_node(op_type, [f"p{index}" for index in range(count)], ["y"], **attributes))
    return _model(nodes, ["x", *(f"v{index}" for index in range(count))], "y")


def calls(count: int) -> ModelProto:
    """A chain of calls of one function."""
    body = [helper.make_node("Add", ["a", "b"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    function = helper.make_function("own", "AddRelu", ["a", "b"], ["y"], body, [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("AddRelu", [f"v{index}", "x"], [f"v{index + 1}"], domain="own") for index in range(count)]
    model = _model(nodes, ["v0", "x"], f"v{count}")
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


def loops(count: int) -> ModelProto:
    """A Loop after a Loop, each around one node."""
    nodes = []
    for index in range(count):
        inputs = [("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("s", TensorProto.FLOAT, [4])]
        outputs = [("more", TensorProto.BOOL, []), ("next", TensorProto.FLOAT, [4])]
        steps = [helper.make_node("Identity", ["go"], ["more"]), helper.make_node("Neg", ["s"], ["next"])]
        given, made = ([helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs))
        body = helper.make_graph(steps, "body", given, made)
        nodes.append(helper.make_node("Loop", ["count", "", f"v{index}"], [f"v{index + 1}"], body=body))
    model = _model(nodes, ["v0"], f"v{count}")
    model.graph.input.append(helper.make_tensor_value_info("count", TensorProto.INT64, []))
    return model


def symbols(count: int) -> ModelProto:
    """A node for each of many inputs, whose sizes have names of their own."""
    nodes = [helper.make_node("Relu", [f"v{index}"], [f"r{index}"]) for index in range(count)]
    nodes.append(helper.make_node("Concat", [f"r{index}" for index in range(count)], ["y"], axis=0))
    model = _model(nodes, [f"v{index}" for index in range(count)], "y")
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = f"{value.name}_size"
    return model


def _model(nodes: Sequence[NodeProto], inputs: Sequence[str], output: str) -> ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in inputs]
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, [None])
    graph = helper.make_graph(nodes, "large", values, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


GRAPHS: Mapping[str, Callable[[int], ModelProto]] = {
    "chain": chain,
    "concat": lambda count: many_inputs(count, "Concat", axis=0),
    "max": lambda count: many_inputs(count, "Max"),
    "calls": calls,
    "loops": loops,
    "symbols": symbols,
}


def measure(package: str, kind: str, count: int) -> float:
    """Seconds of processor time that a session of `package` takes; called in a process of its own."""
    api = importlib.import_module(package)
    data = GRAPHS[kind](count).SerializeToString()
    api.InferenceSession(GRAPHS[kind](2).SerializeToString(), providers=["CPUExecutionProvider"])
    start = time.process_time()
    session = api.InferenceSession(data, providers=["CPUExecutionProvider"])
    took = time.process_time() - start
    del session
    return took


def measured_apart(package: str, kind: str, count: int) -> float:
    """`measure` in a new process."""
    command = [sys.executable, __file__, "--measure", package, kind, str(count)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(measure(options.measure[0], options.measure[1], int(options.measure[2])))
        return
    has_peer = importlib.util.find_spec("onnxruntime") is not None
    print(f"{'graph':8}{'nodes':>9}{'sardonyx s':>12}{'onnxruntime s':>15}{'ratio':>8}")
    for kind in GRAPHS:
        for count in options.nodes if kind == "chain" else [nodes // 10 for nodes in options.nodes]:
            own = measured_apart("sardonyx", kind, count)
            peer = measured_apart("onnxruntime", kind, count) if has_peer else None
            beside = (
                ""
                if peer is None
                else f"{peer:15.2f}{own / peer:8.1f}{'  over the bar' if own > BAR * peer and kind == 'chain' else ''}"
            )
            print(f"{kind:8}{count:9}{own:12.2f}{beside}", flush=True)


if __name__ == "__main__":
    main()
