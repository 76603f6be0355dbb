"""The walk of all rows through all trees at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.forest import MEMBER, Forest

__all__ = ["leaves_of"]

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


def leaves_of(forest: Forest, rows: Array) -> Array:
    """Return the leaf that each row of (N, F) reaches in each tree: node numbers of shape (trees, N)."""
    N, F = rows.shape
    if forest.feature_count > F:
        raise InvalidArgument(f"the input has {F} features, but a node tests feature {forest.feature_count - 1}")
    block = max(1, _WALKERS // max(1, len(forest.roots)))
    parts = []
    for start in range(0, max(N, 1), block):
        check_cancelled()
        parts.append(_walk(forest, rows[start : start + block]))
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
