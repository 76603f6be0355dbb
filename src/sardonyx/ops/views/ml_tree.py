"""TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidGraph
from sardonyx.ir import ArrayAttribute, AttributeKind, Operator
from sardonyx.ops.forest import MEMBER, MODES, Forest, Modes, forest_of_named_nodes, forest_of_split_nodes, numbers_of

__all__ = ["AGGREGATES", "POST_TRANSFORMS", "TreeEnsemble"]

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
"""The names of TreeEnsemble-5's codes of functions that combine votes, in their order."""
POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""The names of TreeEnsemble-5's codes of post transforms, in their order."""


class TreeEnsemble(NamedTuple):
    """What an ensemble does with the votes of its trees, which `forest` reads."""

    targets: int
    """How many targets or classes there are."""
    labels: tuple[int, ...] | tuple[str, ...] | None
    """The labels of a classifier; None for a regression."""
    aggregate: str
    """How votes are combined, one of AGGREGATES."""
    post_transform: str
    """What becomes of a row's scores, one of POST_TRANSFORMS."""
    base: Array
    """The base values, float32 or float64; empty where there are none."""
    weights_dtype: np.dtype[np.generic]
    """The type of weights: float32 or float64."""
    has_members: bool
    """Whether some node tests membership of a set."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node without its trees; raises InvalidGraph for unknown names and codes, and a classifier without labels."""
        if node.op_type == "TreeEnsemble":
            return cls._of_split_nodes(node)
        is_classifier = node.op_type == "TreeEnsembleClassifier"
        labels = node.texts("classlabels_strings", ()) or node.integers("classlabels_int64s", ()) if is_classifier else None
        if labels is not None and not labels:
            raise InvalidGraph("the model has no class labels; expected classlabels_strings or classlabels_int64s")
        targets = node.integer("n_targets", 1) if labels is None else len(labels)
        aggregate = "SUM" if is_classifier else node.text("aggregate_function", "SUM")
        base = numbers_of(node.numbers("base_values"), _array(node, "base_values_as_tensor"))
        double = _tensor_dtype(node, "class_weights_as_tensor" if is_classifier else "target_weights_as_tensor")
        modes = _modes(node)
        members = MODES[MEMBER] in (modes.texts if isinstance(modes, Modes) else modes)
        return cls(targets, labels, *_known(aggregate, node.text("post_transform", "NONE")), base, double, members)

    @classmethod
    def _of_split_nodes(cls, node: Operator) -> Self:
        codes = node.integer("aggregate_function", 1), node.integer("post_transform", 0)
        if not 0 <= codes[0] < len(AGGREGATES) or not 0 <= codes[1] < len(POST_TRANSFORMS):
            raise InvalidGraph(f"aggregate_function={codes[0]}, post_transform={codes[1]}; expected 0-3 and 0-4")
        modes = _array(node, "nodes_modes")
        members = modes is not None and bool((modes == MEMBER).any())
        names = AGGREGATES[codes[0]], POST_TRANSFORMS[codes[1]]
        return cls(
            node.integer("n_targets", 1), None, *names, np.zeros(0, np.float32), _tensor_dtype(node, "leaf_weights"), members
        )

    @staticmethod
    def forest(node: Operator) -> Forest:
        """Return the trees of a node.

        Raises:
            InvalidArgument: they contradict themselves: a child or target that is not there, a path that never ends …
            InvalidGraph: an attribute is of another kind.
        """
        return _split_nodes(node) if node.op_type == "TreeEnsemble" else _named_nodes(node)


def _named_nodes(node: Operator) -> Forest:
    kind = "class" if node.op_type == "TreeEnsembleClassifier" else "target"
    return forest_of_named_nodes(
        _integers(node, "nodes_treeids"),
        _integers(node, "nodes_nodeids"),
        _integers(node, "nodes_featureids"),
        _modes(node),
        _numbers(node, "nodes_values"),
        _array(node, "nodes_values_as_tensor"),
        _integers(node, "nodes_truenodeids"),
        _integers(node, "nodes_falsenodeids"),
        _integers(node, "nodes_missing_value_tracks_true"),
        _integers(node, f"{kind}_treeids"),
        _integers(node, f"{kind}_nodeids"),
        _integers(node, f"{kind}_ids"),
        _numbers(node, f"{kind}_weights"),
        _array(node, f"{kind}_weights_as_tensor"),
        TreeEnsemble.of(node).targets,
    )


def _split_nodes(node: Operator) -> Forest:
    return forest_of_split_nodes(
        _integers(node, "tree_roots"),
        _integers(node, "nodes_featureids"),
        _required(node, "nodes_modes"),
        _required(node, "nodes_splits"),
        _integers(node, "nodes_truenodeids"),
        _integers(node, "nodes_trueleafs"),
        _integers(node, "nodes_falsenodeids"),
        _integers(node, "nodes_falseleafs"),
        _integers(node, "nodes_missing_value_tracks_true"),
        _array(node, "membership_values"),
        _integers(node, "leaf_targetids"),
        _required(node, "leaf_weights"),
        TreeEnsemble.of(node).targets,
    )


def _integers(node: Operator, name: str) -> Sequence[int] | Array:
    """Return integers as they were read, which need not be a tuple; none where they are left out."""
    found = node.attributes.get(name)
    if isinstance(found, ArrayAttribute) and found.kind is AttributeKind.INTS:
        return found.array
    return node.integers(name, ())


def _numbers(node: Operator, name: str) -> Sequence[float] | Array | None:
    found = node.attributes.get(name)
    if isinstance(found, ArrayAttribute) and found.kind is AttributeKind.FLOATS:
        return found.array
    return node.numbers(name)


def _modes(node: Operator) -> Sequence[str] | Modes:
    found = node.attributes.get("nodes_modes")
    if isinstance(found, ArrayAttribute) and found.kind is AttributeKind.STRINGS:
        return Modes(found.array, found.texts)
    return node.texts("nodes_modes", ())


def _known(aggregate: str, transform: str) -> tuple[str, str]:
    """Return the names; raises InvalidGraph for one that is unknown."""
    for name, found, known in (("aggregate_function", aggregate, AGGREGATES), ("post_transform", transform, POST_TRANSFORMS)):
        if found not in known:
            raise InvalidGraph(f"{name}={found!r}; expected one of {', '.join(known)}")
    return aggregate, transform


def _array(node: Operator, name: str) -> Array | None:
    tensor = node.tensor(name)
    return None if tensor is None else tensor.numpy()


def _required(node: Operator, name: str) -> Array:
    found = _array(node, name)
    if found is None:
        raise InvalidGraph(f"attribute {name!r} is left out; expected a tensor")
    return found


def _tensor_dtype(node: Operator, name: str) -> np.dtype[np.generic]:
    tensor = node.tensor(name)
    return np.dtype(np.float32) if tensor is None else tensor.dtype.numpy
