"""Write MoEGroupRouter of com.microsoft, which sends tokens to the best experts of the best groups, as choices by TopK.

    MoEGroupRouter(logits, bias)             ->      s = Sigmoid(logits), r = s + bias
                                                     best = TopK(ReduceSum(TopK(r in groups)))      the groups
                                                     chosen = TopK(Where(best, r, -inf))            the experts
                                                     Where(chosen, Log(max(s, 1e-20)), router_sentinel)
    _, r, s = MoEGroupRouter(x, bias, w)     ->      s = Sigmoid(MatMul(x, w^T)), r = s + bias

Choices are marked by ScatterElements. NaN is the largest of scores, and counts as infinity.

Left alone:
    types other than float and float16; a number of experts that is not known; counts that do not fit it
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Value
from sardonyx.optimize.helpers.activation import fused_type_reason
from sardonyx.optimize.helpers.half_types import in_float, rounded_to
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_GROUP_ROUTER", "EXPAND_ROUTER_SCORES"]

_MICROSOFT = "com.microsoft"
_AXES_ARE_INPUTS = 18
_LEAST_WEIGHT = np.float32(1e-20)
_LEAST = np.finfo(np.float32).min
_INFINITY = np.float32(np.inf)
_MOST_EXPERTS, _FEATURE_BLOCK = 512, 256
"""What full scores are limited to, and what the features of a projection come in."""


def _node(op: PatternBuilder, logits: Term, bias: Term) -> Term:
    return op.MoEGroupRouter(logits, bias, op.optional("projection"), _domain=_MICROSOFT)


def _pattern(op: PatternBuilder, logits: Term, bias: Term) -> Term:
    return _node(op, logits, bias)


def _scores_pattern(op: PatternBuilder, logits: Term, bias: Term) -> tuple[Term, ...]:
    outputs = op.outputs(_node(op, logits, bias), 3)
    return outputs[1], outputs[2]


def _check(match: Match) -> str | int:
    """Return how many experts there are."""
    logits, node = match["logits"].shape, match.root
    if match.get("projection") is not None:
        return "a projection without full scores"
    if not logits or len(logits) < 2 or not isinstance(experts := logits[-1], int) or match["bias"].shape != (experts,):
        return f"logits are {logits} and the bias {match['bias'].shape}, which are of no known number of experts"
    top, groups = node.integer("top_k", 0), node.integer("n_group", 1)
    kept, best = node.integer("topk_group", 1), node.integer("group_topk", 2)
    if min(top, groups, kept, best, experts) < 1 or top > experts or kept > groups or experts % groups:
        return f"top_k={top}, n_group={groups}, topk_group={kept} and group_topk={best} do not fit {experts} experts"
    return fused_type_reason(match["logits"]) or experts


def _replace(op: Builder, match: Match, experts: int) -> Value:
    logits, node = match["logits"], match.root
    rows = in_float(op, logits)
    if len(logits.shape or ()) != 2:
        rows = op.Reshape(rows, np.array([-1, experts], np.int64))
    weights = op.Sigmoid(rows)
    scores = _without_nan(op, op.Add(weights, in_float(op, match["bias"])))
    groups = node.integer("n_group", 1)
    is_possible = None
    if groups > 1:
        is_possible = _kept_groups(op, match, scores, groups, experts // groups, experts)
        scores = op.Where(is_possible, op.Max(scores, _LEAST), -_INFINITY)
    is_chosen = _chosen(op, scores, node.integer("top_k", 0))
    if is_possible is not None:
        is_chosen = op.And(is_chosen, is_possible)
    sentinel = np.float32(node.number("router_sentinel", -10000.0))
    return rounded_to(op, op.Where(is_chosen, op.Log(op.Max(weights, _LEAST_WEIGHT)), sentinel), logits)


def _without_nan(op: Builder, scores: Value) -> Value:
    return op.Where(op.IsNaN(scores), _INFINITY, scores)


def _kept_groups(op: Builder, match: Match, scores: Value, groups: int, size: int, experts: int) -> Value:
    """Return for scores (N, E) which of them are of the best groups."""
    grouped = op.Reshape(scores, np.array([-1, groups, size], np.int64))
    count = min(match.root.integer("group_topk", 2), size)
    best = op.outputs("TopK", 2, grouped, np.array([count], np.int64))[0]
    version = max(op.version(), _AXES_ARE_INPUTS)
    sums = _without_nan(op, op.node("ReduceSum", best, np.array([2], np.int64), keepdims=0, _version=version))
    kept = op.Unsqueeze(_chosen(op, sums, match.root.integer("topk_group", 1)), np.array([2], np.int64))
    return op.Reshape(op.Expand(kept, np.array([1, 1, size], np.int64)), np.array([-1, experts], np.int64))


def _chosen(op: Builder, scores: Value, count: int) -> Value:
    """Return for each row which scores are the `count` largest, the first of equal ones."""
    places = op.outputs("TopK", 2, scores, np.array([count], np.int64))[1]
    return op.ScatterElements(op.Less(scores, scores), places, op.Equal(places, places), axis=1)


def _check_scores(match: Match) -> str | None:
    """Return nothing where full scores are asked for as the operator allows."""
    tokens, weight, bias = match["logits"].shape, match.get("projection"), match["bias"].shape
    experts = tokens[-1] if tokens else None
    if weight is not None:
        shape = weight.shape or ()
        if len(shape) != 2 or tokens is None or len(tokens) != 2 or tokens[1] != shape[1]:
            return f"tokens {tokens} and the projection {weight.shape} are not known to fit"
        experts, width = shape
        if not isinstance(width, int) or width < 1 or width % _FEATURE_BLOCK:
            return f"a projection of {width} features, expected a positive multiple of {_FEATURE_BLOCK}"
    if not tokens or len(tokens) < 2 or not isinstance(experts, int) or not 1 <= experts <= _MOST_EXPERTS or bias != (experts,):
        return f"logits are {tokens} and the bias {bias}, which are of no known number of experts"
    node = match.root
    top, kept, best = (node.integer(name, default) for name, default in (("top_k", 0), ("topk_group", 1), ("group_topk", 2)))
    if node.integer("n_group", 1) != 1 or min(top, kept, best) < 1 or top > experts or kept > 1:
        return "counts that do not fit one group of experts"
    return fused_type_reason(match["logits"])


def _replace_scores(op: Builder, match: Match, learned: None) -> tuple[Value, Value]:
    logits, weight = match["logits"], match.get("projection")
    rows = in_float(op, logits)
    if weight is not None:
        rows = op.MatMul(rows, op.Transpose(in_float(op, weight), perm=[1, 0]))
    elif len(logits.shape or ()) != 2:
        rows = op.Reshape(rows, np.array([-1, (logits.shape or ())[-1]], np.int64))
    weights = op.Sigmoid(rows)
    return op.Add(weights, in_float(op, match["bias"])), weights


EXPAND_GROUP_ROUTER = Rule(
    "expand_group_router",
    _pattern,
    _replace,
    _check,
    takes_apart=microsoft("MoEGroupRouter"),
    summary="Write MoEGroupRouter of com.microsoft as choices by TopK.",
)
EXPAND_ROUTER_SCORES = Rule(
    "expand_router_scores",
    _scores_pattern,
    _replace_scores,
    _check_scores,
    takes_apart=microsoft("MoEGroupRouter"),
    summary="Write MoEGroupRouter of com.microsoft that gives all scores as a product and Sigmoid.",
)
