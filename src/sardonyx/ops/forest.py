"""Decision trees as flat arrays: what the attributes of tree ensembles mean, checked.

nodes_*      one entry a node; a leaf is its own child on both sides, so that a walk may go on too long without harm
children     (2 * nodes,): entry 2i is where node i leads when its test fails, 2i + 1 when it holds
votes_*      (target, weight) pairs of the leaves, those of one node in a row: node i has votes_start[i] .. [i + 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = [
    "MEMBER",
    "MODES",
    "Forest",
    "Members",
    "Modes",
    "assemble",
    "forest_of_named_nodes",
    "forest_of_split_nodes",
    "numbers_of",
]

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""The tests of TreeEnsemble-5 in the order of their codes; the older operators use the same names, and LEAF."""

MEMBER = 6
"""The code of BRANCH_MEMBER."""

_LEAF = len(MODES)
_MODE_CODES = {name: code for code, name in enumerate(MODES)} | {"LEAF": _LEAF}


@dataclasses.dataclass(frozen=True, slots=True)
class Members:
    """The sets of BRANCH_MEMBER nodes: pairs of (set, value) as sorted numbers set * len(values) + place of the value."""

    set_of_node: Array
    """For each node, the number of its set."""
    values: Array
    """Every value in any set, ascending."""
    pairs: Array
    """The pairs, ascending."""

    def hold(self, nodes: Array, x: Array) -> Array:
        """Return whether each x is in the set of its node."""
        if not len(self.values):
            return np.zeros(x.shape, bool)
        place = np.minimum(np.searchsorted(self.values, x), len(self.values) - 1)
        pair = self.set_of_node[nodes] * len(self.values) + place
        found = np.minimum(np.searchsorted(self.pairs, pair), len(self.pairs) - 1)
        result: Array = (self.values[place] == x) & (self.pairs[found] == pair)
        return result


@dataclasses.dataclass(frozen=True, slots=True)
class Forest:
    """A checked ensemble: every child exists, no walk is endless."""

    roots: Array
    """The first node of each tree."""
    features: Array
    """The feature that each node tests."""
    thresholds: Array
    """The number that it is compared with."""
    modes: Array
    """The code of each node's test; a leaf's does not matter."""
    used_modes: tuple[int, ...]
    """The codes that inner nodes have."""
    is_inner: Array
    """Whether each node is no leaf."""
    children: Array
    """Where each node leads, see the module's picture."""
    missing_is_true: Array | None
    """Whether each node's test holds for NaN; None: for none."""
    members: Members | None
    """The sets of BRANCH_MEMBER nodes."""
    feature_count: int
    """One more than the greatest feature tested."""
    votes_start: Array
    """Where each node's votes begin; one more entry than nodes."""
    votes_target: Array
    """The target (or class) of each vote."""
    votes_weight: Array
    """The weight of each vote."""


def assemble(
    *,
    roots: Array,
    features: Array,
    thresholds: Array,
    modes: Array,
    is_inner: Array,
    children: Array,
    missing: Sequence[int] | Array | None,
    members: Array | None,
    vote_nodes: Array,
    vote_targets: Array,
    vote_weights: Array,
    target_count: int,
) -> Forest:
    """Check the parts of an ensemble and lay its votes out by node; O(nodes + votes log votes)."""
    if features.size and features.min() < 0:
        raise InvalidArgument(f"a node tests feature {features.min()}; expected features >= 0")
    if vote_targets.size and not 0 <= vote_targets.min() <= vote_targets.max() < target_count:
        raise InvalidArgument(f"votes name targets {vote_targets.min()} to {vote_targets.max()}; there are {target_count}")
    _check_ends(roots, children, is_inner)
    used = _used_modes(modes[is_inner])
    in_order = bool((vote_nodes[1:] >= vote_nodes[:-1]).all())
    order = slice(None) if in_order else np.argsort(vote_nodes, kind="stable")
    counts = np.bincount(vote_nodes, minlength=len(features))
    return Forest(
        roots=roots,
        features=features,
        thresholds=thresholds,
        modes=modes,
        used_modes=used,
        is_inner=is_inner,
        children=children,
        missing_is_true=_flags(missing, len(features)),
        members=_member_sets(modes, is_inner, members) if MEMBER in used else None,
        feature_count=int(features[is_inner].max(initial=-1)) + 1,
        votes_start=np.concatenate([[0], np.cumsum(counts)]),
        votes_target=vote_targets[order],
        votes_weight=vote_weights[order],
    )


def _used_modes(modes: Array) -> tuple[int, ...]:
    """Return the codes of inner nodes, ascending; raises InvalidArgument for one that is unknown."""
    if modes.size and not 0 <= modes.min() <= modes.max() <= MEMBER:
        raise InvalidArgument(f"nodes have modes {modes.min()} to {modes.max()}; expected codes 0 to {MEMBER}")
    return tuple(np.flatnonzero(np.bincount(modes)).tolist())


def _flags(missing: Sequence[int] | Array | None, count: int) -> Array | None:
    flags = np.zeros(count, bool)
    given = _integers(() if missing is None else missing)[:count]
    flags[: len(given)] = given != 0
    return flags if flags.any() else None


def _member_sets(modes: Array, is_inner: Array, members: Array | None) -> Members:
    """Return the sets, which are delimited by NaN, in the order of the nodes that use them."""
    nodes = np.flatnonzero(is_inner & (modes == MEMBER))
    flat = np.zeros(0) if members is None else members.reshape(-1)
    ends = np.isnan(flat)
    number = np.cumsum(ends) - ends
    if int(number.max(initial=-1)) + 1 < len(nodes) - 1 or number.max(initial=-1) >= len(nodes):
        raise InvalidArgument(f"membership_values hold {int(number.max(initial=-1)) + 1} sets for {len(nodes)} nodes that use one")
    values, places = np.unique(flat[~ends], return_inverse=True)
    set_of_node = np.zeros(len(modes), np.int64)
    set_of_node[nodes] = np.arange(len(nodes))
    return Members(set_of_node, values, np.unique(number[~ends] * len(values) + places))


def _check_ends(roots: Array, children: Array, is_inner: Array) -> None:
    """Raise InvalidArgument if some walk from a root never meets a leaf."""
    inner = np.flatnonzero(is_inner)
    if bool(((children[2 * inner] > inner) & (children[2 * inner + 1] > inner)).all()):
        return
    here = np.unique(roots)
    here = here[is_inner[here]]
    for _ in range(len(is_inner)):
        if not here.size:
            return
        there = np.unique(np.concatenate([children[2 * here], children[2 * here + 1]]))
        here = there[is_inner[there]]
    raise InvalidArgument("a path through a tree never ends: a node is its own ancestor; the model is damaged")


def _integers(values: Sequence[int] | Array) -> Array:
    return np.asarray(values, np.int64)


def numbers_of(floats: Sequence[float] | Array | None, tensor: Array | None) -> Array:
    """Return an attribute that comes as floats (float32 in the file) or, for doubles, as a tensor."""
    if tensor is not None:
        return tensor.reshape(-1)
    return np.asarray(() if floats is None else floats, np.float32)


@dataclasses.dataclass(frozen=True, slots=True)
class Modes:
    """The names of tests, each given by its place among some texts."""

    places: Array
    """The place of each node's."""
    texts: Sequence[str]
    """The texts."""

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.places)


def _codes(modes: Sequence[str] | Modes) -> Array:
    """Return the codes of tests; raises InvalidArgument for a name that is unknown."""
    unknown = set(modes.texts if isinstance(modes, Modes) else modes) - set(_MODE_CODES)
    if unknown:
        raise InvalidArgument(f"nodes_modes hold {sorted(unknown)}; expected {', '.join(_MODE_CODES)}")
    if isinstance(modes, Modes):
        found: Array = np.array([_MODE_CODES[text] for text in modes.texts], np.int64)[modes.places]
        return found
    return np.fromiter(map(_MODE_CODES.__getitem__, modes), np.int64, len(modes))


class _NodeNames:
    """Finds nodes by (tree id, node id)."""

    def __init__(self, trees: Array, first: Array, nodes: Array) -> None:
        """Take the names of all nodes, and where each tree begins."""
        self._first, self._counts = first, np.diff(first, append=len(trees))
        are_counted = bool((trees[first] == np.arange(len(first))).all())
        self._are_places = are_counted and bool((nodes == np.arange(len(trees)) - np.repeat(first, self._counts)).all())
        if self._are_places:
            return
        self._trees, tree_rank = np.unique(trees, return_inverse=True)
        self._nodes, node_rank = np.unique(nodes, return_inverse=True)
        names = tree_rank * len(self._nodes) + node_rank
        self._order = np.argsort(names, kind="stable")
        self._names = names[self._order]
        twice = np.flatnonzero(self._names[1:] == self._names[:-1])
        if twice.size:
            index = self._order[twice[0]]
            raise InvalidArgument(f"node {nodes[index]} of tree {trees[index]} is there twice; each node has one entry")

    def find(self, trees: Array, nodes: Array, what: str) -> Array:
        """Return the index of each named node; raises InvalidArgument for one that is not there."""
        if self._are_places:
            return self._at_places(trees, nodes, what)
        tree_rank = np.searchsorted(self._trees, trees).clip(max=len(self._trees) - 1)
        node_rank = np.searchsorted(self._nodes, nodes).clip(max=len(self._nodes) - 1)
        at = np.searchsorted(self._names, tree_rank * len(self._nodes) + node_rank).clip(max=len(self._names) - 1)
        found: Array = self._order[at]
        wrong = np.flatnonzero(
            (self._trees[tree_rank] != trees)
            | (self._nodes[node_rank] != nodes)
            | (self._names[at] != tree_rank * len(self._nodes) + node_rank)
        )
        if wrong.size:
            raise _not_there(what, trees, nodes, wrong)
        return found

    def _at_places(self, trees: Array, nodes: Array, what: str) -> Array:
        """Return the index of each node where trees and their nodes are numbered in their order."""
        tree = trees.clip(0, len(self._first) - 1)
        wrong = np.flatnonzero((tree != trees) | (nodes < 0) | (nodes >= self._counts[tree]))
        if wrong.size:
            raise _not_there(what, trees, nodes, wrong)
        found: Array = self._first[tree] + nodes
        return found


def _not_there(what: str, trees: Array, nodes: Array, wrong: Array) -> InvalidArgument:
    return InvalidArgument(f"{what} names node {nodes[wrong[0]]} of tree {trees[wrong[0]]}, which is not there")


def forest_of_named_nodes(
    trees: Sequence[int] | Array,
    nodes: Sequence[int] | Array,
    features: Sequence[int] | Array,
    modes: Sequence[str] | Modes,
    values: Sequence[float] | Array | None,
    values_tensor: Array | None,
    true_nodes: Sequence[int] | Array,
    false_nodes: Sequence[int] | Array,
    missing: Sequence[int] | Array | None,
    vote_trees: Sequence[int] | Array,
    vote_nodes: Sequence[int] | Array,
    vote_targets: Sequence[int] | Array,
    vote_weights: Sequence[float] | Array | None,
    vote_weights_tensor: Array | None,
    target_count: int,
) -> Forest:
    """Return the ensemble that TreeEnsembleClassifier and TreeEnsembleRegressor write: nodes and votes named by tree and node."""
    thresholds, weights = numbers_of(values, values_tensor), numbers_of(vote_weights, vote_weights_tensor)
    lengths = {len(part) for part in (trees, nodes, features, modes, thresholds, true_nodes, false_nodes)}
    vote_lengths = {len(part) for part in (vote_trees, vote_nodes, vote_targets, weights)}
    if len(lengths) != 1 or len(vote_lengths) != 1 or 0 in lengths:
        raise InvalidArgument(f"nodes_* have lengths {sorted(lengths)}, votes {sorted(vote_lengths)}; expected one of each, > 0")
    tree = _integers(trees)
    codes = _codes(modes)
    is_inner = codes != _LEAF
    starts = np.ones(len(tree), bool)
    starts[1:] = tree[1:] != tree[:-1]
    roots = np.flatnonzero(starts)
    names = _NodeNames(tree, roots, _integers(nodes))
    children = np.repeat(np.arange(len(tree)), 2)
    inner = np.flatnonzero(is_inner)
    children[2 * inner] = names.find(tree[inner], _integers(false_nodes)[inner], "nodes_falsenodeids")
    children[2 * inner + 1] = names.find(tree[inner], _integers(true_nodes)[inner], "nodes_truenodeids")
    return assemble(
        roots=roots,
        features=np.where(is_inner, _integers(features), 0),
        thresholds=thresholds,
        modes=codes,
        is_inner=is_inner,
        children=children,
        missing=missing,
        members=None,
        vote_nodes=names.find(_integers(vote_trees), _integers(vote_nodes), "a vote"),
        vote_targets=_integers(vote_targets),
        vote_weights=weights,
        target_count=target_count,
    )


def forest_of_split_nodes(
    roots: Sequence[int] | Array,
    features: Sequence[int] | Array,
    modes: Array,
    splits: Array,
    true_nodes: Sequence[int] | Array,
    true_leafs: Sequence[int] | Array,
    false_nodes: Sequence[int] | Array,
    false_leafs: Sequence[int] | Array,
    missing: Sequence[int] | Array | None,
    members: Array | None,
    leaf_targets: Sequence[int] | Array,
    leaf_weights: Array,
    target_count: int,
) -> Forest:
    """Return the ensemble that TreeEnsemble-5 writes: inner nodes and leaves apart, leaves put after the inner nodes here."""
    count, leaf_count = len(features), len(leaf_targets)
    lengths = {len(part) for part in (features, modes, splits, true_nodes, true_leafs, false_nodes, false_leafs)}
    if lengths != {count} or len(leaf_weights) != leaf_count or not count:
        raise InvalidArgument(
            f"nodes_* have lengths {sorted(lengths)}, leaf_targetids {leaf_count}, leaf_weights {len(leaf_weights)}; "
            "expected one length for nodes, > 0, and one for leaves"
        )
    children = np.repeat(np.arange(count + leaf_count), 2)
    for side, (ids, leafs) in enumerate(((false_nodes, false_leafs), (true_nodes, true_leafs))):
        to, is_leaf = _integers(ids), _integers(leafs) != 0
        if (to < 0).any() or (to >= np.where(is_leaf, leaf_count, count)).any():
            raise InvalidArgument(f"a node's branch leads outside the {count} nodes and {leaf_count} leaves")
        children[side : 2 * count : 2] = to + np.where(is_leaf, count, 0)
    starts = _integers(roots)
    if starts.size and not 0 <= starts.min() <= starts.max() < count:
        raise InvalidArgument(f"tree_roots={list(roots)}; expected indices in [0, {count - 1}]")
    leaf_zeros = np.zeros(leaf_count, np.int64)
    return assemble(
        roots=starts,
        features=np.concatenate([_integers(features), leaf_zeros]),
        thresholds=np.concatenate([splits, leaf_zeros.astype(splits.dtype)]),
        modes=np.concatenate([modes.astype(np.int64), leaf_zeros]),
        is_inner=np.arange(count + leaf_count) < count,
        children=children,
        missing=missing,
        members=None if members is None else members.astype(np.float64),
        vote_nodes=count + np.arange(leaf_count),
        vote_targets=_integers(leaf_targets),
        vote_weights=leaf_weights,
        target_count=target_count,
    )
