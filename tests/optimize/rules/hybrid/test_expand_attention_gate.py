"""Gates of linear attention."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.hybrid.expand_attention_gate import EXPAND_ATTENTION_DECAY, EXPAND_ATTENTION_GATE


def text(kind="float", outputs="y, z", inputs="a, c, s, b", shape="4"):
    return f"""opset 21, com.microsoft 1
        graph(a: {kind}[b, t, 4], b: {kind}[b, t, 4], c: float[{shape}], s: float[4]) -> ({outputs}) {{
        {outputs} = com.microsoft.LinearAttentionGate({inputs}) }}"""


@pytest.mark.parametrize(("kind", "rtol"), [("float", 1e-5), ("float16", 1e-3)])
def test_both_results_have_the_same_numbers(kind, rtol):
    """Half types round once, at the end."""
    model, fired = apply_rule(EXPAND_ATTENTION_GATE, text(kind), rtol=rtol)
    assert fired == 1
    assert operators(model)[-1] == "Sigmoid"


@pytest.mark.parametrize("inputs", ["a, c, s", "a, c, s, b"])
def test_the_decay_alone_has_the_same_numbers(inputs):
    """Where no beta is asked for."""
    model, fired = apply_rule(EXPAND_ATTENTION_DECAY, text(outputs="y", inputs=inputs))
    assert fired == 1
    assert operators(model) == ["Add", "Softplus", "Mul"]


@pytest.mark.parametrize(
    ("options", "reason"), [({"kind": "double"}, "expected float or float16"), ({"shape": "1"}, "expected a vector along")]
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_ATTENTION_GATE, text(**options))
