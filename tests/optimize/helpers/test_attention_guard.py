"""Guards behind attention."""

import pytest
from support.optimizing import apply_rule, model_of

from sardonyx.optimize.helpers.attention_guard import guard_reason, guarded, has_guard
from sardonyx.optimize.match import Match
from sardonyx.optimize.rule import Rule

TEXT = """opset 21, com.microsoft 1
    graph(q: float[1, 2, 6], a: float[1, 1, 2, 2]) -> (z) {{ zero: float[] = 0 {mask}
    y = com.microsoft.MultiHeadAttention(q, q, q, _, _, m) {{num_heads = 2}} {behind} }}"""


@pytest.mark.parametrize(
    ("mask", "behind", "found"),
    [
        ("m = Neg(a)", "i = IsNaN(y) z = Where(i, zero, y)", (True, None)),
        ("m = Neg(a)", "z = Identity(y)", (False, None)),
        ("m = Neg(a)", "i = IsNaN(y) o = Where(i, y, zero) z = Add(o, y)", (False, "it has a guard, with which it is replaced")),
        ("m = Mul(a, zero)", "i = IsNaN(y) z = Where(i, zero, y)", (True, None)),
        ("m = Where(c, zero, zero)", "i = IsNaN(y) z = Where(i, zero, y)", (True, "its guard is not for queries that see no key")),
    ],
)
def test_what_is_a_guard(mask, behind, found):
    """Zeros for NaN, where the mask may hide all keys."""
    seen: list[tuple[bool, str | None]] = []

    def check(match: Match) -> str:
        seen.append((has_guard(match), guard_reason(match)))
        return "only looked at"

    def pattern(op, q, a):
        inputs = (q, q, q, None, None, op.optional("added"))
        return guarded(op, op.MultiHeadAttention(*inputs, _domain="com.microsoft", _as="attention"))

    text = TEXT.format(mask=f"c = IsNaN(a) {mask}", behind=behind)
    apply_rule(Rule("look", pattern, lambda op, match, learned: match["q"], check), text)
    assert model_of(text).graph
    assert found in seen
