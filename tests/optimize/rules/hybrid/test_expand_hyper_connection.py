"""Hyper-connections as sums and products."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.hybrid.expand_hyper_connection import (
    EXPAND_ENGRAM_GATE,
    EXPAND_ENGRAM_GATE_NORM,
    EXPAND_STREAM_POST_MIX,
    EXPAND_STREAM_PRE_MIX,
)

KINDS = pytest.mark.parametrize(("kind", "rtol"), [("float", 1e-5), ("float16", 2e-3)])
SHAPES = pytest.mark.parametrize(("shape", "attributes"), [("b, t, 3, 4", ""), ("b, t, 12", "num_branches = 3"), ("3, 4", "")])


def pre_mix(kind="float", shape="b, t, 3, 4", attributes="", gates="b, t, 3"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[{shape}], g: {kind}[{gates}]) -> (y) {{
        y = com.microsoft.HyperConnectionPreMix(x, g) {{{attributes}}} }}"""


def gates_of(shape, end):
    """The leading dimensions of streams, and what gates have behind them."""
    return f"b, t, {end}" if shape.startswith("b") else end


@KINDS
@SHAPES
@pytest.mark.parametrize("gates", ["3", "3, 1", "3, 4"])
def test_pre_mix_fires_with_the_same_numbers(kind, rtol, shape, attributes, gates):
    """Streams on an axis of their own or one behind the other; a gate for each stream or for each feature."""
    text = pre_mix(kind, shape, attributes + (", " if attributes else "") + "reduction_scale = 0.5", gates_of(shape, gates))
    model, fired = apply_rule(EXPAND_STREAM_PRE_MIX, text, rtol=rtol)
    assert fired == 1
    assert "ReduceSum" in operators(model)


def test_pre_mix_takes_flat_gates():
    """Of streams one behind the other."""
    assert apply_rule(EXPAND_STREAM_PRE_MIX, pre_mix("float", "b, t, 12", "num_branches = 3", "b, t, 12"))[1] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "double"}, "expected float or float16"),
        ({"shape": "b, t, c, 4", "gates": "b, t, c"}, "of no known sizes"),
        ({"shape": "b, t, 11", "attributes": "num_branches = 3"}, "not known to be 3"),
        ({"gates": "b, u, 3"}, "not known to fit"),
    ],
)
def test_pre_mix_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_STREAM_PRE_MIX, pre_mix(**options))


def post_mix(kind="float", shape="b, t, 3, 4", attributes="", gates="b, t, 3", block="b, t, 4", mix="b, t, 3, 3", given=", m"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[{shape}], c: {kind}[{block}], g: {kind}[{gates}], m: {kind}[{mix}]) -> (y) {{
        y = com.microsoft.HyperConnectionPostMix(x, c, g{given}) {{{attributes}}} }}"""


@KINDS
@SHAPES
@pytest.mark.parametrize("gates", ["3", "3, 1", "3, 4"])
@pytest.mark.parametrize("given", ["", ", m"])
def test_post_mix_fires_with_the_same_numbers(kind, rtol, shape, attributes, gates, given):
    """With streams that are mixed with one another, and with such that stay."""
    block, mix = gates_of(shape, "4"), gates_of(shape, "3, 3")
    text = post_mix(kind, shape, attributes, gates_of(shape, gates), block, mix, given)
    model, fired = apply_rule(EXPAND_STREAM_POST_MIX, text, rtol=rtol)
    assert fired == 1
    assert ("MatMul" in operators(model)) == bool(given)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "double"}, "expected float or float16"),
        ({"block": "b, t, 5"}, "not known to fit"),
        ({"mix": "b, t, 3, 4"}, "not known to fit"),
        ({"gates": "b, t, 12", "shape": "b, t, 12", "attributes": "num_branches = 3"}, "not known to fit"),
    ],
)
def test_post_mix_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_STREAM_POST_MIX, post_mix(**options))


def engram(kind="float", key="b, t, 3, 4", value="b, t, 4", scale="3, 4", outputs="y", given=", n"):
    return f"""opset 21, com.microsoft 1
        graph(k: {kind}[{key}], q: {kind}[{key}], v: {kind}[{value}], s: {kind}[{scale}], r: {kind}[{scale}], n: {kind}[{scale}])
            -> ({outputs}) {{ {outputs} = com.microsoft.EngramGate(k, q, v, s, r{given}) {{epsilon = 0.01}} }}"""


@KINDS
def test_engram_gate_fires_with_the_same_numbers(kind, rtol):
    """The gated values alone."""
    assert apply_rule(EXPAND_ENGRAM_GATE, engram(kind, given=""), rtol=rtol)[1] == 1


@KINDS
def test_engram_gate_with_its_normalized_result(kind, rtol):
    """Which is made of the rounded values."""
    assert apply_rule(EXPAND_ENGRAM_GATE_NORM, engram(kind, outputs="y, z"), rtol=rtol)[1] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "double"}, "expected float or float16"),
        ({"key": "b, t, 3, h"}, "of a known size"),
        ({"value": "b, u, 4"}, "not known to fit"),
        ({"scale": "4, 4"}, "a scale is not known"),
    ],
)
def test_engram_gate_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_ENGRAM_GATE, engram(**options))


def test_a_normalized_result_without_a_scale_is_left_alone():
    """The reference provider says what is wrong."""
    assert "no scale" in declines(EXPAND_ENGRAM_GATE_NORM, engram(outputs="y, z", given=""))
