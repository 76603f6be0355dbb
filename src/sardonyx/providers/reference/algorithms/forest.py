"""Decision trees as flat arrays, and the walk of all rows through all trees at once.

nodes_*      one entry a node; a leaf is its own child on both sides, so that a walk may go on too long without harm
children     (2 * nodes,): entry 2i is where node i leads when its test fails, 2i + 1 when it holds
votes_*      (target, weight) pairs of the leaves, those of one node in a row: node i has votes_start[i] .. [i + 1]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

__all__ = ["MEMBER", "MODES", "Forest", "Members", "assemble", "leaves_of"]

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""The tests of TreeEnsemble-5 in the order of their codes; the older operators use the same names, and LEAF."""

MEMBER = 6
"""The code of BRANCH_MEMBER."""

_COMPARE: tuple[Callable[[Array, Array], Array], ...] = (
    np.less_equal,
    np.less,
    np.greater_equal,
    np.greater,
    np.equal,
    np.not_equal,
)

_WALKERS = 1 << 15
"""How many (tree, row) pairs walk at once: their state stays in a core's cache."""


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
    missing: Sequence[int] | None,
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
    used = tuple(np.unique(modes[is_inner]).tolist())
    if used and not 0 <= used[0] <= used[-1] <= MEMBER:
        raise InvalidArgument(f"nodes have modes {used}; expected codes 0 to {MEMBER}")
    order = np.argsort(vote_nodes, kind="stable")
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


def _flags(missing: Sequence[int] | None, count: int) -> Array | None:
    flags = np.zeros(count, bool)
    given = np.array(missing or (), dtype=np.int64)[:count]
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
    here = np.unique(roots)
    here = here[is_inner[here]]
    for _ in range(len(is_inner)):
        if not here.size:
            return
        there = np.unique(np.concatenate([children[2 * here], children[2 * here + 1]]))
        here = there[is_inner[there]]
    raise InvalidArgument("a path through a tree never ends: a node is its own ancestor; the model is damaged")


def leaves_of(forest: Forest, rows: Array) -> Array:
    """Return the leaf that each row of (N, F) reaches in each tree: node numbers of shape (trees, N)."""
    N, F = rows.shape
    if forest.feature_count > F:
        raise InvalidArgument(f"the input has {F} features, but a node tests feature {forest.feature_count - 1}")
    block = max(1, _WALKERS // max(1, len(forest.roots)))
    parts = [_walk(forest, rows[start : start + block]) for start in range(0, max(N, 1), block)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _walk(forest: Forest, rows: Array) -> Array:
    N, F = rows.shape
    values = np.ascontiguousarray(rows).reshape(-1)
    has_missing = values.dtype.kind == "f" and bool(np.isnan(values).any())
    final = np.repeat(forest.roots, N)
    walkers = np.flatnonzero(forest.is_inner.take(final))
    node = final[walkers]
    offset = walkers % max(N, 1) * F
    while walkers.size:
        x = values.take(offset + forest.features.take(node))
        node = forest.children.take(2 * node + _holds(forest, node, x, has_missing))
        is_inner = forest.is_inner.take(node)
        if np.count_nonzero(is_inner) * 2 < len(node):
            final[walkers] = node
            walkers, node, offset = walkers[is_inner], node[is_inner], offset[is_inner]
    return final.reshape(len(forest.roots), N)


def _holds(forest: Forest, node: Array, x: Array, has_missing: bool) -> Array:
    """Return whether the test of each node holds for its x."""
    first, *others = forest.used_modes
    result = _tested(forest, first, node, x)
    for mode in others:
        result = np.where(forest.modes.take(node) == mode, _tested(forest, mode, node, x), result)
    if not has_missing:
        return result
    truth = False if forest.missing_is_true is None else forest.missing_is_true.take(node)
    return np.where(np.isnan(x), truth, result)


def _tested(forest: Forest, mode: int, node: Array, x: Array) -> Array:
    if mode == MEMBER and forest.members is not None:
        return forest.members.hold(node, x)
    return _COMPARE[mode](x, forest.thresholds.take(node))
