"""Replace x * HardSigmoid(x), in its forms, by HardSwish.

    x * HardSigmoid(x) {alpha = 1/6, beta = 0.5}              ->      HardSwish(x)
    x * Clip(x + 3, 0, 6) / 6                                 ->      HardSwish(x)

with the products and the division in any order, the division by 6 also as a product with 1/6, and Clip also as Min(Relu(x + 3), 6).

Left alone:
    constants that differ from these by more than one part in 10,000
    values between that have other users, as they would be computed twice
    a result of another shape or type than x
"""

from __future__ import annotations

from sardonyx.ir import Node, Value
from sardonyx.ops.views.activation import Clip
from sardonyx.optimize.contract import Level
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.helpers.result_type import changed_type_reason
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["FUSE_HARD_SWISH"]

_TOLERANCE = 1e-4


def _pattern(op: PatternBuilder, x: Term) -> Term:
    shifted = op.Add(x, op.number(3.0, _TOLERANCE))
    gate = op.any_of(op.Clip(shifted, op.rest("limits"), _as="clip"), op.Min(op.Relu(shifted), op.number(6.0, _TOLERANCE)))
    sixth, six = op.number(1 / 6, _TOLERANCE), op.number(6.0, _TOLERANCE)
    return op.any_of(
        op.Mul(x, op.HardSigmoid(x, _as="sigmoid")),
        op.Mul(x, op.any_of(op.Div(gate, six), op.Mul(gate, sixth))),
        op.Mul(gate, op.any_of(op.Div(x, six), op.Mul(x, sixth))),
        op.Mul(op.Mul(x, gate), sixth),
        op.Div(op.Mul(x, gate), six),
    )


def _check(match: Match) -> str | None:
    reason = changed_type_reason(match["x"], match.outputs[0])
    if reason is not None:
        return reason
    for node in match.nodes:
        if node.op_type == "HardSigmoid" and not _near(_attributes(node), [1 / 6, 0.5]):
            return "HardSigmoid has other constants"
        if node.op_type == "Clip" and not _near(_limits(match), [0.0, 6.0]):
            return "Clip has other limits"
    return None


def _attributes(node: Node) -> list[float | None]:
    return [attribute_value(node, "alpha"), attribute_value(node, "beta")]


def _limits(match: Match) -> list[float | None]:
    """Return the limits of the Clip, attributes before opset 11 and inputs since; None for one that is no constant."""
    node = match.node("clip")
    limits = Clip.of(node).limits
    if limits is not None:
        return list(limits)
    arrays = [small_constant(node.input(index), match.place.overridable, max_elements=1) for index in (1, 2)]
    return [None if array is None or array.size != 1 else float(array.reshape(())) for array in arrays]


def _near(found: list[float | None], wanted: list[float]) -> bool:
    return all(one is not None and abs(one - other) <= _TOLERANCE * other for one, other in zip(found, wanted, strict=True))


def _replace(op: Builder, match: Match, learned: None) -> Value:
    return op.HardSwish(match["x"])


FUSE_HARD_SWISH = Rule("fuse_hard_swish", _pattern, _replace, _check, Level.EXTENDED)
