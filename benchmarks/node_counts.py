"""How many nodes are left after full optimization, against ONNX Runtime's level 99.

    python benchmarks/node_counts.py                                every dev model of the zoo that is at hand
    python benchmarks/node_counts.py bert_base resnet50 --histogram

For each model three counts, over the main graph and all bodies:

    graph       nodes of our optimized model before it is split among providers, with quantized operators as in a saved model
    steps       the same where the CPU provider computes a node in the store of another (an activation, a residual): one for each
                group, as it runs. What ONNX Runtime writes as FusedConv, FusedGemm, BiasGelu or SkipLayerNormalization is this
    theirs      nodes of the model that ONNX Runtime saves at level 99, in which those fusions are nodes

and the operators of which our steps have more. Nodes that only change the layout for kernels are not counted on either side: the
Transpose nodes that conversion to NHWC put in, and ReorderInput and ReorderOutput. The bar: no model has more steps than ONNX
Runtime has nodes.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnxruntime

from sardonyx.formats.onnx import load
from sardonyx.ir import Graph, Model, Node, Value
from sardonyx.ir.walk import all_graphs
from sardonyx.optimize.contract import Level
from sardonyx.optimize.pipeline import optimize
from sardonyx.partition.assign import assign
from sardonyx.partition.cut import cut
from sardonyx.provider import Provider
from sardonyx.providers.cpu.fuse import Group, group_nodes
from sardonyx.providers.cpu.lowering import find_operator
from sardonyx.providers.cpu.provider import NAME as CPU
from sardonyx.providers.cpu.provider import create as create_cpu
from sardonyx.providers.reference.provider import create as create_reference
from sardonyx.providers.reference.provider import evaluate
from sardonyx.session.options import SessionOptions
from sardonyx.session.widening import widen_model

_ONLY_LAYOUT = {"ReorderInput", "ReorderOutput"}


def ours(path: str) -> tuple[Counter[str], Counter[str]]:
    """Operators of our optimized model, and the anchors of its steps."""
    model = load(path)
    providers: list[Provider] = [create_cpu({}), create_reference({})]
    optimize(model, Level.ALL, evaluate=evaluate)
    if widen_model(model, providers, SessionOptions()):
        optimize(model, Level.ALL, evaluate=evaluate)
    operators = Counter(node.op_type for graph in _graphs(model) for node in graph)
    steps: Counter[str] = Counter()
    for graph in list(_graphs(model)):
        steps.update(_steps(graph, providers))
    return operators, steps


def _graphs(model: Model) -> Iterator[Graph]:
    return iter([model.graph, *(graph for graph in all_graphs(model) if graph is not model.graph)])


def _steps(graph: Graph, providers: list[Provider]) -> Counter[str]:
    """The anchors of what runs: a group of the CPU provider, or a node of another's."""
    before = set(graph)
    cuts, _ = cut(graph, assign(graph, providers).units, "part_")
    found: Counter[str] = Counter()
    for part in cuts:
        if part.provider.name != CPU:
            found.update(node.op_type for node in part.partition.nodes)
            continue
        groups = group_nodes(part.partition.nodes, functools.partial(_joins, frozenset(part.partition.outputs)))
        anchors = (group.anchor for group in groups)
        found.update(node.op_type for node in anchors if node in before or node.op_type != "Transpose")
    return found


def _joins(outputs: frozenset[Value], group: Group, node: Node, value: Value) -> bool:
    operator = find_operator(group.anchor.domain, group.anchor.op_type)
    return operator is not None and value not in outputs and operator.joins(group, node, value)


def theirs(path: str, folder: str) -> Counter[str]:
    """Operators of the model that ONNX Runtime saves at level 99."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "optimized.data")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    graph = onnx.load(options.optimized_model_filepath, load_external_data=False).graph
    return Counter(node.op_type for node in _nodes(graph) if node.op_type not in _ONLY_LAYOUT)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)


def _text(counts: Counter[str]) -> str:
    return " ".join(f"{name}x{count}" for name, count in counts.most_common())


def main() -> None:
    """Print a line for each model, then how many are above the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--histogram", action="store_true")
    parser.add_argument("--cache", default=os.environ.get("SARDONYX_ZOO", str(Path(tempfile.gettempdir()) / "sardonyx-zoo")))
    arguments = parser.parse_args()
    names = arguments.models or sorted(path.stem for path in Path(arguments.cache).glob("*.onnx"))
    above = []
    print(f"{'model':24s} {'graph':>6s} {'steps':>6s} {'theirs':>6s}  more of")
    for name in names:
        path = str(Path(arguments.cache) / f"{name}.onnx")
        operators, steps = ours(path)
        with tempfile.TemporaryDirectory() as folder:
            other = theirs(path, folder)
        mark = "*" if steps.total() > other.total() else " "
        above += [name] * (mark == "*")
        print(f"{name:24s} {operators.total():6d} {steps.total():6d} {other.total():6d}{mark} {_text(steps - other)}", flush=True)
        if arguments.histogram:
            print(f"    graph   {_text(operators)}\n    steps   {_text(steps)}\n    theirs  {_text(other)}", flush=True)
    print(f"{len(above)} of {len(names)} models above the bar: {', '.join(above)}")
    sys.exit(bool(above))


if __name__ == "__main__":
    main()
