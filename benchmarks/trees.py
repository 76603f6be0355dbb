"""How long tree ensembles take beside onnxruntime: one row, all rows, and making a session, on forests that it makes.

    python benchmarks/trees.py [FOREST …] [--rows 1000] [--threads 1] [--seconds 0.5] [--large]

Trees are grown on random rows, down to a depth or until a leaf has few rows, so that they are as unbalanced as trained ones.
Times are medians of runs in turns; in parentheses ours / onnxruntime's, which is left out where it is not installed. `--large` adds
a forest of more than a million nodes, whose model alone takes some time to make.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


class Forest(NamedTuple):
    """What an ensemble is like."""

    trees: int
    """How many trees it has."""
    depth: int
    """The most tests on a path."""
    features: int = 20
    """How many features a row has."""
    grown_on: int = 2000
    """On how many rows a tree is grown."""
    least: int = 5
    """A node with at most so many rows is a leaf."""
    kind: str = "regressor"
    """"regressor", "boosted" classes (a tree votes for one of them), or "voting" (each leaf votes for all)."""
    targets: int = 1
    """How many targets or classes get votes."""
    transform: str = "NONE"
    """The post transform."""


FORESTS = {
    "regressor, 10 x depth 3": Forest(10, 3),
    "regressor, 100 x depth 3": Forest(100, 3, features=10),
    "regressor, 120 x depth 5": Forest(120, 5, features=10),
    "regressor, 1000 x depth 6": Forest(1000, 6),
    "regressor, 10 x depth 20": Forest(10, 20, grown_on=20_000, least=1),
    "binary, boosted, 100 x depth 8": Forest(100, 8, least=60, kind="boosted", transform="LOGISTIC"),
    "10 classes, boosted, 300 x depth 4": Forest(300, 4, features=64, kind="boosted", targets=10, transform="SOFTMAX"),
    "10 classes, voting, 100 x depth 12": Forest(100, 12, features=64, kind="voting", targets=10),
    "2 classes, voting, 100 x depth 20": Forest(100, 20, grown_on=4000, least=2, kind="voting", targets=2),
}
LARGE = {"regressor, 200 x depth 16, 1.2 million nodes": Forest(200, 16, grown_on=10_000, least=1)}


def _grow(rng: np.random.Generator, forest: Forest, data: Any) -> dict[str, list[Any]]:
    """Return the nodes of one tree in the order in which scikit-learn numbers them: a node, its true side, its false side."""
    tree: dict[str, list[Any]] = {name: [] for name in ("feature", "value", "true", "false", "leaf")}
    waiting: list[tuple[Any, int, int, str]] = [(np.arange(len(data)), 0, -1, "")]
    while waiting:
        rows, depth, parent, side = waiting.pop()
        node = len(tree["leaf"])
        if parent >= 0:
            tree[side][parent] = node
        for name, value in (("feature", 0), ("value", 0.0), ("true", 0), ("false", 0), ("leaf", True)):
            tree[name].append(value)
        if depth == forest.depth or len(rows) <= forest.least:
            continue
        feature = int(rng.integers(forest.features))
        threshold = float(data[rows[rng.integers(len(rows))], feature])
        holds = data[rows, feature] <= threshold
        if holds.all() or not holds.any():
            continue
        tree["leaf"][node], tree["feature"][node], tree["value"][node] = False, feature, threshold
        waiting += [(rows[~holds], depth + 1, node, "false"), (rows[holds], depth + 1, node, "true")]
    return tree


def _votes(rng: np.random.Generator, forest: Forest, tree: int, leaves: Any) -> tuple[Any, Any, Any]:
    """Return nodes, targets and weights of the votes of one tree."""
    if forest.kind != "voting":
        return leaves, np.full(len(leaves), tree % forest.targets), rng.standard_normal(len(leaves)) * 0.1
    shares = rng.dirichlet(np.full(forest.targets, 0.3), len(leaves)) / forest.trees
    return np.repeat(leaves, forest.targets), np.tile(np.arange(forest.targets), len(leaves)), shares.reshape(-1)


def make(forest: Forest) -> tuple[bytes, int]:
    """Return a model, and how many nodes its trees have."""
    from onnx import TensorProto, helper

    rng = np.random.default_rng(0)
    data = rng.standard_normal((forest.grown_on, forest.features)).astype(np.float32)
    nodes: dict[str, list[Any]] = {name: [] for name in ("tree", "node", "feature", "value", "true", "false", "leaf")}
    ballots: list[list[Any]] = [[], [], [], []]
    for number in range(forest.trees):
        tree = _grow(rng, forest, data)
        count = len(tree["leaf"])
        for name, column in {**tree, "tree": [number] * count, "node": list(range(count))}.items():
            nodes[name] += column
        voters, targets, weights = _votes(rng, forest, number, np.flatnonzero(tree["leaf"]))
        for ballot, column in zip(ballots, ([number] * len(voters), voters, targets, weights.astype(np.float32)), strict=True):
            ballot += list(column)
    kind, classes = ("target", 0) if forest.kind == "regressor" else ("class", max(forest.targets, 2))
    names = {
        "tree": "treeids",
        "node": "nodeids",
        "feature": "featureids",
        "value": "values",
        "true": "truenodeids",
        "false": "falsenodeids",
    }
    attributes: dict[str, Any] = {f"nodes_{name}": nodes[column] for column, name in names.items()}
    attributes["nodes_modes"] = ["LEAF" if leaf else "BRANCH_LEQ" for leaf in nodes["leaf"]]
    attributes |= {
        f"{kind}_{name}": [value.item() if hasattr(value, "item") else value for value in column]
        for name, column in zip(("treeids", "nodeids", "ids", "weights"), ballots, strict=True)
    }
    attributes |= {"classlabels_int64s": list(range(classes))} if classes else {"n_targets": forest.targets}
    op_type = "TreeEnsembleClassifier" if classes else "TreeEnsembleRegressor"
    info = helper.make_tensor_value_info
    outputs = [info("label", TensorProto.INT64, ["N"])] if classes else []
    outputs.append(info("scores", TensorProto.FLOAT, ["N", classes or forest.targets]))
    made = helper.make_node(
        op_type, ["x"], [value.name for value in outputs], domain="ai.onnx.ml", post_transform=forest.transform, **attributes
    )
    graph = helper.make_graph([made], "forest", [info("x", TensorProto.FLOAT, ["N", forest.features])], outputs)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString(), len(nodes["leaf"])


def _medians(calls: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """Return the median time of each call, in seconds, made in turns."""
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end or len(times[0]) < 5:
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times]


def _packages() -> list[Any]:
    import sardonyx

    try:
        import onnxruntime
    except ImportError:
        return [sardonyx]
    return [sardonyx, onnxruntime]


def _options(package: Any, threads: int) -> Any:
    options = package.SessionOptions()
    options.intra_op_num_threads = threads
    return options


def measure(name: str, forest: Forest, rows: int, threads: int, seconds: float) -> list[list[float]]:
    """Print the times of one forest; returns those of one row, all rows and a session, ours first."""
    model, nodes = make(forest)
    packages = _packages()

    def creator(package: Any) -> Callable[[], Any]:
        return lambda: package.InferenceSession(model, _options(package, threads), providers=["CPUExecutionProvider"])

    x = np.random.default_rng(1).standard_normal((rows, forest.features)).astype(np.float32)
    sessions = [creator(package)() for package in packages]
    found = [
        _medians([lambda s=session, given=given: s.run(None, {"x": given}) for session in sessions], seconds)
        for given in (x[:1], x)
    ]
    found.append(_medians([creator(package) for package in packages], seconds))
    cells = [_cell(own, scale) for own, scale in zip(found, (1e6, 1e6, 1e3), strict=True)]
    print(f"{name:46} {nodes:>8} nodes   one row {cells[0]} us   {rows} rows {cells[1]} us   session {cells[2]} ms", flush=True)
    return found


def _cell(times: Sequence[float], scale: float) -> str:
    text = f"{times[0] * scale:8.1f}"
    return f"{text} ({times[0] / times[1]:.2f})" if len(times) > 1 else text


def main() -> None:
    """Measure the forests that are asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forests", nargs="*", help="parts of names; none for all")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each call is timed")
    parser.add_argument("--large", action="store_true", help="with the forest of a million nodes")
    given = parser.parse_args()
    forests = FORESTS | (LARGE if given.large else {})
    chosen = {name: forest for name, forest in forests.items() if not given.forests or any(part in name for part in given.forests)}
    found = [measure(name, forest, given.rows, given.threads, given.seconds) for name, forest in chosen.items()]
    if found and len(found[0][0]) > 1:
        ratios = np.array([[times[0] / times[1] for times in own] for own in found])
        means = np.exp(np.log(ratios).mean(axis=0))
        print("geometric means of ours / onnxruntime's: one row {:.2f}, all rows {:.2f}, session {:.2f}".format(*means))


if __name__ == "__main__":
    main()
