"""How many nodes a model is saved with after full optimization, against ONNX Runtime's level 99.

    python benchmarks/node_counts.py                                the models of zoo.py, or those in the folder of --cache
    python benchmarks/node_counts.py --zoo FOLDER bert_base resnet50 --histogram

Both optimize the model and save it; counted are the nodes of the main graph and all bodies in the two files. Nodes that only change
the layout for ONNX Runtime's kernels, ReorderInput and ReorderOutput, are not counted. The bar: no model of ours has more nodes.

    ours        nodes of the file
    newest      nodes where the file may import the newest operator set, as a session does
    theirs      nodes of ONNX Runtime's file
    more of     operators of which our file has more
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnxruntime
from zoo import OWN, Zoo, add_options

from sardonyx.formats.onnx import load
from sardonyx.ir import Model
from sardonyx.ir.walk import all_nodes
from sardonyx.optimize.contract import Level
from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.target import Target
from sardonyx.providers.reference.provider import evaluate
from sardonyx.session.optimization import optimize_file, save_optimized
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings

_ONLY_LAYOUT = {"ReorderInput", "ReorderOutput"}


def ours(path: str, folder: str) -> Counter[str]:
    """Operators of the model that we save."""
    options = SessionOptions()
    options.optimized_model_filepath = str(Path(folder) / "ours.onnx")
    settings = read_settings(options)
    model, _ = optimize_file(path, settings)
    save_optimized(model, settings.save)
    return _operators(load(options.optimized_model_filepath))


def newest(path: str) -> Counter[str]:
    """The same without keeping to the operator set that the model imports."""
    model = load(path)
    optimize(model, Level.ALL, evaluate=evaluate, target=Target.file(keeps_opset=False))
    return _operators(model)


def _operators(model: Model) -> Counter[str]:
    return Counter(node.op_type for node in all_nodes(model))


def theirs(path: str, folder: str) -> Counter[str]:
    """Operators of the model that ONNX Runtime saves at level 99."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(Path(folder) / "theirs.onnx")
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "theirs.data")
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
    add_options(parser)
    arguments = parser.parse_args()
    zoo = Zoo(arguments.zoo, arguments.cache)
    made = sorted(path.stem for path in Path(arguments.cache).glob("*.onnx") if not path.stem.startswith("own_"))
    names = arguments.models or made or list(OWN)
    above = []
    print(f"{'model':24s} {'ours':>6s} {'newest':>6s} {'theirs':>6s}  more of")
    for name in names:
        found = Path(arguments.cache) / f"{name}.onnx"
        path = str(found if found.is_file() else zoo.path(name))
        with tempfile.TemporaryDirectory() as folder:
            own, other = ours(path, folder), theirs(path, folder)
        mark = "*" if own.total() > other.total() else " "
        above += [name] * (mark == "*")
        free = newest(path).total()
        print(f"{name:24s} {own.total():6d} {free:6d} {other.total():6d}{mark} {_text(own - other)}", flush=True)
        if arguments.histogram:
            print(f"    ours    {_text(own)}\n    theirs  {_text(other)}", flush=True)
    print(f"{len(above)} of {len(names)} models above the bar{': ' if above else ''}{', '.join(above)}")
    sys.exit(bool(above))


if __name__ == "__main__":
    main()
