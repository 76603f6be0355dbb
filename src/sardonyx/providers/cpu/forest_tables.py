"""An ensemble of trees as the tables that its kernel reads: each pair of children side by side, all tests as one.

    x < t     x <= the number before t                 x > t     not x <= t: children change places
    x >= t    not x <= the number before t             x != t    not x == t

A child that several nodes share is written once for each of them, and has one pair of children. What a `Forest` says was checked
when it was made, so a walk stays within the tables and ends, whatever the features are.
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.kernels.trees.forest import EQUALITY, MISSING, PADDING, REST_FLAGS
from sardonyx.dtypes import Array
from sardonyx.ops.forest import MODES, Forest

__all__ = ["ForestTables", "Votes", "lay_out", "votes_of"]

_LT, _GTE, _GT, _EQ, _NEQ = (MODES.index(f"BRANCH_{name}") for name in ("LT", "GTE", "GT", "EQ", "NEQ"))
_MOST_SLOTS = 1 << 31


@dataclasses.dataclass(frozen=True, slots=True)
class ForestTables:
    """The tables of a kernel."""

    nodes: Array
    """The records as int64, one or two a slot; the last one is a leaf."""
    starts: Array
    """The slot of each tree's root, in the order of `Votes.order`, then of the last leaf."""
    bases: Array
    """The slot from which each tree's pairs count."""
    shift: int
    """Where the pair begins in a record's rest."""
    missing: bool
    """Whether the test of some node holds for NaN."""
    equality: bool
    """Whether some node tests equality."""


@dataclasses.dataclass(frozen=True, slots=True)
class Votes:
    """What leaves say, in one of the forms of the kernel."""

    form: str
    """The form: "one", "many", "dense" or "list"."""
    order: Array
    """The trees in the order of their targets, those of one target in their own."""
    leaves: Array
    """For each node what a leaf's record has in place of a threshold: a value as a number, or the leaf's number as an integer."""
    voted: Array | None
    """Which targets have votes in each row, as int32; None where that depends on the row."""
    targets: Array | None = None
    """Of "many" the target of each tree in this order, then -1; of "list" the target of each vote."""
    weights: Array | None = None
    """Of "dense" and "list" the weights."""
    firsts: Array | None = None
    """Of "list" where the votes of each leaf begin, and where the last ones end."""


def votes_of(forest: Forest, targets: int) -> Votes:
    """Return the votes of `forest`, each for one of `targets`, in the first of the forms that fits; O(nodes + votes)."""
    leaves = np.flatnonzero(~forest.is_inner)
    first = forest.votes_start[leaves]
    counts = forest.votes_start[leaves + 1] - first
    order = np.arange(len(forest.roots))
    if bool((counts == 1).all()):
        found = _values(forest, leaves, order, targets)
        if found is not None:
            return found
    number = np.zeros(len(forest.is_inner), np.int64)
    number[leaves] = np.arange(len(leaves))
    if bool((counts == targets).all()):
        weights = _dense(forest, first[:, None] + np.arange(targets))
        if weights is not None:
            return Votes("dense", order, number, np.full(targets, len(order) > 0, np.int32), weights=weights)
    firsts = np.concatenate([[0], np.cumsum(counts)])
    kept = np.repeat(first - firsts[:-1], counts) + np.arange(firsts[-1])
    return Votes("list", order, number, None, forest.votes_target[kept], forest.votes_weight[kept], firsts)


def _values(forest: Forest, leaves: Array, order: Array, targets: int) -> Votes | None:
    """Return votes as the values of leaves, one each; None where those of one tree are for different targets."""
    vote = forest.votes_start[leaves]
    values = np.zeros(len(forest.is_inner), forest.votes_weight.dtype)
    values[leaves] = forest.votes_weight[vote]
    if targets == 1:
        return Votes("one", order, values, np.full(1, len(order) > 0, np.int32))
    target = np.full(len(forest.is_inner), -1)
    target[leaves] = forest.votes_target[vote]
    of_tree = _target_of_trees(forest, target)
    if of_tree is None:
        return None
    order = np.argsort(of_tree, kind="stable")
    voted = np.bincount(of_tree, minlength=targets) > 0
    return Votes("many", order, values, voted.astype(np.int32), np.append(of_tree[order], -1).astype(np.int32))


def _target_of_trees(forest: Forest, target: Array) -> Array | None:
    """Return the target that all leaves of each tree vote for, given those of leaves; None where there is no such target."""
    inner = np.flatnonzero(forest.is_inner)
    tree = _tree_of(forest, inner)
    if tree is None:
        return None
    found = target[forest.roots]
    for side in range(2):
        child = forest.children[2 * inner + side]
        is_leaf = ~forest.is_inner[child]
        found[tree[is_leaf]] = target[child[is_leaf]]
    for side in range(2):
        child = forest.children[2 * inner + side]
        if bool((~forest.is_inner[child] & (target[child] != found[tree])).any()):
            return None
    return found


def _dense(forest: Forest, places: Array) -> Array | None:
    """Return the weights of leaves in the order of targets, given where the votes are; None where two are for one target."""
    ids, weights = forest.votes_target[places], forest.votes_weight[places]
    targets = np.arange(places.shape[1])
    if bool((ids == targets).all()):
        return weights
    if not bool((np.sort(ids, axis=1) == targets).all()):
        return None
    result = np.empty_like(weights)
    np.put_along_axis(result, ids, weights, axis=1)
    return result


def _tree_of(forest: Forest, inner: Array) -> Array | None:
    """Return the tree of each inner node; None where trees share them, or do not lie one behind another."""
    if not len(forest.roots) or bool((np.diff(forest.roots) <= 0).any()):
        return None
    tree = np.zeros(len(forest.is_inner), np.int64)
    tree[forest.roots[1:]] = 1
    np.cumsum(tree, out=tree)
    found: Array = tree[inner]
    for side in range(2):
        child = forest.children[2 * inner + side]
        if bool((forest.is_inner[child] & (tree[child] != found)).any()):
            return None
    return found if not len(inner) or inner[0] >= forest.roots[0] else None


def lay_out(forest: Forest, votes: Votes, compared: type[np.float32 | np.float64]) -> ForestTables | None:
    """Return the tables for features that are compared as `compared`; None where the records of that type are too small.

    Args:
        forest: the ensemble, without tests of membership.
        votes: what its leaves say.
        compared: float32 for records of 8 bytes, for features that are float32; float64 for records of 16 bytes.
    """
    inner = np.flatnonzero(forest.is_inner)
    trees, bits = len(forest.roots), 32 if compared is np.float32 else 64
    starts, bases, first, pair = _places(forest, inner)
    slots = 2 * (trees + len(inner)) + 1
    shift = REST_FLAGS + max(int(forest.feature_count - 1).bit_length(), 1)
    if shift + int(pair.max(initial=0)).bit_length() > bits or slots > _MOST_SLOTS:
        return None
    flags = _flags(forest, inner)
    rest = np.zeros(len(forest.is_inner), np.uint64)
    rest[inner] = pair.astype(np.uint64) << shift | forest.features[inner].astype(np.uint64) << REST_FLAGS | flags
    records = _records(_threshold_bits(forest, votes, inner, compared), rest)
    nodes = np.zeros((slots, records.shape[1]), np.int64)
    nodes[starts] = records[forest.roots]
    fails, holds = forest.children[2 * inner], forest.children[2 * inner + 1]
    negated = _negated(forest.modes[inner])
    nodes[first] = records[np.where(negated, fails, holds)]
    nodes[first + 1] = records[np.where(negated, holds, fails)]
    integer, pad = np.dtype(f"int{bits}"), np.full(PADDING, slots - 1)
    return ForestTables(
        nodes=nodes.reshape(-1),
        starts=np.concatenate([starts[votes.order], pad]).astype(integer),
        bases=np.concatenate([bases[votes.order], pad]).astype(integer),
        shift=shift,
        missing=bool((flags & np.uint64(MISSING)).any()),
        equality=bool((flags & np.uint64(EQUALITY)).any()),
    )


def _places(forest: Forest, inner: Array) -> tuple[Array, Array, Array, Array]:
    """Return the slots of roots, and of where trees begin; of each inner node's pair the slot, and how far it is from there."""
    trees, rank, tree = np.arange(len(forest.roots)), np.arange(len(inner)), _tree_of(forest, inner)
    if tree is None:
        pair = 2 * (len(trees) + rank)
        return 2 * trees, np.zeros_like(trees), pair, pair
    starts = 2 * (np.searchsorted(inner, forest.roots) + trees)
    first = 2 * (rank + tree + 1)
    return starts, starts, first, first - starts[tree]


def _negated(modes: Array) -> Array:
    """Return which tests are written as the opposite of another one."""
    result: Array = (modes == _GTE) | (modes == _GT) | (modes == _NEQ)
    return result


def _flags(forest: Forest, inner: Array) -> Array:
    """Return the flags of each inner node: a test that is written as its opposite holds for NaN where the other does not."""
    modes = forest.modes[inner]
    holds = np.zeros(len(inner), bool) if forest.missing_is_true is None else forest.missing_is_true[inner]
    equality = (modes == _EQ) | (modes == _NEQ)
    result: Array = np.where(holds != _negated(modes), MISSING, 0) | np.where(equality, EQUALITY, 0)
    return result.astype(np.uint64)


def _threshold_bits(forest: Forest, votes: Votes, inner: Array, compared: type[np.float32 | np.float64]) -> Array:
    """Return for each node the bits of its threshold, or of what a leaf has in its place, as unsigned integers of their size."""
    integer = np.uint32 if compared is np.float32 else np.uint64
    if votes.leaves.dtype.kind == "f":
        with np.errstate(over="ignore"):
            bits = votes.leaves.astype(compared).view(integer)
    else:
        bits = votes.leaves.astype(integer)
    bits[inner] = _thresholds(forest.thresholds[inner], forest.modes[inner], compared).view(integer)
    result: Array = bits
    return result


def _records(bits: Array, rest: Array) -> Array:
    """Return the records (nodes, 1 or 2) of int64."""
    if bits.dtype == np.uint32:
        return np.stack([bits, rest.astype(np.uint32)], axis=1).view(np.int64)
    return np.stack([bits, rest], axis=1).view(np.int64)


def _thresholds(given: Array, modes: Array, compared: type[np.float32 | np.float64]) -> Array:
    """Return the threshold t of each test as `x <= t` or `x == t`, for all x of type `compared` that are numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = given.astype(compared)
        below = np.where(nearest > given, np.nextafter(nearest, compared(-np.inf)), nearest)
        above = np.where(nearest < given, np.nextafter(nearest, compared(np.inf)), nearest)
        before = np.where(above == -np.inf, compared(np.nan), np.nextafter(above, compared(-np.inf)))
    less = (modes == _LT) | (modes == _GTE)
    equality = (modes == _EQ) | (modes == _NEQ)
    result = np.where(less, before, np.where(equality, np.where(nearest == given, nearest, compared(np.nan)), below))
    never = np.isnan(given) & ((modes == _GTE) | (modes == _GT))
    return np.where(never, compared(np.inf), result).astype(compared)
