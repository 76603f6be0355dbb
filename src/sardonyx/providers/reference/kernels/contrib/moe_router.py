"""MoEGroupRouter of com.microsoft: which experts a token goes to, chosen within the best groups of experts.

Dimension letters: N tokens, E experts, G groups of S experts, K features of a token.
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet, require_floats, widen
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["moe_group_router"]

_LEAST = np.float32(1e-20)
"""Of a weight whose logarithm is taken."""
_MOST_EXPERTS, _FEATURE_BLOCK = 512, 256
"""What full scores are limited to, and what the features of a projection come in."""


@kernel("MoEGroupRouter", domain="com.microsoft")
@quiet
def moe_group_router(
    call: Call,
    logits: Array,
    expert_bias: Array,
    projection_weight: Array | None = None,
    *,
    top_k: int,
    n_group: int = 1,
    topk_group: int = 1,
    group_topk: int = 2,
    router_sentinel: float = -10000.0,
) -> tuple[Array | None, ...]:
    """Return log(s) of the chosen experts (N, E), or all scores: s + expert_bias and s, in float32; s is the sigmoid of the logits.

    Logits (…, E); with projection_weight (E, K) they are its product with tokens (N, K). Of the groups the `topk_group` with the
    largest sums of their `group_topk` best s + expert_bias are kept, of their experts the `top_k` best; the others get
    `router_sentinel`. Of equal scores the first counts, and NaN is the largest. Source: com.microsoft MoEGroupRouter.
    """
    require_floats(logits, expert_bias, projection_weight)
    wants_scores = any(call.present[1:3])
    if wants_scores and call.present[0]:
        raise InvalidArgument("router_probs and full scores are both asked for; ask for one of them")
    if projection_weight is not None and not wants_scores:
        raise InvalidArgument("projection_weight is given, but no full scores are asked for; leave it out")
    wide = _logits(logits) if projection_weight is None else _project(logits, projection_weight)
    experts = wide.shape[1]
    if expert_bias.shape != (experts,):
        raise InvalidArgument(f"expert_bias has shape {expert_bias.shape}; expected ({experts},), a number for each expert")
    _check_counts(experts, top_k, n_group, topk_group, group_topk)
    weights = 1 / (1 + np.exp(-wide))
    scores = weights + widen(expert_bias)
    if wants_scores:
        _check_full(experts, n_group)
        return None, scores, weights
    chosen = _chosen(scores, top_k, _kept_groups(scores, n_group, topk_group, group_topk))
    probs = np.where(chosen, np.log(np.maximum(weights, _LEAST)), np.float32(router_sentinel))
    return (probs.astype(logits.dtype, copy=False),)


def _logits(logits: Array) -> Array:
    """Return logits (…, E) as (N, E) of float32."""
    if logits.ndim < 2 or logits.shape[-1] == 0:
        raise InvalidArgument(f"logits have shape {logits.shape}; expected (…, experts) with at least one expert")
    return widen(logits).reshape(int(np.prod(logits.shape[:-1])), logits.shape[-1])


def _project(tokens: Array, weight: Array) -> Array:
    if tokens.ndim != 2 or weight.ndim != 2 or weight.shape[1] != tokens.shape[1] or not len(weight):
        raise InvalidArgument(
            f"logits and projection_weight have shapes {tokens.shape} and {weight.shape}; expected (tokens, width) "
            "and (experts, width)"
        )
    width = tokens.shape[1]
    if width == 0 or width % _FEATURE_BLOCK:
        raise InvalidArgument(f"projection_weight has {width} features; expected a positive multiple of {_FEATURE_BLOCK}")
    check_output_size((len(tokens), len(weight)), 4)
    return matmul_in_parts(widen(tokens), widen(weight).T)


def _check_counts(experts: int, top_k: int, n_group: int, topk_group: int, group_topk: int) -> None:
    if min(top_k, n_group, topk_group, group_topk) < 1 or top_k > experts or topk_group > n_group or experts % n_group:
        raise InvalidArgument(
            f"top_k is {top_k}, n_group {n_group}, topk_group {topk_group} and group_topk {group_topk}, with {experts} experts; "
            "expected positive numbers, n_group a divisor of the experts, top_k at most their number and topk_group at most n_group"
        )


def _check_full(experts: int, n_group: int) -> None:
    if n_group != 1 or experts > _MOST_EXPERTS:
        raise InvalidArgument(
            f"full scores are asked for of {experts} experts in {n_group} groups; expected at most {_MOST_EXPERTS} in one group"
        )


def _kept_groups(scores: Array, n_group: int, topk_group: int, group_topk: int) -> Array:
    """Return for scores (N, E) which of them are of the best groups."""
    N, E = scores.shape
    grouped = np.sort(scores.reshape(N, n_group, E // n_group), axis=-1)[..., ::-1]
    sums = grouped[..., :group_topk].sum(axis=-1)
    kept = _chosen(sums, topk_group, np.ones(sums.shape, bool))
    repeated: Array = np.repeat(kept, E // n_group, axis=1)
    return repeated


def _chosen(scores: Array, count: int, possible: Array) -> Array:
    """Return for each row which scores are the `count` largest of those that are possible, the first of equal ones."""
    order = np.lexsort((-np.where(np.isnan(scores), np.inf, scores), ~possible), axis=-1)
    chosen = np.zeros(scores.shape, bool)
    np.put_along_axis(chosen, order[:, :count], True, axis=-1)
    return chosen & possible
