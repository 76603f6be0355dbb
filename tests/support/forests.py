"""Random tree ensembles, and sessions that run them on the CPU provider alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from support.cpu_run import cpu_model_session

from sardonyx import InferenceSession
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Attribute, AttributeKind, Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.ir.shape import symbol

__all__ = ["DTYPES", "features", "forest_model", "forest_session", "named_trees", "split_trees"]

DTYPES = {np.float32: DataType.FLOAT, np.float64: DataType.DOUBLE, np.int32: DataType.INT32, np.int64: DataType.INT64}
"""The types of features."""
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def features(rows: int, width: int, dtype: type = np.float32, *, special: bool = False) -> Array:
    """Rows of small integers, so that tests of equality and at thresholds are met; some of them special with `special`."""
    rng = np.random.default_rng(rows)
    found: Array = rng.integers(-3, 4, (rows, width)).astype(dtype)
    if special:
        found[rng.random(found.shape) < 0.3] = np.nan
        found[rng.random(found.shape) < 0.1] = np.inf
        found[rng.random(found.shape) < 0.1] = -np.inf
        found[rng.random(found.shape) < 0.1] = -0.0
    return found


def _grow(rng: np.random.Generator, nodes: int) -> tuple[list[int], list[int], list[int]]:
    """Return children (true, false) and parents of a random binary tree of `nodes` inner nodes; children are -1 for leaves."""
    true, false = [-1], [-1]
    leaves = [0]
    for _ in range(nodes):
        node = leaves.pop(int(rng.integers(len(leaves))))
        true[node], false[node] = len(true), len(true) + 1
        leaves += [len(true), len(true) + 1]
        true += [-1, -1]
        false += [-1, -1]
    return true, false, leaves


def named_trees(
    kind: str,
    trees: int,
    nodes: int,
    *,
    width: int = 5,
    targets: int = 1,
    votes: str = "one",
    modes: tuple[str, ...] = ("BRANCH_LEQ",),
    missing: bool = False,
    double: bool = False,
    nonnegative: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Return attributes of TreeEnsembleClassifier (kind "class") or TreeEnsembleRegressor ("target").

    Args:
        kind: the prefix of votes.
        trees: how many.
        nodes: how many inner nodes each has.
        width: how many features there are.
        targets: how many targets or classes.
        votes: "one" target for each tree, "dense", "list": any number of votes for each leaf, or "first": all for target 0.
        modes: the tests, in turn.
        missing: whether some tests hold for NaN.
        double: whether thresholds and weights are float64.
        nonnegative: whether no weight is negative.
        seed: makes other trees.
    """
    rng = np.random.default_rng(seed)
    made: dict[str, list[Any]] = {
        name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "true", "false", "missing")
    }
    ballots: list[tuple[int, int, int, float]] = []
    for tree in range(trees):
        true, false, leaves = _grow(rng, nodes)
        names = rng.permutation(2 * len(true))[: len(true)] if seed % 2 else np.arange(len(true))
        for node in range(len(true)):
            is_leaf = true[node] < 0
            made["treeids"].append(3 * tree)
            made["nodeids"].append(int(names[node]))
            made["featureids"].append(0 if is_leaf else int(rng.integers(width)))
            made["values"].append(float(rng.integers(-3, 4)) + (0.1 if double else 0.0) * float(rng.integers(2)))
            made["modes"].append("LEAF" if is_leaf else modes[int(rng.integers(len(modes)))])
            made["true"].append(0 if is_leaf else int(names[true[node]]))
            made["false"].append(0 if is_leaf else int(names[false[node]]))
            made["missing"].append(int(missing and rng.random() < 0.5))
        for leaf in leaves:
            for target in _targets_of(rng, votes, tree, targets):
                weight = float(np.float32(rng.standard_normal()))
                ballots.append((3 * tree, int(names[leaf]), target, abs(weight) if nonnegative else weight))
    order = rng.permutation(len(ballots)) if seed % 2 else np.arange(len(ballots))
    columns = [[ballots[index][column] for index in order] for column in range(4)]
    names_of = {"true": "truenodeids", "false": "falsenodeids", "missing": "missing_value_tracks_true"}
    found: dict[str, Any] = {f"nodes_{names_of.get(name, name)}": tuple(column) for name, column in made.items()}
    found |= {
        f"{kind}_{name}": tuple(column) for name, column in zip(("treeids", "nodeids", "ids", "weights"), columns, strict=True)
    }
    if double:
        found["nodes_values_as_tensor"] = np.array(found.pop("nodes_values"))
        found[f"{kind}_weights_as_tensor"] = np.array(found.pop(f"{kind}_weights"))
    return found | ({"n_targets": targets} if kind == "target" else {"classlabels_int64s": tuple(range(7, 7 + targets))})


def _targets_of(rng: np.random.Generator, votes: str, tree: int, targets: int) -> list[int]:
    if votes == "dense":
        return [int(target) for target in rng.permutation(targets)]
    if votes == "list":
        return [int(target) for target in rng.integers(targets, size=int(rng.integers(3)))]
    return [0 if votes == "first" else (5 * tree) % targets]


def split_trees(
    trees: int, nodes: int, *, width: int = 5, targets: int = 1, dtype: type = np.float32, seed: int = 0
) -> dict[str, Any]:
    """Return attributes of TreeEnsemble-5, with tests of all modes but membership."""
    rng = np.random.default_rng(seed)
    roots, sides, leaves = [], {True: ([], []), False: ([], [])}, 0  # type: ignore[var-annotated]
    count = 0
    for _ in range(trees):
        true, false, _ = _grow(rng, nodes)
        inner = [node for node in range(len(true)) if true[node] >= 0]
        place = {node: count + number for number, node in enumerate(inner)}
        roots.append(count)
        for node in inner:
            for side, child in ((True, true[node]), (False, false[node])):
                is_leaf = true[child] < 0
                sides[side][0].append(leaves if is_leaf else place[child])
                sides[side][1].append(int(is_leaf))
                leaves += is_leaf
        count += len(inner)
    return {
        "tree_roots": tuple(roots),
        "nodes_featureids": tuple(rng.integers(width, size=count).tolist()),
        "nodes_modes": rng.integers(len(_MODES), size=count).astype(np.uint8),
        "nodes_splits": rng.integers(-3, 4, count).astype(dtype),
        "nodes_truenodeids": tuple(sides[True][0]),
        "nodes_trueleafs": tuple(sides[True][1]),
        "nodes_falsenodeids": tuple(sides[False][0]),
        "nodes_falseleafs": tuple(sides[False][1]),
        "nodes_missing_value_tracks_true": tuple(rng.integers(2, size=count).tolist()),
        "leaf_targetids": tuple(rng.integers(targets, size=leaves).tolist()),
        "leaf_weights": rng.standard_normal(leaves).astype(dtype),
        "n_targets": targets,
    }


def forest_model(op_type: str, attributes: Mapping[str, Any], dtype: type = np.float32, width: int | None = 5) -> Model:
    """Return a model of one ensemble of rows (N, width); None leaves the width open."""
    data = Value("x", TensorType(DTYPES[dtype], (symbol("N"), symbol("F") if width is None else width)))
    outputs = [Value("label"), Value("y")] if op_type == "TreeEnsembleClassifier" else [Value("y")]
    made = {name: _attribute(value) for name, value in attributes.items()}
    node = Node(op_type, [data], outputs, made, domain="ai.onnx.ml", version=5 if op_type == "TreeEnsemble" else 3, name="trees")
    return Model(Graph("g", [data], outputs, (), [node]), {"": 21, "ai.onnx.ml": node.version})


def _attribute(value: Any) -> Attribute:
    if isinstance(value, np.ndarray):
        return Attribute(AttributeKind.TENSOR, Tensor.from_array(value))
    return Attribute.of(value) if value != () else Attribute(AttributeKind.INTS, ())


def forest_session(
    op_type: str,
    attributes: Mapping[str, Any],
    dtype: type = np.float32,
    width: int | None = 5,
    *,
    threads: int = 1,
    isa: str | None = None,
) -> InferenceSession:
    """A session of one ensemble that runs on the CPU provider; nothing of it may fall back."""
    return cpu_model_session(forest_model(op_type, attributes, dtype, width), threads=threads, isa=isa)
