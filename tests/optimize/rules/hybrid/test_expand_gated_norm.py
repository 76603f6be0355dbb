"""Normalizations of groups."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.hybrid.expand_gated_norm import EXPAND_BRANCHWISE_NORM, EXPAND_GATED_NORM


def gated(kind="float", activation="silu", size="4", gate="b, t, 12"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[b, t, 12], g: {kind}[{gate}], s: {kind}[{size}]) -> (y) {{
        y = com.microsoft.GatedRMSNorm(x, s, g) {{activation = "{activation}", epsilon = 0.5}} }}"""


@pytest.mark.parametrize(("kind", "rtol"), [("float", 1e-5), ("float16", 2e-3)])
@pytest.mark.parametrize("activation", ["silu", "swish", "sigmoid"])
@pytest.mark.parametrize("size", ["4", "12", "1"])
def test_gated_fires_with_the_same_numbers(kind, rtol, activation, size):
    """Several groups, one, and groups of one."""
    model, fired = apply_rule(EXPAND_GATED_NORM, gated(kind, activation, size), rtol=rtol)
    assert fired == 1
    assert "RMSNormalization" in operators(model)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "double"}, "expected float or float16"),
        ({"activation": "tanh"}, "neither silu, swish nor sigmoid"),
        ({"size": "5"}, "expected a vector that divides"),
        ({"gate": "b, t, 1"}, "expected equal shapes"),
    ],
)
def test_gated_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_GATED_NORM, gated(**options))


def branches(kind="float", shape="b, 3, 4", attributes="", scale="4"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[{shape}], s: {kind}[{scale}]) -> (y) {{ y = com.microsoft.BranchwiseRMSNorm(x, s) {{{attributes}}} }}"""


@pytest.mark.parametrize(("shape", "attributes"), [("b, 3, 4", ""), ("b, 12", "num_branches = 3")])
@pytest.mark.parametrize("scale", ["4", "3, 4", "12"])
def test_branches_fire_with_the_same_numbers(shape, attributes, scale):
    """Branches on an axis of their own or one behind the other, scaled alike or each by its own vector."""
    model, fired = apply_rule(EXPAND_BRANCHWISE_NORM, branches(shape=shape, attributes=attributes, scale=scale))
    assert fired == 1
    assert "RMSNormalization" in operators(model)


def test_branches_without_a_scale():
    """The quotient alone."""
    text = branches().replace("(x, s) {", "(x) {")
    assert apply_rule(EXPAND_BRANCHWISE_NORM, text)[1] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "double"}, "expected float or float16"),
        ({"scale": "5"}, "the scale is"),
        ({"shape": "b, c, 4"}, "of no known size"),
        ({"shape": "b, 11", "attributes": "num_branches = 3"}, "of no known size"),
    ],
)
def test_branches_decline(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_BRANCHWISE_NORM, branches(**options))
