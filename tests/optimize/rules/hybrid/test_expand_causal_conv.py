"""Causal convolutions that carry a state."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.hybrid.expand_causal_conv import EXPAND_CAUSAL_CONV, EXPAND_MICROSOFT_CAUSAL_CONV


def text(kind="float", inputs="x, w, b, p", attributes="", domain="com.microsoft.", taps=4, x="n, 6, t", past="n, 6, 3"):
    return f"""opset 27, com.microsoft 1
        graph(x: {kind}[{x}], p: {kind}[{past}], w: {kind}[6, 1, {taps}], b: {kind}[6]) -> (y, s) {{
        y, s = {domain}CausalConvWithState({inputs}) {{{attributes}}} }}"""


@pytest.mark.parametrize("domain", ["", "com.microsoft."])
@pytest.mark.parametrize("inputs", ["x, w, b, p", "x, w, _, p", "x, w, b", "x, w"])
@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_fires_with_the_same_numbers(domain, inputs, activation, steps):
    """With and without a bias and a past, for steps fewer and more than the state is long."""
    rule = EXPAND_MICROSOFT_CAUSAL_CONV if domain else EXPAND_CAUSAL_CONV
    body = text(inputs=inputs, attributes=f'activation = "{activation}"', domain=domain)
    model, fired = apply_rule(rule, body, symbols={"n": 2, "t": steps})
    assert fired == 1
    assert "Conv" in operators(model)


@pytest.mark.parametrize(
    ("options"),
    [
        {"attributes": "dilation = 2", "past": "n, 6, 6"},
        {"attributes": "channels_last = 1", "x": "n, t, 6", "past": "n, 3, 6"},
        {"kind": "float16"},
    ],
)
def test_forms_of_microsoft_fire_with_the_same_numbers(options):
    """Taps apart, channels last, half types rounded once."""
    _, fired = apply_rule(EXPAND_MICROSOFT_CAUSAL_CONV, text(**options), rtol=2e-3 if "kind" in options else 1e-5)
    assert fired == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "double"}, "expected float or float16"),
        ({"attributes": 'activation = "tanh"'}, "unknown activation"),
        ({"attributes": "state_window = 2", "inputs": "x, w"}, "a window of states"),
        ({"taps": 1, "past": "n, 6, 0"}, "expected two taps"),
        ({"x": "n, c, t"}, "expected two taps"),
        ({"past": "n, 6, 2"}, "the past is"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_MICROSOFT_CAUSAL_CONV, text(**options))
